"""Routes: the same layer as mlx-lm's, and rows that keep the bits they have alone."""

from __future__ import annotations

import itertools
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfly_core.exact.bits import activations, all_true, same_bits
from dfly_core.exact.probe import linear_modules
from dfly_core.model.kernels import BOUNDS, attend, segment
from dfly_core.model.layout import on_cpu
from dfly_core.model.routes import (
    TILE,
    Routes,
    can_tile,
    native,
    parts,
    rows,
    shape_of,
    split_attend,
    tile,
)
from dfly_core.model.target import Target
from tests.tiny import TAPS, make_target

KINDS: dict[str, dict[str, Any]] = {
    "qwen3": {},
    "qwen3 tied": {"tie_word_embeddings": True},
    "qwen2 with biases": {"model_type": "qwen2", "head_dim": 8},
    "llama": {"model_type": "llama"},
    "llama traditional": {"model_type": "llama", "rope_traditional": True},
    "llama with biases": {"model_type": "llama", "attention_bias": True, "mlp_bias": True},
    "quantised": {"hidden_size": 64, "intermediate_size": 64},
}
IDS = mx.array([[3, 14, 15, 92, 65, 35, 8, 9, 79]])
MOST = 6


def target_of(kind: str) -> Target:
    target = make_target(**KINDS[kind])
    if kind == "quantised":
        nn.quantize(target.model, 32, 4)
        target = Target(target.model, target.config, TAPS)
    return target


def routes_all(target: Target, route: Any) -> Routes:
    """`route` for every linear layer, blocks of attention as they come."""
    shapes = linear_modules(target)
    able = {s for s, modules in shapes.items() if route != "tile" or can_tile(modules[0])}
    return Routes(
        linear={(shape, count): route for shape in able for count in range(2, MOST + 1)},
        sizes=dict.fromkeys(shapes, frozenset({2, 3})),
        attention={0: frozenset(range(2, MOST + 1))},
    )


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_layer_by_native_routes_is_mlx_lms_own_bit_for_bit(kind: str) -> None:
    target = target_of(kind)
    routes = routes_all(target, "native")
    assert not routes.straight  # else the target would take mlx-lm's own layers
    mine, theirs = target.make_cache(), target.make_cache()
    for a, b in ((0, 3), (3, 5), (5, 9)):
        hidden, taps = target.forward(IDS[:, a:b], mine, routes)
        wanted, wanted_taps = target.forward(IDS[:, a:b], theirs)
        assert mx.array_equal(hidden, wanted)
        assert all(mx.array_equal(x, y) for x, y in zip(taps, wanted_taps, strict=True))
        assert mx.array_equal(target.head(hidden, routes), target.head(wanted))
    for x, y in zip(mine, theirs, strict=True):
        assert mx.array_equal(x.keys, y.keys)
        assert mx.array_equal(x.values, y.values)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("route", ["chunk", "tile", "rows"])
def test_a_detour_computes_what_the_straight_way_does(kind: str, route: str) -> None:
    target = target_of(kind)
    cache, plain = target.make_cache(), target.make_cache()
    target.forward(IDS[:, :3], cache)
    target.forward(IDS[:, :3], plain)
    hidden, _ = target.forward(IDS[:, 3:], cache, routes_all(target, route))
    wanted, _ = target.forward(IDS[:, 3:], plain)
    assert mx.allclose(hidden, wanted, atol=1e-4)


@pytest.mark.parametrize("kind", ["qwen3", "quantised", "llama with biases"])
def test_row_by_row_has_the_bits_of_single_rows(kind: str) -> None:
    target = target_of(kind)
    for modules in linear_modules(target).values():
        for module in modules:
            columns = int(shape_of(module).split("x")[0])
            x = mx.random.normal((1, MOST, columns), key=mx.random.key(3))
            alone = mx.concatenate([native(module, x[:, i : i + 1]) for i in range(MOST)], axis=1)
            assert mx.array_equal(rows(module, x), alone)
            if can_tile(module):
                assert mx.allclose(tile(module, x), alone, atol=1e-4)
                # On the CPU a batch is so many calls of one row; elsewhere the self-test says.
                assert not on_cpu() or mx.array_equal(tile(module, x), alone)


