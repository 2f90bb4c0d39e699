"""Attention's small operations in the open, for MLX on the CPU.

MLX's fast operations are there made of plain ones (a rotation of 18, a norm of 7, attention of
about 15), and a small model spends its time on their number. These do the same arithmetic on
the same shapes, so they give the same bits, and repeat less. Elsewhere MLX has kernels.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from dfly_core.model.layout import on_cpu

SPAN = 256  # positions whose angles are made at once


class Rotation:
    """A rope module whose cosines and sines are made for many positions at once."""

    def __init__(self, rope: nn.Module) -> None:
        self._rope = rope
        # Other kinds scale as well, and would round elsewhere.
        self._opened = on_cpu() and type(rope) is nn.RoPE and not rope.traditional
        self._first = 0
        self._cosines = self._sines = mx.zeros((0,))

    def __call__(self, rows: mx.array, position: int) -> mx.array:
        """Rows (1, H, M, d) turned, the first by `position`. Lazy."""
        count, size = rows.shape[2:]
        if not self._opened or rows.dtype != mx.float32 or size != self._rope.dims or count > SPAN:
            turned: mx.array = self._rope(rows, offset=position)
            return turned
        at = position - self._first
        if at < 0 or at + count > self._cosines.shape[0]:
            self._make(position)
            at = 0
        left, right = mx.split(rows, 2, axis=-1)
        crossed = mx.concatenate([right, left], axis=-1)
        return rows * self._cosines[at : at + count] + crossed * self._sines[at : at + count]

    def _make(self, position: int) -> None:
        """Angles from `position` on: the module turns (1, 0) to (cosine, sine)."""
        half = self._rope.dims // 2
        units = mx.concatenate([mx.ones((1, 1, SPAN, half)), mx.zeros((1, 1, SPAN, half))], axis=-1)
        cosines, sines = mx.split(self._rope(units, offset=position)[0, 0], 2, axis=-1)
        self._first = position
        self._cosines = mx.concatenate([cosines, cosines], axis=-1)
        self._sines = mx.concatenate([-sines, sines], axis=-1)


class Heads:
    """Normalises and turns the queries and keys of one of the target's attention modules."""

    def __init__(self, attention: Any) -> None:
        self._attention = attention
        self._turn = Rotation(attention.rope)
        self._weights: mx.array | None = None
        if on_cpu() and "q_norm" in attention and attention.q_norm.eps == attention.k_norm.eps:
            counts = (attention.n_heads, attention.n_kv_heads)
            norms = (attention.q_norm, attention.k_norm)
            weights = [mx.repeat(n.weight[None], c, 0) for n, c in zip(norms, counts, strict=True)]
            self._weights = mx.concatenate(weights)

    def __call__(
        self, queries: mx.array, keys: mx.array, position: int
    ) -> tuple[mx.array, mx.array]:
        """(1, M, H, d) and (1, M, h, d) -> (1, H, M, d) and (1, h, M, d), the first row at
        `position`; each head as it would be alone. Lazy."""
        attention, heads = self._attention, queries.shape[2]
        # A norm in a finer dtype than its rows does not round to theirs before its weights.
        weights = self._weights
        if weights is not None and weights.dtype != queries.dtype:
            weights = None
        if weights is None and "q_norm" in attention:
            queries, keys = attention.q_norm(queries), attention.k_norm(keys)
        both = mx.concatenate([queries, keys], axis=2)
        if weights is not None:
            both = mx.fast.rms_norm(both, None, attention.q_norm.eps) * weights
        turned, rest = mx.split(self._turn(both.transpose(0, 2, 1, 3), position), [heads], axis=1)
        return turned, rest


def attend(
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    scale: float,
    runs: list[tuple[int, int]],
) -> mx.array:
    """Causal attention in `runs` of rows [a, b): what they share is done once. Lazy.

    (1, H, M, d) over (1, h, S, d), of which the last row sees all. A call of MLX's attention
    for each run takes up to twice the operations.
    """
    (_, heads, count, size), groups = queries.shape, keys.shape[1]
    before = keys.shape[2] - count
    scaled = (queries * mx.array(scale, queries.dtype)).reshape(1, groups, -1, count, size)
    columns, values = keys[:, :, None].swapaxes(-1, -2), values[:, :, None]
    seen = mx.arange(before, before + count)[:, None] >= mx.arange(before + count)
    hidden, out = mx.array(mx.finfo(queries.dtype).min, queries.dtype), []
    for a, b in runs:
        scores = scaled[..., a:b, :] @ columns[..., : before + b]
        if b - a > 1:
            scores = mx.where(seen[a:b, : before + b], scores, hidden)
        out.append(mx.softmax(scores, axis=-1, precise=True) @ values[..., : before + b, :])
    return mx.concatenate(out, axis=-2).reshape(1, heads, count, size)
