"""Ways to run a linear layer or attention over several rows at once.

M rows in one call may take another kernel than one row does, and round differently. Every
route here but `native` gives each row the bits it has alone, by construction or because the
self-test saw it (`dfly_core.exact`); stock MLX operations only, no module is changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.activations import swiglu
from mlx_lm.models.cache import KVCache

from dfly_core.model import opened
from dfly_core.model.kernels import BOUNDS, LinearRoute, attend, segment
from dfly_core.model.layout import on_cpu

# Weight rows a tile holds: 32 x 4096 at 4 bits are 74 KB, small enough for a core's cache. A
# weight that lies by columns is one tile: a part of it would be copied out at every call.
TILE = 32


def shape_of(module: nn.Module) -> str:
    """What decides a linear module's kernel: "4096x12288 q4/64", "192x512 float32 +bias"."""
    rows, columns = module.weight.shape
    bias = " +bias" if "bias" in module else ""
    if "scales" not in module:
        return f"{columns}x{rows} {str(module.weight.dtype).removeprefix('mlx.core.')}{bias}"
    kind = "q" if getattr(module, "mode", "affine") == "affine" else f"{module.mode} "
    columns = columns * 32 // module.bits
    return f"{columns}x{rows} {kind}{module.bits}/{module.group_size}{bias}"


def native(module: nn.Module, x: mx.array) -> mx.array:
    """The module's own call, (1, M, K) -> (1, M, N); a tied embedding serves as the head."""
    if isinstance(module, (nn.Embedding, nn.QuantizedEmbedding)):
        return module.as_linear(x)
    return module(x)


def chunk(module: nn.Module, x: mx.array, sizes: frozenset[int]) -> mx.array:
    """Native calls of row counts in `sizes` only."""
    out = [native(module, x[:, a:b]) for a, b in parts(x.shape[1], sizes)]
    return mx.concatenate(out, axis=1)


def rows(module: nn.Module, x: mx.array) -> mx.array:
    """One call a row: the definition the others are measured by."""
    return chunk(module, x, frozenset({1}))


def can_tile(module: nn.Module) -> bool:
    """Whether the weight's rows divide into tiles."""
    return module.weight.shape[0] % _tile_rows(module) == 0


def _tile_rows(module: nn.Module) -> int:
    by_columns = "scales" not in module and on_cpu()
    return int(module.weight.shape[0]) if by_columns else TILE


