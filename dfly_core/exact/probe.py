"""Each part of the model, a block of rows against single rows, all bits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.activations import swiglu

from dfly_core.exact.attention import AttentionShape
from dfly_core.exact.bits import KINDS, activations, all_true, same_bits
from dfly_core.exact.findings import LinearFinding
from dfly_core.model.kernels import LinearRoute
from dfly_core.model.routes import can_tile, chunk, native, rows, shape_of, tile
from dfly_core.model.target import Target

TIMED_MODULES = 4  # of one shape, timed in one go: the device's latency is shared among them
TIMED_TIMES = 2

LinearCall = Callable[[nn.Module, mx.array], mx.array]


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


def attention_shape(target: Target, most: int) -> AttentionShape:
    """What of a target its attention's bits turn on."""
    attention: Any = target.layers[0].self_attn
    return AttentionShape(
        heads=attention.n_heads,
        kv_heads=attention.n_kv_heads,
        size=attention.q_proj.weight.shape[0] // attention.n_heads,
        scale=attention.scale,
        dtype=target.dtype,
        most=most,
        limit=target.context_limit,
    )


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
