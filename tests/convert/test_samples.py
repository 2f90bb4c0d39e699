"""Checkpoints that torch itself wrote: each converts exactly, or is refused by name."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import mlx.core as mx
import pytest

from dfly_core.convert import convert
from dfly_core.convert.names import to_mlx
from dfly_core.model.config import drafter_config, read_config
from dfly_core.model.pair import load_drafter
from dfly_core.records.errors import Refused
from tests.convert.reference import read_mlx
from tests.convert.small import SAMPLES, report, run, snapshot

GOOD = {
    "serving-bin": ("serving folder", "bf16"),
    "serving-bin-f32": ("serving folder", "f32"),
    "legacy-bin": ("serving folder", "bf16"),
    "views-bin": ("serving folder", "bf16"),
    "sharded-bin": ("sharded checkpoint", "bf16"),
    "safetensors-export": ("safetensors export", "bf16"),
    "prefixed-pt": ("training file", "bf16"),
}
BAD = {
    "bad-config-80-layers": (
        "describes another model than these weights (80 target layers, taps [1, 20, 39, 58, 77], "
        "mask 120009, vocabulary 120832)",
        "--revision 5712926",
    ),
    "bad-missing-tensor": ("layers.1.mlp.up_proj.weight is missing", "download"),
    "bad-nan": ("final_norm.weight holds NaN or infinity", "another checkpoint"),
    "bad-pickle-code": ("pytorch_model.bin: the pickle holds the global 'posix.system'", "not"),
    "bad-shape": ("layer_fusion_weights has shape (4, 3) where the config needs (3, 4)", "config"),
    "bad-truncated": ("pytorch_model.bin is cut short", "download it again"),
    "bad-unclaimed-tensor": (
        "layers.3.self_attn.q_proj.weight belongs to no part of a DFly drafter with 3 layers",
        "config",
    ),
}


def expected() -> dict[str, mx.array]:
    """What every good sample holds, in MLX names and float32."""
    loaded = mx.load(str(SAMPLES / "expected-f32.safetensors"))
    assert isinstance(loaded, dict)
    return {to_mlx(n): a for n, a in loaded.items() if not n.startswith("embed_tokens.")}


def test_the_tables_here_name_every_sample_there_is() -> None:
    folders = {path.name for path in SAMPLES.iterdir() if path.is_dir()}
    assert folders == {*GOOD, *BAD}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_sample_converts_bit_for_bit(name: str, tmp_path: Path) -> None:
    layout, dtype = GOOD[name]
    before = snapshot(SAMPLES / name)
    said = report(SAMPLES / name, tmp_path / "out")
    assert (said["layout"], said["dtype"], said["tensors"]) == (layout, dtype, 42)
    found = mx.load(str(tmp_path / "out" / "model.safetensors"))
    assert isinstance(found, dict)
    due = expected()
    assert found.keys() == due.keys()
    for tensor, array in found.items():
        assert array.dtype == {"bf16": mx.bfloat16, "f32": mx.float32}[dtype]
        assert mx.array_equal(array.astype(mx.float32), due[tensor]), tensor
    assert snapshot(SAMPLES / name) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_sample_is_refused_by_name_and_leaves_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what, remedy = BAD[name]
    monkeypatch.chdir(tmp_path)  # where the pickle's `touch` would leave its mark
    before = snapshot(SAMPLES / name)
    with pytest.raises(Refused) as caught:
        list(run(SAMPLES / name, tmp_path / "out"))
    assert what in caught.value.what
    assert remedy in caught.value.remedy
    assert list(tmp_path.iterdir()) == []
    assert snapshot(SAMPLES / name) == before


def test_a_refusal_with_force_leaves_the_old_output_as_it_was(tmp_path: Path) -> None:
    report(SAMPLES / "serving-bin", tmp_path / "out")
    before = snapshot(tmp_path)
    for name in BAD:
        with pytest.raises(Refused):
            list(run(SAMPLES / name, tmp_path / "out", force=True))
        assert snapshot(tmp_path) == before


def test_the_output_is_what_our_loader_reads(tmp_path: Path) -> None:
    report(SAMPLES / "views-bin", tmp_path / "out")
    config = drafter_config(read_config(tmp_path / "out"))
    drafter = load_drafter(tmp_path / "out", config, mx.float32)
    due = expected()
    assert mx.array_equal(drafter.fc.weight, due["fc.weight"])
    assert mx.array_equal(drafter.layer_fusion_weights, due["layer_fusion_weights"])
    assert mx.array_equal(
        drafter.layers[2].self_attn.k_proj.weight, due["layers.2.self_attn.k_proj.weight"]
    )


def test_the_config_gains_what_the_mlx_format_adds_and_keeps_the_rest(tmp_path: Path) -> None:
    report(SAMPLES / "serving-bin", tmp_path / "out")
    before = json.loads((SAMPLES / "serving-bin" / "config.json").read_text())
    after = json.loads((tmp_path / "out" / "config.json").read_text())
    assert after.pop("dflash_config") == {
        "target_layer_ids": [1, 3, 5, 6],
        "mask_token_id": 38,
        "enable_hidden_correction": True,
        "hidden_correction_intermediate_size": 20,
    }
    assert after.pop("architectures") == ["DFlyDraftModel"]
    assert after.pop("torch_dtype") == "bfloat16"
    before.pop("architectures")
    assert after == before


def test_licence_and_card_go_with_the_weights(tmp_path: Path) -> None:
    report(SAMPLES / "serving-bin", tmp_path / "out")
    licence = "License_AngelSlim_model_and_dataset.txt"
    out = snapshot(tmp_path / "out")
    assert sorted(out) == [licence, "README.md", "config.json", "model.safetensors"]
    assert out[licence] == (SAMPLES / "serving-bin" / licence).read_bytes()
    card = out["README.md"].decode()
    assert "license: other" in card
    assert "Converted from serving-bin (serving folder, revision unknown)" in card


def test_the_card_states_hashes_that_are_right(tmp_path: Path) -> None:
    said = report(SAMPLES / "serving-bin", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    source = SAMPLES / "serving-bin" / "pytorch_model.bin"
    files = {path.name: path for path in (source, *(tmp_path / "out").iterdir())}
    for row in said["source_files"] + said["files"]:
        content = files[row["name"]].read_bytes()
        assert row["sha256"] == hashlib.sha256(content).hexdigest()
        assert f"{row['name']}` | {len(content)} | {row['sha256']} |" in card
    for name, read in read_mlx(tmp_path / "out" / "model.safetensors").items():
        assert f"| {name} | {zlib.crc32(read()[1].tobytes()):08x} |" in card


def test_a_large_file_is_not_hashed_and_a_dash_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "HASHED_BYTES", 20_000)
    said = report(SAMPLES / "serving-bin", tmp_path / "out")
    hashes = {row["name"]: row["sha256"] for row in said["files"]}
    assert hashes["model.safetensors"] is None
    assert hashes["config.json"] is not None
    assert "`model.safetensors` | 25760 | - |" in (tmp_path / "out" / "README.md").read_text()
