"""Group-64 affine quantisation, a few rows at a time, with the error it made."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from dfly_core.convert.stored import Bits

MLX_DTYPES = {"BF16": mx.bfloat16, "F16": mx.float16, "F32": mx.float32}


def quantize_rows(
    rows: Bits, dtype: str, bits: int, group_size: int
) -> tuple[Bits, Bits, Bits, tuple[float, float, float]]:
    """Quantise rows (R, C) of raw `dtype` bits.

    Returns packed (R, C*bits/32) uint32, scales and biases (R, C/group), the latter two as raw
    bits; then the summed squared changes, the summed squared weights and the largest change.

    Groups lie along a row, so row blocks give the same result as the whole matrix.
    """
    plain = from_bits(rows, dtype)
    packed, scales, biases = mx.quantize(plain, group_size=group_size, bits=bits)
    wide = plain.astype(mx.float32)
    back = mx.dequantize(packed, scales, biases, group_size=group_size, bits=bits)
    off = back.astype(mx.float32) - wide
    sums = mx.stack([mx.square(off).sum(), mx.square(wide).sum(), mx.abs(off).max()])
    mx.eval(packed, scales, biases, sums)
    squares, of, largest = np.array(sums).tolist()
    result = np.array(packed), to_bits(scales), to_bits(biases), (squares, of, largest)
    mx.clear_cache()
    return result


def dequantize_rows(
    packed: Bits, scales: Bits, biases: Bits, dtype: str, bits: int, group_size: int
) -> mx.array:
    """The float32 rows that `quantize_rows` packed with scales of type `dtype`."""
    return mx.dequantize(
        mx.array(packed),
        from_bits(scales, dtype),
        from_bits(biases, dtype),
        group_size=group_size,
        bits=bits,
    ).astype(mx.float32)


def from_bits(bits: Bits, dtype: str) -> mx.array:
    """An MLX array from raw bits; MLX copies, so the source may be a mapped file."""
    return mx.array(np.ascontiguousarray(bits)).view(MLX_DTYPES[dtype])


def to_bits(array: mx.array) -> Bits:
    """The raw bits of a float array, as numpy has no bfloat16."""
    width = {2: mx.uint16, 4: mx.uint32}[array.dtype.size]
    return np.array(array.view(width))
