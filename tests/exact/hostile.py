"""Kernels that are not row-exact, and a target on which every rounding error shows.

Where they are not off they go row by row, so that what a test sees is its own fault and not
that of a BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from dfly_core.model import opened
from dfly_core.model.kernels import attend
from dfly_core.model.pair import Pair
from dfly_core.model.target import Target
from tests.tiny import TAPS, VOCAB, make_pair, make_target

NOISE = 1e-5
Spoils = Callable[[int, int], bool]  # (rows, keys or columns) -> whether the kernel is off there


def never(rows: int, size: int) -> bool:
    """A kernel that is row-exact."""
    return False


def near_tie_pair(seed: int = 1, **changes: Any) -> Pair:
    """A tiny pair whose head holds every row twice: half the twins equal, half a hair apart.

    The best token is always tied with its twin, exactly or to the last bits, so that a hidden
    state off by one rounding chooses another token, with another embedding.
    """
    pair = make_pair(seed, **changes)
    head = pair.target.head_module
    rows = head.weight[0::2]
    hair = 1.0 + 1e-7 * mx.random.normal(rows.shape, key=mx.random.key(seed + 50))
    exact = (mx.arange(rows.shape[0]) % 2 == 0)[:, None]
    twins = mx.where(exact, rows, rows * hair)
    head.weight = mx.stack([rows, twins], axis=1).reshape(VOCAB, -1)
    mx.eval(head.weight)
    return pair


class NoisyLinear(nn.Linear):
    """A linear layer whose kernel for several rows rounds differently."""

    def spoil(self, spoils: Spoils) -> None:
        self._spoils = spoils

    def __call__(self, x: mx.array) -> mx.array:
        rows = x.shape[-2]
        alone = [super(NoisyLinear, self).__call__(row) for row in mx.split(x, rows, axis=-2)]
        out = mx.concatenate(alone, axis=-2)
        off = rows > 1 and self._spoils(rows, x.shape[-1])
        return out * (1.0 + NOISE * rows) if off else out


def spoil_linear(target: Target, spoils: Spoils, names: tuple[str, ...] = ()) -> Target:
    """Give the layers' linear modules a kernel that is off at some rows (all, or those named)."""
    for layer in target.layers:
        for part in (layer.self_attn, layer.mlp):
            for name, module in part.named_modules():
                if type(module) is nn.Linear:
                    noisy = NoisyLinear(1, 1, bias=False)
                    noisy.weight = module.weight
                    noisy.spoil(spoils if not names or name in names else never)
                    setattr(part, name, noisy)
    return Target(target.model, target.config, TAPS)


def spoil_quantized(monkeypatch: Any, spoils: Spoils) -> None:
    """MLX's quantised product, as modules and our routes call it, off at some row counts."""
    real = mx.quantized_matmul

    def noisy(x: mx.array, *weights: Any, **options: Any) -> mx.array:
        out = real(x, *weights, **options)
        rows = x.shape[-2]
        off = rows > 1 and spoils(rows, x.shape[-1])
        return out * (1.0 + NOISE * rows) if off else out

    monkeypatch.setattr(mx, "quantized_matmul", noisy)


def quantized_target(seed: int = 1, **changes: Any) -> Target:
    """A tiny target at 4 bits, sizes that divide into groups."""
    target = make_target(seed, **({"hidden_size": 64, "intermediate_size": 128} | changes))
    nn.quantize(target.model, 32, 4)
    return Target(target.model, target.config, TAPS)


def spoil_attention(monkeypatch: Any, spoils: Spoils) -> None:
    """MLX's attention, as mlx-lm and our routes call it, off at some (rows, keys)."""
    real = mx.fast.scaled_dot_product_attention

    def noisy(q: mx.array, k: mx.array, v: mx.array, **options: Any) -> mx.array:
        rows, keys = q.shape[2], k.shape[2]
        if options["mask"] is None:
            return real(q, k, v, **options)
        alone = []
        for i, row in enumerate(mx.split(q, rows, axis=2)):
            upto = keys - rows + i + 1
            alone.append(real(row, k[:, :, :upto], v[:, :, :upto], **options | {"mask": None}))
        out = mx.concatenate(alone, axis=2)
        off = rows > 1 and spoils(rows, keys)
        return out * (1.0 + NOISE * rows) if off else out

    def in_runs(
        q: mx.array, k: mx.array, v: mx.array, scale: float, runs: list[tuple[int, int]]
    ) -> mx.array:
        before = k.shape[2] - q.shape[2]
        parts = [
            attend(q[:, :, a:b], k[:, :, : before + b], v[:, :, : before + b], scale)
            for a, b in runs
        ]
        return mx.concatenate(parts, axis=2)

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", noisy)
    monkeypatch.setattr(opened, "attend", in_runs)  # the same arithmetic, by other operations
