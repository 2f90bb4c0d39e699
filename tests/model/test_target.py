"""The target is mlx-lm's own model: same bits, and taps where they belong."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import make_prompt_cache

from dfly_core.model.target import Target, check_family
from dfly_core.records.errors import Refused
from tests.tiny import TAPS, make_target, target_config

KINDS: dict[str, dict[str, Any]] = {
    "qwen3": {},
    "qwen3 tied": {"tie_word_embeddings": True},
    "llama": {"model_type": "llama"},
    "llama tied traditional": {
        "model_type": "llama",
        "tie_word_embeddings": True,
        "rope_traditional": True,
    },
}
IDS = [3, 14, 15, 92, 65, 35]


def forward(target: Target, sizes: list[int]) -> tuple[mx.array, list[mx.array]]:
    cache, at, logits, taps = target.make_cache(), 0, [], []
    for size in sizes:
        hidden, found = target.forward(mx.array([IDS[at : at + size]]), cache)
        logits.append(target.head(hidden))
        taps.append(found)
        at += size
    joined = [mx.concatenate(list(rows), axis=1) for rows in zip(*taps, strict=True)]
    return mx.concatenate(logits, axis=1), joined


def _divides(_: str, module: nn.Module) -> bool:
    return hasattr(module, "to_quantized") and module.weight.shape[-1] % 32 == 0


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("quantized", [False, True])
def test_the_pass_is_mlx_lms_own_bit_for_bit(kind: str, quantized: bool) -> None:
    target = make_target(**KINDS[kind])
    if quantized:
        nn.quantize(target.model, 32, 4, class_predicate=_divides)
        target = Target(target.model, target.config, TAPS)
    logits, _ = forward(target, [4, 1, 1])
    cache = make_prompt_cache(target.model)
    expected = [
        target.model(mx.array([IDS[a:b]]), cache=cache) for a, b in ((0, 4), (4, 5), (5, 6))
    ]
    assert mx.array_equal(logits, mx.concatenate(expected, axis=1))


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_tap_is_what_its_layer_hands_to_the_next(kind: str) -> None:
    target = make_target(**KINDS[kind])
    _, taps = forward(target, [6])
    h, leaving = target.embed(mx.array([IDS])), []
    for layer in target.layers:
        h = layer(h, "causal", None)
        leaving.append(h)
    assert len(taps) == len(TAPS)
    for tap, index in zip(taps, TAPS, strict=True):
        assert mx.allclose(tap, leaving[index], atol=1e-5)
        assert not mx.allclose(tap, leaving[index - 1 if index else 1], atol=1e-2)


def test_embedding_and_head_are_the_models_own_objects() -> None:
    tied, untied = make_target(tie_word_embeddings=True), make_target()
    assert tied.head_module is tied.model.model.embed_tokens
    assert untied.head_module is untied.model.lm_head
    hidden = mx.random.normal((1, 2, 32), key=mx.random.key(0))
    assert mx.array_equal(untied.head(hidden), untied.model.lm_head(hidden))
    assert mx.array_equal(tied.head(hidden), tied.model.model.embed_tokens.as_linear(hidden))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "mamba"}, "type 'mamba'"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding-window"),
        ({"use_sliding_window": True}, "sliding-window"),
    ],
)
def test_a_target_that_cannot_be_run_layer_by_layer_is_refused(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        check_family(target_config(**changes))
