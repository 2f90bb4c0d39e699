"""Kernels that are not row-exact, and a target on which every rounding error shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from dfly_core.model.pair import Pair
from dfly_core.model.target import Target
from tests.tiny import TAPS, VOCAB, make_pair, make_target

NOISE = 1e-5
Spoils = Callable[[int, int], bool]  # (rows, keys or columns) -> whether the kernel is off there


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
        out = super().__call__(x)
        rows = x.shape[-2]
        off = rows > 1 and self._spoils(rows, x.shape[-1])
        return out * (1.0 + NOISE * rows) if off else out


def spoil_linear(target: Target, spoils: Spoils, names: tuple[str, ...] = ()) -> Target:
    """Give the layers' linear modules (all, or those named) a kernel that is off at some rows."""
    for layer in target.layers:
        for part in (layer.self_attn, layer.mlp):
            for name, module in part.named_modules():
                if type(module) is nn.Linear and (not names or name in names):
                    noisy = NoisyLinear(1, 1, bias=False)
                    noisy.weight = module.weight
                    noisy.spoil(spoils)
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
        out = real(q, k, v, **options)
        rows, keys = q.shape[2], k.shape[2]
        off = rows > 1 and spoils(rows, keys)
        return out * (1.0 + NOISE * rows) if off else out

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", noisy)
