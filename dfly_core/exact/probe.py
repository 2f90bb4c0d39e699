"""Each part of the model, a block of rows against single rows, all bits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.activations import swiglu

from dfly_core.exact.findings import AttentionFinding, LinearFinding
from dfly_core.model.routes import (
    BOUNDS,
    LinearRoute,
    attend,
    can_tile,
    chunk,
    native,
    rows,
    segment,
    shape_of,
    tile,
)
from dfly_core.model.target import Target

TIMED_MODULES = 4  # of one shape, timed in one go: the device's latency is shared among them
TIMED_TIMES = 2
REPEATED = 4096  # rows of noise
KINDS = ("even", "wide", "spiked")

# Context rows before a probed block of attention, within one segment: both its ends, places
# between, and a stretch of `REMAINDERS`. A kernel that takes keys in fours may treat a block
# otherwise at one key count in four only, as OpenBLAS's for AVX-512 does.
REMAINDERS = 16
BASES = (0, 2, 7, 15, 32, 63, 100, 181, 248, 330, 511, 700, 903, 1015, 1500, 2040, 3001, 4087)
BEYOND = (4500, 6001, 9000, 12000, 20000, 30001, 45000, 70000)


LinearCall = Callable[[nn.Module, mx.array], mx.array]


def same_bits(a: mx.array, b: mx.array) -> mx.array:
    """Whether all bits agree; lazy, so that many can be asked at once."""
    kinds = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32}
    return mx.array_equal(a.view(kinds[a.dtype.size]), b.view(kinds[b.dtype.size]))


def all_true(flags: Sequence[mx.array]) -> bool:
    """Fetch many answers in one go."""
    return bool(mx.all(mx.stack(list(flags))).item()) if flags else True


def activations(kind: str, shape: Sequence[int], dtype: mx.Dtype, seed: int) -> mx.array:
    """Inputs like a model's: even, of very different magnitudes, or with a few large channels."""
    key, other = mx.random.split(mx.random.key(seed))
    noise = mx.random.normal(shape, key=key)
    if kind == "wide":
        noise = noise * mx.exp(2.0 * mx.random.normal(shape, key=other))
    if kind == "spiked":
        noise = mx.where(mx.random.uniform(shape=shape[-1:], key=other) < 0.02, 50.0, 1.0) * noise
    return noise.astype(dtype)


