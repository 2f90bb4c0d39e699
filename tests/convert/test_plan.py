"""The gates: every reason to refuse that headers give, by name, before a weight is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from dfly_core.convert import write
from dfly_core.records.errors import DflyError, Missing, Refused, Usage
from tests.convert.small import (
    CONFIG,
    SAMPLES,
    Weights,
    dense,
    make_folder,
    raw,
    report,
    run,
    small_weights,
    snapshot,
    upstream,
    write_bin,
    write_safetensors,
)
from tests.convert.torchlike import integer, state_dict, text, write_zip


def refused(source: Path, tmp_path: Path, **options: Any) -> DflyError:
    """The error of a conversion that fails at a gate: nothing was made, not even beside."""
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(DflyError) as caught:
        list(run(source, tmp_path / "out", **options))
    assert {path.name for path in tmp_path.iterdir()} == before
    assert caught.value.remedy
    return caught.value


def same_as_original(folder: Path, weights: Weights | None = None) -> None:
    """The converted folder holds the small weights, bit for bit once widened."""
    loaded = mx.load(str(folder / "model.safetensors"))
    assert isinstance(loaded, dict)
    due = {n: a for n, a in (weights or small_weights()).items() if not n.startswith("embed_")}
    assert len(loaded) == len(due)
    for name, array in loaded.items():
        assert mx.array_equal(array.astype(mx.float32), mx.array(due[upstream(name)])), name


def without(*names: str) -> Callable[[Weights], Weights]:
    """Drop tensors."""
    return lambda weights: {n: a for n, a in weights.items() if n not in names}


def with_shape(name: str, shape: tuple[int, ...]) -> Callable[[Weights], Weights]:
    """Give a tensor another shape."""
    return lambda weights: weights | {name: np.zeros(shape, np.float32)}


TENSORS: list[tuple[Callable[[Weights], Weights], str]] = [
    (without("layers.1.self_attn.k_norm.weight"), "layers.1.self_attn.k_norm.weight is missing"),
    (without("context_proj.weight"), "context_proj.weight (fc.weight) is missing"),
    (without("final_norm.weight"), "final_norm.weight (norm.weight) is missing"),
    (
        without("hidden_correction.down_proj.weight"),
        "hidden_correction.down_proj.weight is missing",
    ),
    (
        with_shape("layers.1.mlp.down_proj.weight", (128, 64)),
        "layers.1.mlp.down_proj.weight has shape (128, 64) where the config needs (64, 128)",
    ),
    (
        with_shape("layers.0.self_attn.q_norm.weight", (64,)),
        "layers.0.self_attn.q_norm.weight has shape (64,) where the config needs (16,)",
    ),
    (with_shape("layers.2.mlp.up_proj.weight", (128, 64)), "layers.2.mlp.up_proj.weight belongs"),
    (with_shape("rotary_emb.inv_freq", (8,)), "rotary_emb.inv_freq belongs to no part"),
    (with_shape("fc.weight", (64, 192)), "both mean fc.weight"),
    (with_shape("embed_tokens.weight", (80, 64)), "embed_tokens.weight has shape (80, 64)"),
    (with_shape("lm_head.weight", (32, 64)), "a foreign or pruned vocabulary"),
    (with_shape("embed_tokens.weight", (96, 32)), "embed_tokens.weight has width 32"),
    (without("layer_fusion_weights"), "holds no layer_fusion_weights, so it is no DFly drafter"),
]


@pytest.mark.parametrize(("change", "said"), TENSORS)
def test_tensors_are_checked_for_all_layers(
    change: Callable[[Weights], Weights], said: str, tmp_path: Path
) -> None:
    source = make_folder(tmp_path / "in", weights=change(small_weights()))
    assert said in refused(source, tmp_path).what


CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"num_hidden_layers": 3}, "layer_fusion_weights has shape (2, 3) where the config needs (3"),
    ({"num_hidden_layers": 1}, "layers.1.input_layernorm.weight belongs to no part"),
    ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, more than 1000"),
    ({"hidden_size": 2**40}, "hidden_size is 1099511627776"),
    ({"vocab_size": 95}, "embed_tokens.weight has shape (96, 64)"),
    ({"target_hidden_size": 128}, "target_hidden_size is 128 and hidden_size 64"),
    ({"target_layer_ids": [1, 3, 9]}, "tap 9 lies beyond the target's 8 layers"),
    ({"num_target_layers": 2}, "num_target_layers is 2 but target_layer_ids names 3"),
    ({"mask_token_id": 96}, "mask_token_id 96 lies beyond the vocabulary of 96"),
    ({"rope_theta": None}, "rope_theta is missing"),
    ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan"),
    ({"hidden_correction_intermediate_size": 32}, "hidden_correction.gate_proj.weight has shape"),
    ({"enable_hidden_correction": False}, "hidden_correction.hidden_norm.weight belongs"),
    ({"architectures": ["DFlashDraftModel"]}, "['DFlashDraftModel']: not a DFly drafter"),
    ({"architectures": ["Qwen3DFly2Model"]}, "['Qwen3DFly2Model']: not a DFly drafter"),
    ({"architectures": ["DSparkDraftModel"]}, "['DSparkDraftModel']: not a DFly drafter"),
    ({"architectures": ["DSparkDraftModel"], "model_arch": "dspark"}, "model_arch 'dspark'"),
    ({"model_arch": "dfly2"}, "model_arch 'dfly2'"),
    ({"architectures": "Qwen3DFlyModel"}, "'Qwen3DFlyModel': not a DFly drafter"),
]


@pytest.mark.parametrize(("change", "said"), CONFIGS)
def test_the_config_is_checked_key_by_key(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    source = make_folder(tmp_path / "in", CONFIG | change, small_weights())
    assert said in refused(source, tmp_path).what


@pytest.mark.parametrize(
    ("marks", "kind"),
    [
        ("markov_head.weight", "DSpark"),
        ("midlayer.mlp.weight", "Eagle"),
        ("fc.weight", "DFlash or Eagle"),
        ("model.embed_tokens.weight", "an ordinary language model"),
    ],
)
def test_other_drafters_are_told_by_their_tensors(marks: str, kind: str, tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in", weights={marks: np.zeros((2, 2), np.float32)})
    assert f"({marks} is a tensor of {kind})" in refused(source, tmp_path).what


@pytest.mark.parametrize("prefix", ["module.draft_model.", "draft_model.", "module.", "model."])
@pytest.mark.parametrize("wrapper", ["", "state_dict", "model"])
def test_prefixes_and_wrappers_come_off(prefix: str, wrapper: str, tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in", prefix=prefix, wrapper=wrapper, parameter=True)
    report(source, tmp_path / "out")
    same_as_original(tmp_path / "out")


def test_other_modules_in_a_training_file_are_left_out_and_counted(tmp_path: Path) -> None:
    weights = {f"module.draft_model.{n}": a for n, a in small_weights().items()}
    weights["module.target_model.lm_head.weight"] = np.zeros((96, 64), np.float32)
    weights["module.optimizer.step"] = np.zeros((1,), np.float32)
    said = report(make_folder(tmp_path / "in", weights=weights), tmp_path / "out")
    assert said["ignored"] == ["module.target_model.lm_head.weight", "module.optimizer.step"]
    assert said["dropped"] == ["module.draft_model.embed_tokens.weight"]
    assert "other modules, left out: 2 tensors" in said["notes"]
    same_as_original(tmp_path / "out")


def test_a_second_drafter_in_the_same_file_is_refused(tmp_path: Path) -> None:
    weights = small_weights()
    both = {f"{p}{n}": a for p in ("model.", "module.") for n, a in weights.items()}
    error = refused(make_folder(tmp_path / "in", weights=both), tmp_path)
    assert "holds two drafters, under 'module.' and 'model.'" in error.what


def test_the_older_config_with_its_word_converts(tmp_path: Path) -> None:
    config = CONFIG | {"architectures": ["DSparkDraftModel"], "model_arch": "dfly"}
    report(make_folder(tmp_path / "in", config), tmp_path / "out")
    same_as_original(tmp_path / "out")


def test_a_config_without_block_size_gets_the_releases(tmp_path: Path) -> None:
    config = {key: value for key, value in CONFIG.items() if key != "block_size"}
    report(make_folder(tmp_path / "in", config), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["block_size"] == 8


def test_a_drafter_without_correction_converts(tmp_path: Path) -> None:
    config = CONFIG | {"enable_hidden_correction": False}
    weights = small_weights(config)
    report(make_folder(tmp_path / "in", config, weights), tmp_path / "out", quantize=8)
    report(tmp_path / "in", tmp_path / "plain")
    same_as_original(tmp_path / "plain", weights)


@pytest.mark.parametrize("have", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("want", [None, "bf16", "f16", "f32"])
@pytest.mark.parametrize("layout", ["zip", "legacy", "safetensors"])
def test_every_float_type_and_layout_converts_to_every_type(
    have: str, want: str | None, layout: str, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    if layout == "safetensors":
        source.mkdir()
        (source / "config.json").write_text(json.dumps(CONFIG))
        write_safetensors(source / "model.safetensors", small_weights(), have)
    else:
        make_folder(source, dtype=have, legacy=layout == "legacy")
    said = report(source, tmp_path / "out", dtype=want)
    assert said["dtype"] == (want or have.lower())
    same_as_original(tmp_path / "out")


def test_a_weight_too_large_for_float16_is_named(tmp_path: Path) -> None:
    weights = small_weights()
    weights["layers.1.mlp.up_proj.weight"][3, 5] = 131072.0
    source = make_folder(tmp_path / "in", weights=weights)
    error = refused(source, tmp_path, dtype="f16")
    assert "layers.1.mlp.up_proj.weight has values too large for F16" in error.what


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("options", [{}, {"dtype": "f32"}, {"quantize": 4}])
@pytest.mark.parametrize("name", ["context_proj.weight", "layers.1.self_attn.k_norm.weight"])
def test_nan_and_infinity_are_refused_naming_the_tensor(
    value: float, options: dict[str, Any], name: str, tmp_path: Path
) -> None:
    weights = small_weights()
    weights[name].reshape(-1)[-1] = value
    source = make_folder(tmp_path / "in", weights=weights)
    assert refused(source, tmp_path, **options).what == f"{name} holds NaN or infinity"


def test_a_flipped_bit_in_a_zip_is_found_by_its_checksum(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    path = source / "pytorch_model.bin"
    content = bytearray(path.read_bytes())
    spot = content.index(raw(small_weights()["layers.1.mlp.up_proj.weight"], "BF16"))
    content[spot + 100] ^= 4
    path.write_bytes(content)
    for options in ({}, {"dtype": "f32"}, {"quantize": 8}):
        error = refused(source, tmp_path, **options)
        assert "layers.1.mlp.up_proj.weight does not match its checksum" in error.what


def test_a_flipped_bit_under_views_is_found_by_its_checksum(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "views-bin", tmp_path / "in")
    path = tmp_path / "in" / "pytorch_model.bin"
    content = bytearray(path.read_bytes())
    content[4500 + 10_000] ^= 1  # in the storage that all but two tensors are views of
    path.write_bytes(content)
    assert "does not match its checksum" in refused(tmp_path / "in", tmp_path).what


def test_a_file_without_checksums_still_converts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What torch.serialization.set_crc32_options(False) leaves: zeros, local and central.
    source = make_folder(tmp_path / "in")
    path = source / "pytorch_model.bin"
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        at = content.find(mark)
        while at >= 0:
            content[at + offset : at + offset + 4] = b"\0\0\0\0"
            at = content.find(mark, at + 4)
    path.write_bytes(content)
    report(source, tmp_path / "out")
    same_as_original(tmp_path / "out")


def test_two_tensors_over_the_same_bytes_are_refused(tmp_path: Path) -> None:
    weights = small_weights()
    names = list(weights)
    views = {n: dense(str(i), a.shape, "BF16") for i, (n, a) in enumerate(weights.items())}
    one, other = "layers.0.mlp.up_proj.weight", "layers.1.mlp.up_proj.weight"
    views[other] = views[one]
    blobs = {str(names.index(n)): [raw(a, "BF16")] for n, a in weights.items()}
    source = make_folder(tmp_path / "in")
    write_zip(source / "pytorch_model.bin", state_dict(views), blobs)
    error = refused(source, tmp_path)
    assert "share bytes of pytorch_model.bin" in error.what


@pytest.mark.parametrize(
    ("name", "dtype", "values", "fine"),
    [
        ("d2t", "Long", [0] * 96, True),  # offsets
        ("d2t", "Long", list(range(96)), True),
        ("t2d", "Bool", [1] * 96, True),
        ("d2t", "Long", [0] * 95 + [7], False),
        ("d2t", "Long", [0] * 32, False),
        ("t2d", "Bool", [1] * 95 + [0], False),
    ],
)
def test_a_pruned_vocabulary_is_refused_unless_it_is_the_whole(
    name: str, dtype: str, values: list[int], fine: bool, tmp_path: Path
) -> None:
    width = {"Long": 8, "Bool": 1}[dtype]
    content = b"".join(value.to_bytes(width, "little") for value in values)
    weights = small_weights()
    views = {n: dense(str(i), a.shape, "BF16") for i, (n, a) in enumerate(weights.items())}
    count = integer(len(values))
    extra = text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage")
    extra += b"ctorch\n" + dtype.encode() + b"Storage\n" + text("map") + text("cpu") + count
    extra += b"tQK\0(" + count + b"t(K\1t\x89ccollections\nOrderedDict\n)RtRs"
    blobs = {str(i): [raw(a, "BF16")] for i, a in enumerate(weights.values())}
    source = make_folder(tmp_path / "in")
    write_zip(source / "pytorch_model.bin", state_dict(views) + extra, blobs | {"map": [content]})
    if fine:
        assert f"dropped, they change nothing: {name}" in report(source, tmp_path / "out")["notes"]
    else:
        assert f"{name} ({name}) maps a pruned" in refused(source, tmp_path).what


def test_gates_are_passed_before_any_weight_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a weight was read")

    monkeypatch.setattr(write, "blocks", fail)
    weights = small_weights()
    weights["context_proj.weight"][0, 0] = np.nan  # told only when it is read
    for i, (change, said) in enumerate(TENSORS):
        source = make_folder(tmp_path / f"in{i}", weights=change(weights))
        assert said in refused(source, tmp_path).what


# Which files


def test_an_mlx_folder_needs_no_conversion_and_is_told_so(tmp_path: Path) -> None:
    report(make_folder(tmp_path / "in"), tmp_path / "mlx")
    error = refused(tmp_path / "mlx", tmp_path)
    assert "is in the MLX format already: nothing to convert" in error.what
    assert f"--draft {tmp_path / 'mlx'}" in error.remedy


def test_an_mlx_folder_can_be_quantised_as_its_source_can(tmp_path: Path) -> None:
    report(make_folder(tmp_path / "in"), tmp_path / "mlx")
    report(tmp_path / "mlx", tmp_path / "one", quantize=4)
    report(tmp_path / "in", tmp_path / "other", quantize=4)
    one, other = snapshot(tmp_path / "one"), snapshot(tmp_path / "other")
    assert one["model.safetensors"] == other["model.safetensors"]
    assert one["config.json"] == other["config.json"]
    error = refused(tmp_path / "one", tmp_path, quantize=4)
    assert "nothing to convert" in error.what


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    for path in (SAMPLES / "sharded-bin").iterdir():
        if "00002-of" not in path.name:
            (tmp_path / "in").mkdir(exist_ok=True)
            (tmp_path / "in" / path.name).write_bytes(path.read_bytes())
    error = refused(tmp_path / "in", tmp_path)
    assert isinstance(error, Missing)
    assert "the shard pytorch_model-00002-of-00002.bin" in error.what


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers.9.x": "pytorch_model-00001-of-00002.bin"}, "names layers.9.x, which"),
        ({"final_norm.weight": "pytorch_model-00001-of-00002.bin"}, "final_norm.weight is in"),
        ({"final_norm.weight": "../other.bin"}, "outside its folder: '../other.bin'"),
        ({"final_norm.weight": "/etc/passwd.bin"}, "outside its folder"),
        ({"final_norm.weight": "config.json"}, "which is no weights file"),
        ({"final_norm.weight": 5}, "no file name"),
        ({"final_norm.weight": "x" * 300 + ".bin"}, "no file name"),
    ],
)
def test_an_index_against_its_shards_is_refused(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for path in (SAMPLES / "sharded-bin").iterdir():
        (tmp_path / "in" / path.name).write_bytes(path.read_bytes())
    path = tmp_path / "in" / "pytorch_model.bin.index.json"
    index = json.loads(path.read_text())
    index["weight_map"] |= change
    path.write_text(json.dumps(index))
    assert said in refused(tmp_path / "in", tmp_path).what


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    weights = small_weights()
    (source / "pytorch_model.bin").unlink()
    for shard in ("a.safetensors", "b.safetensors"):
        write_safetensors(source / shard, weights)
    index = dict.fromkeys(weights, "a.safetensors")
    index["final_norm.weight"] = "b.safetensors"
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    what = refused(source, tmp_path).what
    assert "is in a.safetensors where the index says b.safetensors" in what


@pytest.mark.parametrize("name", ["__0_0.distcp", ".metadata", "model_world_size_8_rank_0.pt"])
def test_fsdp_shards_are_told_from_checkpoints(name: str, tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    (source / "pytorch_model.bin").rename(source / name)
    error = refused(source, tmp_path)
    assert f"FSDP shards ({name})" in error.what


def test_several_training_files_are_not_chosen_from(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    (source / "pytorch_model.bin").rename(source / "step100.pt")
    report(source, tmp_path / "one")
    write_bin(source / "step200.pt", small_weights())
    error = refused(source, tmp_path)
    assert "holds 2 weights files (step100.pt, step200.pt)" in error.what
    report(source / "step200.pt", tmp_path / "two")
    same_as_original(tmp_path / "two")


def test_what_is_not_there_is_missing(tmp_path: Path) -> None:
    assert isinstance(refused(tmp_path / "nowhere", tmp_path), Missing)
    (tmp_path / "empty").mkdir()
    assert "no weights in" in refused(tmp_path / "empty", tmp_path).what
    source = make_folder(tmp_path / "in")
    (source / "config.json").unlink()
    assert "no config.json" in refused(source, tmp_path).what
    (source / "notes.txt").write_text("x")
    assert "notes.txt is no weights file" in refused(source / "notes.txt", tmp_path).what


def test_options_that_do_not_exist_are_usage_errors(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    for options in ({"quantize": 3}, {"dtype": "f64"}, {"revision": "main"}):
        assert isinstance(refused(source, tmp_path, **options), Usage)


def test_a_drafter_with_no_whole_groups_is_not_quantised(tmp_path: Path) -> None:
    sizes = {"hidden_size": 40, "target_hidden_size": 40, "intermediate_size": 48, "head_dim": 8}
    config = CONFIG | sizes
    source = make_folder(tmp_path / "in", config, small_weights(config))
    error = refused(source, tmp_path, quantize=4)
    assert isinstance(error, Refused)
    assert "rows in groups of 64" in error.what


def test_matrices_whose_halves_are_no_groups_stay_as_they_are(tmp_path: Path) -> None:
    # The correction's first product is run in two halves of width D = 96: 1.5 groups.
    config = CONFIG | {"hidden_size": 96, "target_hidden_size": 96, "intermediate_size": 128}
    weights = small_weights(config)
    said = report(make_folder(tmp_path / "in", config, weights), tmp_path / "out", quantize=4)
    names = {row["name"] for row in said["errors"]}
    assert "layers.0.mlp.down_proj.weight" in names
    assert "hidden_correction.gate_proj.weight" not in names
    assert any("not quantised" in note for note in said["notes"])


def test_the_header_of_a_safetensors_file_is_read_strictly(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    (source / "pytorch_model.bin").unlink()
    path = source / "model.safetensors"
    write_safetensors(path, small_weights())
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])

    def said(changed: Any, body: bytes = whole[8 + length :]) -> str:
        head = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
        path.write_bytes(len(head).to_bytes(8, "little") + head + body)
        return refused(source, tmp_path).what

    name = "layers.0.mlp.up_proj.weight"
    entry = header[name]
    assert "unknown dtype 'BF17'" in said(header | {name: entry | {"dtype": "BF17"}})
    shape = [entry["shape"][0] + 1, entry["shape"][1]]
    assert "bytes where shape" in said(header | {name: entry | {"shape": shape}})
    start, end = entry["data_offsets"]
    moved = header | {name: entry | {"data_offsets": [start + 2, end + 2]}}
    assert "does not begin where its neighbour ends" in said(moved)
    assert "is not a tensor's" in said(header | {name: entry | {"shape": [-1, 64]}})
    assert "is not a tensor's" in said(header | {name: [1]})
    assert "has a header that is no JSON" in said(b"[" * 100_000)
    assert "no JSON object" in said(b"[]")
    twice = json.dumps(header)[:-1] + f', "{name}": {json.dumps(entry)}' + "}"
    assert f"the key '{name}' twice" in said(twice.encode())
    assert "where its header describes" in said(header, whole[8 + length :] + b"x")
    assert "where its header describes" in said(header, whole[8 + length : -1])
    path.write_bytes((2**63).to_bytes(8, "little") + whole[8:])
    assert "claims a header of" in refused(source, tmp_path).what
