"""Pairs that fit load; pairs that don't are refused by their headers, in one line."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten

from dfly_core.engine.context import Context
from dfly_core.model.config import drafter_config, tensor_shapes
from dfly_core.model.headers import read_headers
from dfly_core.model.locate import EMBEDDED
from dfly_core.model.pair import check_fit, load_drafter, load_pair, load_target
from dfly_core.model.prompt import prompt_ids, stop_ids
from dfly_core.records.commands import GenerateOptions, Load, Message
from dfly_core.records.errors import DflyError, Missing, Refused, Usage
from tests.tiny import (
    TAPS,
    TinyTokenizer,
    alone,
    answer,
    draft_config,
    make_pair,
    make_target,
    target_config,
)


def save_target(folder: Path, **changes: Any) -> Path:
    folder.mkdir()
    target = make_target(**changes)
    flat = dict(tree_flatten(target.model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), flat)
    (folder / "config.json").write_text(json.dumps(target_config(**changes)))
    return folder


def published_weights(seed: int = 3) -> dict[str, mx.array]:
    key = mx.random.key(seed)
    shapes = tensor_shapes(drafter_config(draft_config()))
    out = {}
    for name, shape in shapes.items():
        key, mine = mx.random.split(key)
        noise = mx.random.normal(shape, key=mine)
        out[name] = 1 + 0.1 * noise if len(shape) == 1 else noise * 0.2
    return out


def save_drafter(folder: Path, weights: dict[str, mx.array] | None = None, **changes: Any) -> Path:
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), weights or published_weights())
    (folder / "config.json").write_text(json.dumps(draft_config(**changes)))
    return folder


def test_a_saved_pair_loads_and_answers_as_the_target_alone(tmp_path: Path) -> None:
    target_folder, draft_folder = save_target(tmp_path / "t"), save_drafter(tmp_path / "d")
    config = check_fit(target_folder, target_config(), draft_folder)
    assert config is not None
    pair = make_pair()
    pair.target = load_target(target_folder, config.target_layer_ids)
    pair.drafter = load_drafter(draft_folder, config, pair.target.dtype)
    prompt = [4, 5, 6]
    found = answer(Context(pair), prompt, GenerateOptions(max_tokens=20))
    assert found.ids == alone(pair, prompt, 20)


def test_the_correction_read_in_halves_equals_the_published_product(tmp_path: Path) -> None:
    weights = published_weights()
    folder = save_drafter(tmp_path / "d", weights)
    correction = load_drafter(folder, drafter_config(draft_config()), mx.float32).hidden_correction
    h, e = mx.random.normal((2, 1, 3, 32), key=mx.random.key(5))
    z = mx.concatenate([correction.hidden_norm(h), correction.embed_norm(e)], axis=-1)
    prefix = "hidden_correction."
    gate, up = (z @ weights[f"{prefix}{s}_proj.weight"].T for s in ("gate", "up"))
    expected = h + (nn.silu(gate) * up) @ weights[f"{prefix}down_proj.weight"].T
    found = correction(h, correction.prepare(h), correction.told(e))
    assert mx.allclose(found, expected, atol=1e-5)


def test_a_drafter_named_as_the_target_is_called_one(tmp_path: Path) -> None:
    drafter = save_drafter(tmp_path / "d")
    for request in (Load(str(drafter)), Load(str(drafter), str(drafter))):
        with pytest.raises(Refused, match="what was named as the target is a drafter: take it as"):
            load_pair(request)


@pytest.mark.parametrize("bits", [4, 8])
def test_a_drafter_can_be_quantised_while_loading(tmp_path: Path, bits: int) -> None:
    config = drafter_config(
        draft_config(hidden_size=64, target_hidden_size=64, intermediate_size=128,
                     hidden_correction_intermediate_size=64)
    )  # fmt: skip
    key = mx.random.key(1)
    weights = {n: mx.random.normal(s, key=key) for n, s in tensor_shapes(config).items()}
    folder = tmp_path / "d"
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    drafter = load_drafter(folder, config, mx.float32, bits)
    assert drafter.fc.bits == bits
    assert drafter.hidden_correction.from_token.bits == bits
    assert not hasattr(drafter.norm, "bits")
    assert drafter.layer_fusion_weights.dtype == mx.float32
    full = load_drafter(folder, config, mx.float32)
    taps = [mx.random.normal((1, 4, 64), key=mx.random.key(i)) for i in range(len(TAPS))]
    near = mx.abs(drafter.contexts(taps)[0] - full.contexts(taps)[0]).mean().item()
    assert 0 < near < (0.2 if bits == 4 else 0.02)  # type: ignore[operator]


MISFITS: list[tuple[str, dict[str, Any], str]] = [
    ("layers", {"target_num_hidden_layers": 36}, "with 36 layers, t has 4"),
    ("width", {"target_hidden_size": 64}, "a hidden size of 64, t has 32"),
    ("vocabulary", {"vocab_size": 200}, "a vocabulary of 200, t has 96"),
    ("taps", {"target_layer_ids": [0, 1, 9]}, "tap 9 lies beyond the target's 4 layers"),
    ("taps unsorted", {"target_layer_ids": [1, 0, 3]}, "target_layer_ids is"),
    ("taps counted", {"num_target_layers": 5}, "num_target_layers is 5"),
    ("rope", {"rope_theta": None}, "rope_theta is missing"),
    ("mask", {"mask_token_id": 96}, "mask_token_id 96 lies beyond"),
    ("heads", {"num_key_value_heads": 3}, "4 attention heads can't share 3"),
    ("odd", {"head_dim": 13}, "head_dim 13 is odd"),
    ("block", {"block_size": 1}, "block_size 1 leaves nothing to draft"),
    ("huge block", {"block_size": 2**30}, "block_size is 1073741824, more than 64"),
    ("text", {"hidden_size": "32"}, "hidden_size is '32'"),
    ("shape", {"intermediate_size": 41}, r"mlp.gate_proj.weight has shape \[40, 32\]"),
]


@pytest.mark.parametrize(("changes", "said"), [m[1:] for m in MISFITS], ids=[m[0] for m in MISFITS])
def test_a_misfit_is_refused_naming_both_values(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    folder = save_drafter(tmp_path / "d", **changes)
    with pytest.raises(Refused, match=said) as caught:
        check_fit(tmp_path / "t", target_config(), folder)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def rename(weights: dict[str, mx.array]) -> None:
    weights["context_proj.weight"] = weights.pop("fc.weight")


def drop(weights: dict[str, mx.array]) -> None:
    del weights["layers.1.mlp.up_proj.weight"]


def add(weights: dict[str, mx.array]) -> None:
    weights["markov_head.weight"] = mx.zeros((2, 2))


def unfuse(weights: dict[str, mx.array]) -> None:
    del weights["layer_fusion_weights"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rename, "unconverted drafter.*dfly-mlx convert"),
        (drop, "layers.1.mlp.up_proj.weight is missing"),
        (add, "markov_head.weight belongs to no part"),
        (unfuse, "no DFly drafter"),
    ],
)
def test_tensors_that_do_not_belong_are_named(
    tmp_path: Path, change: Callable[[dict[str, mx.array]], None], said: str
) -> None:
    weights = published_weights()
    change(weights)
    folder = save_drafter(tmp_path / "d", weights)
    with pytest.raises(Refused, match=said):
        check_fit(tmp_path / "t", target_config(), folder)


def test_files_that_are_not_there_or_cut_short_are_named(tmp_path: Path) -> None:
    folder = save_drafter(tmp_path / "d")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(Refused, match="cut short"):
        check_fit(tmp_path / "t", target_config(), folder)
    weights.write_bytes(b"\xff" * 64)
    with pytest.raises(Refused, match="header is longer"):
        check_fit(tmp_path / "t", target_config(), folder)
    weights.unlink()
    with pytest.raises(Missing, match=r"no model\.safetensors"):
        check_fit(tmp_path / "t", target_config(), folder)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(Refused, match="dfly-mlx convert --draft"):
        check_fit(tmp_path / "t", target_config(), folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(Refused, match="can't be read"):
        check_fit(tmp_path / "t", target_config(), folder)
    (folder / "config.json").unlink()
    with pytest.raises(DflyError, match=r"no config\.json"):
        check_fit(tmp_path / "t", target_config(), folder)


def test_a_family_whose_config_has_no_head_size_loads_too() -> None:
    pair = make_pair(model_type="qwen2", head_dim=None)
    assert pair.info.kv_bytes_per_token == 2 * 4 * (4 * 2 * 8 + 2 * 2 * 12)
    prompt = [4, 5, 6]
    found = answer(Context(pair), prompt, GenerateOptions(max_tokens=20))
    assert found.ids == alone(pair, prompt, 20)


TARGETS: list[tuple[dict[str, Any], str]] = [
    ({"vocab_size": 0}, "vocab_size is 0 where"),
    ({"vocab_size": "many"}, "vocab_size is 'many' where"),
    ({"num_attention_heads": -4}, "num_attention_heads is -4 where"),
    ({"head_dim": 0}, "head_dim is 0 where"),
    ({"rope_theta": "x"}, "rope_theta is 'x' where"),
    ({"max_position_embeddings": -1}, "max_position_embeddings is -1 where"),
    ({"layer_types": 5}, "sliding-window"),
    ({"model_file": "evil.py"}, r"code of its own \(evil.py\)"),
]


@pytest.mark.parametrize(("changes", "said"), TARGETS, ids=[said for _, said in TARGETS])
def test_a_target_with_a_size_that_is_none_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        check_fit(Path("t"), target_config(**changes), None)


def test_a_hub_snapshot_is_called_by_its_id(tmp_path: Path) -> None:
    folder = save_drafter(tmp_path / "d", target_num_hidden_layers=36)
    snapshot = tmp_path / "models--owner--model" / "snapshots" / "0a1b"
    with pytest.raises(Refused, match="36 layers, owner/model has 4"):
        check_fit(snapshot, target_config(), folder)


def test_a_folder_name_that_mlx_lm_takes_for_a_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"no folder with \[, \* or \? in its name \(.*a\[1\]\)"):
        load_target(save_target(tmp_path / "a[1]"), ())


@pytest.mark.parametrize("kind", [mx.int16, mx.uint16, mx.int32, mx.uint8])
def test_weights_that_are_labelled_as_integers_are_refused_by_name(
    tmp_path: Path, kind: mx.Dtype
) -> None:
    label = {mx.int16: "I16", mx.uint16: "U16", mx.int32: "I32", mx.uint8: "U8"}[kind]
    target, weights = save_target(tmp_path / "t"), published_weights()
    name = "layers.0.self_attn.q_proj.weight"
    weights[name] = weights[name].astype(kind)
    drafter = save_drafter(tmp_path / "d", weights)
    with pytest.raises(Refused, match=f"d: tensor {name} has dtype {label}, not one of BF16, F16"):
        load_pair(Load(str(target), str(drafter)))
    path = str(target / "model.safetensors")
    whole = dict(mx.load(path).items())  # type: ignore[union-attr]
    name = "model.norm.weight"
    mx.save_safetensors(path, whole | {name: whole[name].astype(kind)})
    with pytest.raises(Refused, match=f"t: tensor {name} has dtype {label}"):
        load_pair(Load(str(target)))


INDEXES = [
    ("{", "can't be read"),
    ("[]", "holds no JSON object"),
    ("{}", "has no weight_map"),
    ('{"weight_map": [1]}', "has no weight_map"),
    ('{"weight_map": {"a": 5}}', "lacks 5"),
    ('{"weight_map": {"a": "model-2.safetensors"}}', "lacks model-2.safetensors"),
    ('{"weight_map": {"a": "../model.safetensors"}}', "lacks ../model.safetensors"),
]


@pytest.mark.parametrize(("index", "said"), INDEXES)
def test_an_index_that_names_no_shards_here_is_refused(
    tmp_path: Path, index: str, said: str
) -> None:
    folder = save_target(tmp_path / "t")
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(DflyError, match=said):
        load_pair(Load(str(folder)))


HEADERS = ["", "null", "5", '"a"', "[]", "[" * 100_000, '{"a": 5}', '{"a": {"shape": [1]}}',
           '{"a": {"shape": [1], "data_offsets": []}}']  # fmt: skip


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header[:20])
def test_a_header_that_is_none_is_refused(tmp_path: Path, header: str) -> None:
    data = struct.pack("<Q", len(header)) + header.encode()
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(Refused, match=r"model.safetensors can't be read"):
        read_headers(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"quantization": {}},
        {"quantization": {"bits": "x", "group_size": 64}},
        {"rope_scaling": {"type": "nope"}},
        {"rope_scaling": {"type": "yarn"}},
    ],
)
def test_a_drafter_that_cannot_be_built_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = save_drafter(tmp_path / "d")
    with pytest.raises(Refused, match=r"the drafter in .* can't be loaded"):
        load_drafter(folder, drafter_config(draft_config(**changes)), mx.float32)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds no JSON object"),
        ('{"eos_token_id": ["a"]}', r"is \['a'\], no token id"),
        ('{"eos_token_id": {}}', r"is \{\}, no token id"),
    ],
)
def test_a_generation_config_without_token_ids_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(Refused, match=said):
        stop_ids(tmp_path, {}, TinyTokenizer())


@pytest.mark.parametrize(("role", "named"), [("user", "a user"), ("assistant", "an assistant")])
def test_half_a_character_in_a_message_is_named(
    role: Literal["user", "assistant"], named: str
) -> None:
    with pytest.raises(Usage, match=rf"^{named} message is no valid text .* at character 1"):
        prompt_ids(TinyTokenizer(), [Message(role, "a\ud83d")])


def test_what_cannot_serve_is_refused_before_anything_large_is_read(tmp_path: Path) -> None:
    # There is not even a tokenizer yet, which is read before the weights.
    target = save_target(tmp_path / "t")
    packed = {"bits": 4, "group_size": 64}
    drafter = save_drafter(tmp_path / "d", quantization=packed)
    with pytest.raises(Refused, match="stored with 4 bits, 8 were asked for"):
        load_pair(Load(str(target), str(drafter), draft_bits=8))
    shutil.copy(EMBEDDED / "target" / "tokenizer.json", target)
    with pytest.raises(Refused, match="has no chat template: take an instruction-tuned model"):
        load_pair(Load(str(target), str(drafter)))
