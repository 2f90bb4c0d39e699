"""The drafter equals the golden vectors, which two independent implementations agreed on."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import KVCache

from dfly_core.model.drafter import Drafter, Layer
from dfly_core.model.opened import Rotation
from tests.model.golden import Golden, load_golden
from tests.tiny import cached_rows

TOLERANCE = 1e-4


@pytest.fixture
def golden() -> Golden:
    return load_golden()


def worst(found: mx.array, expected: mx.array) -> float:
    assert found.shape == expected.shape
    return mx.abs(found - expected).max().item()  # type: ignore[return-value]


def token(logits: mx.array) -> int:
    return int(mx.argmax(logits).item())  # type: ignore[arg-type]


def new_taps(golden: Golden, cache: list[KVCache], cycle: int) -> list[mx.array]:
    """The tap rows that the cache lacks before a cycle."""
    return golden.taps(cache[0].offset, golden.ends[cycle])


def feed(golden: Golden, cache: list[KVCache], cycle: int) -> None:
    golden.drafter.read(new_taps(golden, cache, cycle), cache)


def correct(golden: Golden, hidden: mx.array, anchor: int) -> tuple[mx.array, mx.array, list[int]]:
    """Corrected rows, logits and drafted ids, left to right."""
    correction, before = golden.drafter.hidden_correction, anchor
    rows, logits, drafted = [], [], []
    for j in range(1, hidden.shape[0]):
        h = hidden[j : j + 1]
        told = correction.told(golden.embed(mx.array([before])))
        row = correction(h, correction.prepare(h), told)
        rows.append(row)
        logits.append(golden.head(row))
        before = token(logits[-1])
        drafted.append(before)
    return mx.concatenate(rows), mx.concatenate(logits), drafted


def all_errors(golden: Golden, on_the_way: bool = False) -> dict[str, float]:
    """Worst absolute difference of every stage over the three cycles with a growing context.

    The new context rows are read before the block is drafted, or `on_the_way`.
    """
    errors: dict[str, float] = {}
    found = golden.drafter.contexts(golden.taps(0, 15))
    errors["contexts"] = worst(found, golden.arrays["mlx.contexts"])
    cache = golden.drafter.make_cache()
    for cycle in range(3):
        taps: list[mx.array] = []
        if on_the_way:
            taps = new_taps(golden, cache, cycle)
        else:
            feed(golden, cache, cycle)
        hidden = golden.drafter.backbone(golden.block(cycle), cache, taps)
        for i, store in enumerate(cache):
            keys, values = cached_rows(store)
            for name, rows in (("k", keys), ("v", values)):
                key = f"mlx.cycle{cycle}.cache_{name}.{i}"
                errors[key] = worst(rows[0], golden.arrays[key])
        errors[f"hidden{cycle}"] = worst(hidden, golden.arrays[f"torch.cycle{cycle}.hidden"])
        rows, logits, drafted = correct(golden, hidden, golden.meta["anchors"][cycle])
        errors[f"corrected{cycle}"] = worst(rows, golden.arrays[f"torch.cycle{cycle}.corrected"])
        errors[f"logits{cycle}"] = worst(logits, golden.arrays[f"torch.cycle{cycle}.logits"])
        errors[f"drafted{cycle}"] = float(drafted != golden.meta["drafted"][f"cycle{cycle}"])
    return errors


@pytest.mark.parametrize("on_the_way", [False, True])
def test_every_stage_of_three_cycles_equals_the_vectors(golden: Golden, on_the_way: bool) -> None:
    errors = all_errors(golden, on_the_way)
    assert len(errors) == 1 + 3 * (6 + 4)
    assert max(errors.values()) < TOLERANCE, errors


def test_cached_context_equals_a_context_read_at_once(golden: Golden) -> None:
    for cycle, end in enumerate(golden.ends):
        cache = golden.drafter.make_cache()
        golden.drafter.read(golden.taps(0, end), cache)
        hidden = golden.drafter.backbone(golden.block(cycle), cache)
        expected = golden.arrays[f"mlx.cycle{cycle}.hidden_nocache"]
        assert worst(hidden, expected) < TOLERANCE


def test_a_short_block_is_another_input_and_equals_its_own_vectors(golden: Golden) -> None:
    cache = golden.drafter.make_cache()
    feed(golden, cache, 0)
    hidden = golden.drafter.backbone(golden.block(0, rows=4), cache)
    assert worst(hidden, golden.arrays["torch.short4.hidden"]) < TOLERANCE
    assert worst(hidden, golden.arrays["torch.cycle0.hidden"][:4]) > 100 * TOLERANCE


def test_block_rows_never_stay_in_the_cache(golden: Golden) -> None:
    cache = golden.drafter.make_cache()
    feed(golden, cache, 0)
    before = [mx.array(cached_rows(store)[0]) for store in cache]
    golden.drafter.backbone(golden.block(0), cache)
    for store, keys in zip(cache, before, strict=True):
        assert store.offset == golden.ends[0]
        assert mx.array_equal(cached_rows(store)[0], keys)


# Each mistake that others made in silence, made on purpose: the comparison above must see it.


def taps_off_by_one(golden: Golden) -> None:
    features = golden.arrays["in.features"]
    shifted = mx.concatenate([features[..., 64:], features[..., :64]], axis=-1)
    golden.arrays = {**golden.arrays, "in.features": shifted}


def context_through_input_layernorm(golden: Golden) -> None:
    def normed(layer: Layer) -> Callable[[mx.array, int], tuple[mx.array, mx.array]]:
        plain, norm = layer.self_attn.keys_values, layer.input_layernorm

        def keys_values(rows: mx.array, position: int) -> tuple[mx.array, mx.array]:
            if position == 0:
                rows = mx.concatenate([norm(rows[:11]), rows[11:]])
            return plain(rows, position)

        return keys_values

    for layer in golden.drafter.layers:
        layer.self_attn.keys_values = normed(layer)  # type: ignore[method-assign,assignment]


def fusion_transposed(golden: Golden) -> None:
    weights = golden.drafter.layer_fusion_weights
    golden.drafter.layer_fusion_weights = weights.T.reshape(3, 4)


def one_k_norm_for_all(golden: Golden) -> None:
    for layer in golden.drafter.layers[1:]:
        layer.self_attn.k_norm = golden.drafter.layers[0].self_attn.k_norm


def rope_base_10000(golden: Golden) -> None:
    for layer in golden.drafter.layers:
        layer.self_attn.turn = Rotation(nn.RoPE(32, base=10000))


def positions_off_by_one(golden: Golden) -> None:
    for layer in golden.drafter.layers:
        plain = layer.self_attn.keys_values
        layer.self_attn.keys_values = lambda rows, position, f=plain: f(rows, position + 1)  # type: ignore[method-assign,misc]


def fusion_softmax_in_bf16(golden: Golden) -> None:
    shares = mx.softmax(golden.drafter.layer_fusion_weights.astype(mx.bfloat16), axis=-1)
    golden.drafter.layer_fusion_weights = mx.log(shares.astype(mx.float32))


def fusion_skipped(golden: Golden) -> None:
    golden.drafter.layer_fusion_weights = mx.zeros((3, 4))


def norm_before_the_fused_sum(golden: Golden) -> None:
    drafter = golden.drafter

    def contexts(taps: list[mx.array]) -> mx.array:
        base = drafter.hidden_norm(drafter.fc(mx.concatenate(taps, axis=-1)))
        shares = mx.softmax(drafter.layer_fusion_weights, axis=-1)
        return mx.stack([(base + mx.stack(taps, axis=-1) @ shares[i])[0] for i in range(3)])

    drafter.contexts = contexts  # type: ignore[assignment,method-assign]


MISTAKES: list[Callable[[Golden], None]] = [
    taps_off_by_one,
    context_through_input_layernorm,
    fusion_transposed,
    one_k_norm_for_all,
    rope_base_10000,
    positions_off_by_one,
    fusion_softmax_in_bf16,
    fusion_skipped,
    norm_before_the_fused_sum,
]


@pytest.mark.parametrize("on_the_way", [False, True])
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__)
def test_a_silent_mistake_is_seen(
    golden: Golden, mistake: Callable[[Golden], None], on_the_way: bool
) -> None:
    mistake(golden)
    errors = all_errors(golden, on_the_way)
    assert max(errors.values()) > TOLERANCE, errors


def test_a_causal_mask_inside_the_block_is_seen(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = mx.fast.scaled_dot_product_attention
    monkeypatch.setattr(
        mx.fast,
        "scaled_dot_product_attention",
        lambda q, k, v, scale: real(q, k, v, scale=scale, mask="causal"),
    )
    assert max(all_errors(golden).values()) > TOLERANCE


def test_block_rows_off_by_one_are_seen(golden: Golden) -> None:
    cache = golden.drafter.make_cache()
    feed(golden, cache, 0)
    hidden = golden.drafter.backbone(golden.block(0), cache)
    shifted = mx.concatenate([hidden[:, :1], hidden[:, :-1]], axis=1)
    _, _, drafted = correct(golden, shifted, golden.meta["anchors"][0])
    assert drafted != golden.meta["drafted"]["cycle0"]


def test_the_correction_need_not_be_as_wide_as_the_model(golden: Golden) -> None:
    drafter: Drafter = golden.drafter
    assert drafter.config.hidden_correction_intermediate_size == 80
    assert drafter.hidden_correction.down_proj.weight.shape == (64, 80)