def tile(module: nn.Module, x: mx.array) -> mx.array:
    """Every row by the one-row kernel, a tile of weights at a time.

    x as (1, M, 1, K) against w viewed as (N/n, 1, n, K): the batch runs tile by tile, and
    the M rows that follow one another read the same tile while it is in cache.
    """
    count, outputs, size = x.shape[1], module.weight.shape[0], _tile_rows(module)

    def view(array: mx.array) -> mx.array:
        return array.reshape(outputs // size, 1, size, -1)

    spread = x.reshape(1, count, 1, -1)
    if "scales" in module:
        biases = module.get("biases")
        out = mx.quantized_matmul(
            spread,
            view(module.weight),
            view(module.scales),
            None if biases is None else view(biases),
            transpose=True,
            group_size=module.group_size,
            bits=module.bits,
            mode=getattr(module, "mode", "affine"),
        )
    else:
        out = spread @ view(module.weight).swapaxes(-1, -2)
    out = out.transpose(2, 1, 0, 3).reshape(1, count, outputs)
    return out + module.bias if "bias" in module else out


def parts(count: int, sizes: Iterable[int]) -> list[tuple[int, int]]:
    """Cut `count` rows into runs [a, b) of the largest sizes allowed; one row always is."""
    allowed, at, out = sorted({1, *sizes}), 0, []
    while at < count:
        size = max(size for size in allowed if size <= count - at)
        out.append((at, at + size))
        at += size
    return out


def split_attend(
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    scale: float,
    runs: list[tuple[int, int]],
) -> mx.array:
    """Attention in runs of rows [a, b), each over the keys up to its own last row."""
    if len(runs) > 1 and on_cpu():
        return opened.attend(queries, keys, values, scale, runs)
    before = keys.shape[2] - queries.shape[2]
    out = [
        attend(queries[:, :, a:b], keys[:, :, : before + b], values[:, :, : before + b], scale)
        for a, b in runs
    ]
    return out[0] if len(out) == 1 else mx.concatenate(out, axis=2)


@dataclass(frozen=True)
class Routes:
    """The ways a verification block takes.

    `linear` maps (shape, rows) to a route; what it does not name goes row by row. `sizes`
    are the row counts at which a shape's native call is exact, for `chunk`. `attention` maps
    the segments between `BOUNDS` (0 the first) to the exact row counts of a native block.
    At the row counts in `straight` no linear layer needs a detour. Row counts in `other`
    have routes of their own.
    """

    linear: Mapping[tuple[str, int], LinearRoute] = field(default_factory=dict)
    sizes: Mapping[str, frozenset[int]] = field(default_factory=dict)
    attention: Mapping[int, frozenset[int]] = field(default_factory=dict)
    straight: frozenset[int] = frozenset()
    other: Mapping[int, Routes] = field(default_factory=dict)
    _shapes: dict[int, str] = field(default_factory=dict, repr=False, compare=False)
    _heads: dict[int, opened.Heads] = field(default_factory=dict, repr=False, compare=False)
    _runs: dict[tuple[int, int], list[tuple[int, int]]] = field(
        default_factory=dict, repr=False, compare=False
    )  # of the last block: every layer asks for the same

    def at(self, count: int) -> Routes:
        """The routes of blocks of `count` rows."""
        return self.other.get(count, self)

    def native(self, before: int, count: int) -> bool:
        """Whether a block of `count` rows after `before` keys may run as mlx-lm runs it."""
        return count in self.straight and len(self.runs(before, count)) == 1

    def product(self, module: nn.Module, x: mx.array) -> mx.array:
        """A linear module over the block's rows, (1, M, K) -> (1, M, N)."""
        shape = self._shapes.get(id(module))
        if shape is None:
            shape = self._shapes[id(module)] = shape_of(module)
        route = self.linear.get((shape, x.shape[1]), "rows")
        if route == "native":
            return native(module, x)
        if route == "tile":
            return tile(module, x)
        if route == "chunk":
            return chunk(module, x, self.sizes.get(shape, frozenset()))
        return rows(module, x)

    def runs(self, before: int, count: int) -> list[tuple[int, int]]:
        """How `count` rows after `before` keys are cut: at bounds, then to exact row counts."""
        found = self._runs.get((before, count))
        if found is None:
            found = self._cut(before, count)
            self._runs.clear()
            self._runs[before, count] = found
        return found

    def _cut(self, before: int, count: int) -> list[tuple[int, int]]:
        cuts = [0, *(b - before - 1 for b in BOUNDS if 0 < b - before - 1 < count), count]
        out = []
        for a, b in itertools.pairwise(cuts):
            sizes = self.attention.get(segment(before + a + 1), frozenset())
            out += [(a + c, a + d) for c, d in parts(b - a, sizes)]
        return out

    def layer(self, layer: Any, h: mx.array, cache: KVCache) -> mx.array:
        """A decoder layer of the families in `target.FAMILIES` over a block (1, M, D).

        The same operations in the same order as mlx-lm's, but for the detours.
        """
        attention, count = layer.self_attn, h.shape[1]
        x = layer.input_layernorm(h)
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        queries, keys, values = (
            self.product(module, x).reshape(1, count, heads, -1)
            for module, heads in zip(
                projections,
                (attention.n_heads, attention.n_kv_heads, attention.n_kv_heads),
                strict=True,
            )
        )
        before = cache.offset
        queries, keys = self._heads_of(attention)(queries, keys, before)
        keys, values = cache.update_and_fetch(keys, values.transpose(0, 2, 1, 3))
        out = split_attend(queries, keys, values, attention.scale, self.runs(before, count))
        out = out.transpose(0, 2, 1, 3).reshape(1, count, -1)
        h = h + self.product(attention.o_proj, out)
        x, mlp = layer.post_attention_layernorm(h), layer.mlp
        inner = swiglu(self.product(mlp.gate_proj, x), self.product(mlp.up_proj, x))
        return h + self.product(mlp.down_proj, inner)

    def _heads_of(self, attention: Any) -> opened.Heads:
        found = self._heads.get(id(attention))
        if found is None:
            found = self._heads[id(attention)] = opened.Heads(attention)
        return found
