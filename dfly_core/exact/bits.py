"""All bits of two arrays compared, and inputs to compare them on."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

KINDS = ("even", "wide", "spiked")


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