def test_a_layer_that_lies_by_columns_is_one_tile() -> None:
    dense, packed = nn.Linear(64, 56, bias=False), nn.QuantizedLinear(64, 56, bits=4)
    assert can_tile(dense) == on_cpu()
    assert not can_tile(packed)
    assert can_tile(nn.QuantizedLinear(64, 2 * TILE, bits=4))


def test_a_shape_names_what_decides_the_kernel() -> None:
    dense, packed = make_target(), target_of("quantised")
    assert set(linear_modules(dense)) == {
        "32x64 float32", "32x32 float32", "64x32 float32", "32x48 float32", "48x32 float32",
        "32x96 float32",
    }  # fmt: skip
    assert "64x64 q4/32" in linear_modules(packed)
    biased = target_of("llama with biases")
    assert "32x64 float32 +bias" in linear_modules(biased)


@given(st.integers(0, 70_000), st.integers(1, 16), st.sets(st.integers(2, 16)))
def test_runs_cover_the_rows_and_never_cross_a_bound(
    before: int, count: int, sizes: set[int]
) -> None:
    routes = Routes(attention=dict.fromkeys(range(len(BOUNDS) + 1), frozenset(sizes)))
    found = routes.runs(before, count)
    assert [i for a, b in found for i in range(a, b)] == list(range(count))
    for a, b in found:
        assert b - a in {1, *sizes}
        assert segment(before + a + 1) == segment(before + b)


def test_a_block_across_the_two_pass_threshold_is_split_there() -> None:
    routes = Routes(attention={1: frozenset({2, 3, 4, 5}), 3: frozenset({2, 3, 4, 5})})
    assert routes.runs(1021, 5) == [(0, 2), (2, 3), (3, 5)]
    assert routes.runs(1018, 5) == [(0, 5)]


def test_a_block_is_split_where_openblas_begins_to_sum_over_the_keys_in_two() -> None:
    routes = Routes(attention={0: frozenset({2, 3, 5}), 1: frozenset({2, 3, 5})})
    assert routes.runs(318, 5) == [(0, 2), (2, 5)]
    assert routes.runs(315, 5) == [(0, 5)]


def test_where_nothing_was_probed_attention_goes_row_by_row() -> None:
    assert Routes(attention={0: frozenset({4})}).runs(5000, 4) == [(0, 1), (1, 2), (2, 3), (3, 4)]


@given(st.integers(1, 20), st.sets(st.integers(1, 20)))
def test_parts_take_the_largest_sizes_allowed(count: int, sizes: set[int]) -> None:
    found = parts(count, sizes)
    assert found[0][0] == 0
    assert found[-1][1] == count
    assert all(b == c for (_, b), (c, _) in itertools.pairwise(found))
    widest = max([1, *(s for s in sizes if s <= count)])
    assert found[0][1] == widest


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16, mx.float16], ids=str)
@pytest.mark.parametrize("before", [0, 1, 7, 30, 181, 330, 700])
@pytest.mark.parametrize(("heads", "kv_heads", "size"), [(4, 2, 48), (8, 2, 128), (3, 3, 16)])
def test_attention_in_runs_has_the_bits_of_a_call_for_each(
    heads: int, kv_heads: int, size: int, before: int, dtype: mx.Dtype
) -> None:
    """On the CPU the runs share what they can; elsewhere they are these calls."""
    queries = activations("wide", (1, heads, 8, size), dtype, before)
    # As in a cache: views of more rows than are in use.
    keys, values = (
        activations("spiked", (1, kv_heads, before + 30, size), dtype, before + i)[
            :, :, : before + 8
        ]
        for i in (1, 2)
    )
    for runs in ([(0, 3), (3, 6), (6, 8)], [(i, i + 1) for i in range(8)], [(0, 5), (5, 8)]):
        calls = [
            attend(queries[:, :, a:b], keys[:, :, : before + b], values[:, :, : before + b], 0.17)
            for a, b in runs
        ]
        found = split_attend(queries, keys, values, 0.17, runs)
        assert all_true([same_bits(found, mx.concatenate(calls, axis=2))])
