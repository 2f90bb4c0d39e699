"""A check says what the conversion would do, and does nothing of it."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dfly_core.cli.main import main
from dfly_core.convert.check import check
from dfly_core.engine.predict import KnownTarget
from dfly_core.model.locate import EMBEDDED
from dfly_core.records.checked import Checked, check_lines
from dfly_core.records.commands import Convert
from dfly_core.records.errors import DflyError
from dfly_core.records.loaded import Costs
from tests.convert.small import (
    CONFIG,
    SAMPLES,
    make_folder,
    never,
    report,
    run,
    small_weights,
    snapshot,
)
from tests.convert.test_samples import BAD, GOOD

COSTS = Costs(plain=0.01, verify=(0.01, 0.011, 0.012, 0.013), draft=(0.004,) * 4)
TARGET: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 8, "vocab_size": 96, "intermediate_size": 128,
    "num_attention_heads": 4,
}  # fmt: skip


def on_gpu(name: str, config: Mapping[str, Any]) -> KnownTarget:
    """What is known of a target that was not loaded."""
    return KnownTarget(name, config, by_bytes=True, bandwidth=1e9)


def look(source: Path, output: Path, loaded: KnownTarget | None = None, **options: Any) -> Checked:
    """The page of a check."""
    command = Convert(str(output), str(source), check=True, **options)
    *_, found = check(command, never, loaded, on_gpu)
    assert isinstance(found, Checked)
    return found


@pytest.mark.parametrize("name", GOOD)
def test_a_check_tells_what_the_conversion_then_does_and_writes_nothing(
    name: str, tmp_path: Path
) -> None:
    before = snapshot(SAMPLES / name)
    found = look(SAMPLES / name, tmp_path / "out")
    assert not list(tmp_path.iterdir())
    assert snapshot(SAMPLES / name) == before
    assert found.refused == ()
    assert found.layout == GOOD[name][0]
    done = report(SAMPLES / name, tmp_path / "out")
    assert found.notes == tuple(done["notes"])
    assert found.source_bytes == sum(file["bytes"] for file in done["source_files"])
    assert found.sizes[0].output_bytes == done["output_bytes"]


def test_the_size_in_every_width_is_the_conversions(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    found = look(source, tmp_path / "out")
    assert [sizing.bits for sizing in found.sizes] == [None, 8, 4]
    for sizing in found.sizes:
        done = report(source, tmp_path / f"out{sizing.bits}", quantize=sizing.bits)
        assert sizing.output_bytes == done["output_bytes"]
    wide = look(source, tmp_path / "out", dtype="f32")
    assert wide.sizes[0].output_bytes == 2 * found.sizes[0].output_bytes


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_is_refused_in_the_conversions_own_words(name: str, tmp_path: Path) -> None:
    found = look(SAMPLES / name, tmp_path / "out")
    with pytest.raises(DflyError) as caught:
        list(run(SAMPLES / name, tmp_path / "out"))
    if name == "bad-nan":
        assert found.refused == ()
        assert found.unchecked[0] == "NaN or infinity among the weights"
    else:
        assert found.refused == (str(caught.value),)
        assert check_lines(found, None)[-1] == f"can't convert: {caught.value}"


def test_every_reason_is_told_and_the_sizes_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_folder(tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1))
    found = look(source, tmp_path / "out")
    exists, full = found.refused
    assert "exists" in exists
    assert "has 1 B free where" in full
    assert found.free_bytes == 1
    assert found.sizes[0].output_bytes > 0
    assert found.about.startswith("2 draft layers, hidden size 64, vocabulary 96, block size 4")


def test_the_embedded_target_is_at_hand_for_a_drafter_that_fits_it(tmp_path: Path) -> None:
    ours = json.loads((EMBEDDED / "drafter/config.json").read_text())
    config = ours | {"architectures": CONFIG["architectures"]}
    source = make_folder(tmp_path / "in", config, small_weights(config))
    assert str(EMBEDDED / "target") in look(source, tmp_path / "out").rests_on


def test_the_loaded_target_comes_first_then_those_named_then_none(tmp_path: Path) -> None:
    source, output = make_folder(tmp_path / "in"), tmp_path / "out"
    for name, layers in (("other", 7), ("fits", 8)):
        (tmp_path / name).mkdir()
        config = json.dumps(TARGET | {"num_hidden_layers": layers})
        (tmp_path / name / "config.json").write_text(config)
    named = tuple(str(tmp_path / name) for name in ("nowhere", "other", "fits"))
    loaded = KnownTarget("the loaded one", TARGET, by_bytes=True, costs=COSTS)
    assert "times measured with the loaded one" in look(source, output, loaded).rests_on
    misfit = KnownTarget("x", TARGET | {"vocab_size": 97}, by_bytes=True, costs=COSTS)
    found = look(source, output, misfit, targets=named)
    assert f"bytes that {named[2]} in 16 bit" in found.rests_on
    assert [s.speedup is not None for s in found.sizes] == [True] * 3
    alone = look(source, output, targets=named[:2])
    assert alone.rests_on.startswith("speed unknown: no target at hand fits this drafter")
    assert [s.speedup for s in alone.sizes] == [None] * 3
    (tmp_path / "fits" / "config.json").write_text(
        json.dumps({k: v for k, v in TARGET.items() if k != "intermediate_size"})
    )
    assert "lacks sizes" in look(source, output, targets=named).rests_on


def test_a_target_that_was_named_comes_before_the_loaded_one(tmp_path: Path) -> None:
    source, output = make_folder(tmp_path / "in"), tmp_path / "out"
    names = {}
    for name, layers in (("other", 7), ("fits", 8)):
        names[name] = str(tmp_path / name)
        (tmp_path / name).mkdir()
        config = json.dumps(TARGET | {"num_hidden_layers": layers})
        (tmp_path / name / "config.json").write_text(config)
    loaded = KnownTarget("the loaded one", TARGET, by_bytes=True, costs=COSTS)
    found = look(source, output, loaded, target=names["fits"])
    assert f"bytes that {names['fits']} in 16 bit" in found.rests_on
    refused = look(source, output, loaded, target=names["other"])
    assert refused.rests_on == (
        f"speed unknown: the drafter was made for a target with 8 layers, {names['other']} has 7"
    )
    same = KnownTarget(names["fits"], TARGET, by_bytes=True, costs=COSTS)
    assert "times measured with" in look(source, output, same, target=names["fits"]).rests_on
    official = look(source, output, loaded, target="mlx-community/Qwen3-8B-4bit")
    assert "the drafter was made for a target with 8 layers" in official.rests_on


def test_of_the_official_drafter_the_target_is_known_without_having_it(tmp_path: Path) -> None:
    official = CONFIG | {
        "hidden_size": 4096, "target_hidden_size": 4096, "vocab_size": 151936,
        "target_num_hidden_layers": 36,
    }  # fmt: skip
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "config.json").write_text(json.dumps(official))
    (tmp_path / "in" / "pytorch_model.bin").write_bytes(b"")
    from dfly_core.convert.check import _target
    from dfly_core.model.config import drafter_config

    found = _target(drafter_config(official), Convert(), None, on_gpu)
    assert isinstance(found, KnownTarget)
    assert (found.name, found.bits) == ("mlx-community/Qwen3-8B-4bit", 4)


def test_the_command_line_checks_with_its_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["convert", "--check", "--output", str(tmp_path / "out"), "--draft"]
    assert main([*arguments, str(SAMPLES / "serving-bin")]) == 0
    out = capsys.readouterr().out
    assert "serving folder: 36.6 kB of weights" in out
    assert "dropped, the target has its own: embed_tokens.weight" in out
    assert "4 bit: " in out
    assert main([*arguments, str(SAMPLES / "bad-shape"), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert "layer_fusion_weights has shape (4, 3)" in said["refused"][0]
    assert not (tmp_path / "out").exists()


def test_an_output_inside_the_source_is_told(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    (said,) = look(source, source / "out").refused
    assert "share a folder" in said


def test_what_only_a_conversion_looks_at_is_named(tmp_path: Path) -> None:
    values, checksums = "NaN or infinity among the weights", "the checksums of the torch files"
    source = make_folder(tmp_path / "in")
    assert look(source, tmp_path / "out").unchecked == (values, checksums)
    found = look(source, tmp_path / "out", dtype="f16")
    assert found.unchecked == (values, "values too large for f16", checksums)
    safe = next(name for name in GOOD if list((SAMPLES / name).glob("model.safetensors")))
    found = look(SAMPLES / safe, tmp_path / "out")
    assert found.unchecked == (values,)
    assert f"not looked at before converting: {values}" in check_lines(found, None)


@pytest.mark.parametrize("name", ["/nope", "no one/x", "~nouser-here/x", "a\0b", "x" * 5000])
def test_a_target_that_is_not_there_is_told(name: str, tmp_path: Path) -> None:
    found = look(make_folder(tmp_path / "in"), tmp_path / "out", target=name)
    assert found.rests_on.startswith("speed unknown: the target ")
    assert "can't be found on this machine" in found.rests_on or "can't be read" in found.rests_on
    assert len(found.rests_on) < 400
    assert found.refused == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("intermediate_size", float("inf")), ("intermediate_size", 10**400),
        ("num_attention_heads", -1), ("head_dim", "wide"), ("head_dim", float("nan")),
        ("quantization", {"bits": float("inf")}), ("quantization", {"bits": 10**400}),
        ("quantization", {"bits": -10**9}), ("quantization", {"bits": [4]}),
    ],
)  # fmt: skip
def test_of_a_target_with_impossible_sizes_nothing_is_predicted(
    key: str, value: object, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "config.json").write_text(json.dumps(TARGET | {key: value}))
    source = make_folder(tmp_path / "in")
    found = look(source, tmp_path / "out", target=str(tmp_path / "t"))
    assert found.rests_on.startswith(f"speed unknown: the config.json of {tmp_path / 't'}")
    assert len(found.rests_on) < 400
    assert [sizing.speedup for sizing in found.sizes] == [None] * 3