def linear_modules(target: Target) -> dict[str, list[nn.Module]]:
    """The target's linear modules by shape, the head among them."""
    found: dict[str, list[nn.Module]] = {}
    for layer in target.layers:
        attention, mlp = layer.self_attn, layer.mlp
        names = (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
        for module in (*names, mlp.gate_proj, mlp.up_proj, mlp.down_proj):
            found.setdefault(shape_of(module), []).append(module)
    found.setdefault(shape_of(target.head_module), []).append(target.head_module)
    return found


def probe_linear(modules: list[nn.Module], most: int, dtype: mx.Dtype) -> list[LinearFinding]:
    """One shape at 2..most rows; every route on three kinds of activations, then timed."""
    shape, module = shape_of(modules[0]), modules[0]
    columns = int(shape.split("x", 1)[0])
    inputs = [activations(kind, (1, most, columns), dtype, i) for i, kind in enumerate(KINDS)]
    alone = [[native(module, x[:, i : i + 1]) for i in range(most)] for x in inputs]
    expected = [mx.concatenate(one, axis=1) for one in alone]
    mx.eval(expected)
    sizes, out = {1}, []
    for count in range(2, most + 1):

        def same(call: LinearCall, count: int = count) -> bool:
            pairs = zip(inputs, expected, strict=True)
            return all_true(
                [same_bits(call(module, x[:, :count]), want[:, :count]) for x, want in pairs]
            )

        if same(native):
            # Nothing else is looked at: a detour that nothing demands would be one more risk.
            sizes.add(count)
            out.append(LinearFinding(shape, count, ("native",), ()))
            continue
        routes = _detours(module, frozenset(sizes))
        names = [name for name, call in routes.items() if same(call)]
        seconds = [_time(modules, count, columns, routes[name], dtype) for name in names]
        out.append(LinearFinding(shape, count, tuple(names), tuple(seconds)))
    return out


def _detours(module: nn.Module, sizes: frozenset[int]) -> dict[LinearRoute, LinearCall]:
    routes: dict[LinearRoute, LinearCall] = {}
    if max(sizes) > 1:
        routes["chunk"] = lambda m, x: chunk(m, x, sizes)
    if can_tile(module):
        routes["tile"] = tile
    return routes | {"rows": rows}


def _time(
    modules: list[nn.Module], count: int, columns: int, call: LinearCall, dtype: mx.Dtype
) -> float:
    """Seconds of one module's call, the best of a few."""
    x = activations("even", (1, count, columns), dtype, 0)
    timed = modules[:TIMED_MODULES]
    best = float("inf")
    for _ in range(TIMED_TIMES):
        start = time.perf_counter()
        mx.eval([call(module, x) for module in timed])
        best = min(best, time.perf_counter() - start)
    return best / len(timed)


def stretches(limit: int, most: int) -> Iterator[tuple[int, list[int]]]:
    """(segment, numbers of context rows that follow on) to probe attention at.

    Blocks of `most` rows after any of them lie in one segment.
    """
    edges = [e for b in BOUNDS for e in (b - 1, b - most - 1)]
    starts = (REMAINDERS, *(b - 1 for b in BOUNDS))
    every = {start + r for start in starts for r in range(REMAINDERS)}
    run: list[int] = []
    for before in sorted({*BASES, *BEYOND, *edges, *every, limit - most}):
        where = segment(before + 1)
        if before < 0 or before > limit - most or where != segment(before + most):
            continue
        if run and (before != run[-1] + 1 or where != segment(run[0] + 1)):
            yield segment(run[0] + 1), run
            run = []
        run.append(before)
    if run:
        yield segment(run[0] + 1), run


def probe_attention(target: Target, most: int, limit: int) -> list[AttentionFinding]:
    """Native blocks of 2..most rows against single rows, segment by segment."""
    attention = target.layers[0].self_attn
    heads, kv_heads = attention.n_heads, attention.n_kv_heads
    size = attention.q_proj.weight.shape[0] // heads
    found: dict[int, set[int]] = {}
    seen: dict[int, list[int]] = {}
    for index, (where, befores) in enumerate(stretches(limit, most)):
        exact = found.setdefault(where, set(range(2, most + 1)))
        seen.setdefault(where, []).extend(before + 1 for before in befores)
        first, rows = befores[0], befores[-1] - befores[0] + most
        # Even keys all weigh something in the sum, so that an order of summing shows in any.
        kind = KINDS[index % len(KINDS)] if len(befores) == 1 else "even"
        queries = activations(kind, (1, heads, rows, size), target.dtype, 3 * index)
        keys, values = (
            _repeated(kind, (1, kv_heads, first + rows, size), target.dtype, 3 * index + i)
            for i in (1, 2)
        )

        def rows_of(
            at: int,
            count: int,
            first: int = first,
            queries: mx.array = queries,
            keys: mx.array = keys,
            values: mx.array = values,
        ) -> mx.array:
            upto = first + at + count
            block = queries[:, :, at : at + count]
            return attend(block, keys[:, :, :upto], values[:, :, :upto], attention.scale)

        # A row is alone once, whatever blocks it is in.
        alone = mx.concatenate([rows_of(at, 1) for at in range(rows)], axis=2)
        for at in range(len(befores)):
            counts = sorted(exact)
            same = [same_bits(rows_of(at, n), alone[:, :, at : at + n]) for n in counts]
            mx.eval(same)
            exact.difference_update(n for n, ok in zip(counts, same, strict=True) if not ok.item())
    return [
        AttentionFinding(where, tuple(sorted(rows)), tuple(seen[where]))
        for where, rows in found.items()
    ]


def _repeated(kind: str, shape: tuple[int, ...], dtype: mx.Dtype, seed: int) -> mx.array:
    """Activations whose rows begin again after a while: at 40,000 keys noise takes memory."""
    rows = min(shape[2], REPEATED)
    block = activations(kind, (*shape[:2], rows, shape[3]), dtype, seed)
    return mx.tile(block, (1, 1, -(-shape[2] // rows), 1))[:, :, : shape[2]]


def probe_operations(target: Target, most: int) -> list[tuple[str, tuple[int, ...]]]:
    """What has no detour (norms, rope, the gate): the row counts at which it was bit-equal."""
    layer: Any = target.layers[0]
    attention, hidden = layer.self_attn, target.layers[0].input_layernorm.weight.shape[0]
    size = attention.q_proj.weight.shape[0] // attention.n_heads
    x = activations("wide", (1, most, hidden), target.dtype, 1)
    split = activations("wide", (1, attention.n_heads, most, size), target.dtype, 2)

    def rope(at: int) -> Callable[[mx.array, int], mx.array]:
        return lambda part, first: attention.rope(part, offset=at + first)

    checks: dict[str, tuple[Callable[[mx.array, int], mx.array], mx.array, int]] = {
        "norm": (lambda part, _: layer.input_layernorm(part), x, 1),
        "gate": (lambda part, _: swiglu(part, part), x, 1),
        "rope": (rope(0), split, 2),
        "rope far on": (rope(1000), split, 2),
    }
    if "q_norm" in attention:
        checks["head norm"] = (lambda part, _: attention.q_norm(part), split, 2)
    out = []
    for name, (call, rows_in, axis) in checks.items():
        pieces = mx.split(rows_in, most, axis=axis)
        alone = mx.concatenate([call(p, i) for i, p in enumerate(pieces)], axis=axis)
        good = []
        for count in range(2, most + 1):
            block = call(mx.concatenate(list(pieces[:count]), axis=axis), 0)
            want = mx.concatenate(list(mx.split(alone, most, axis=axis)[:count]), axis=axis)
            if all_true([same_bits(block, want)]):
                good.append(count)
        out.append((name, tuple(good)))
    return out
