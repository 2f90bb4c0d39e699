"""Casts between float types on raw bits, rounding to nearest even, and finds NaN and infinity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dfly_core.convert.stored import Bits

# The bit pattern of infinity; every NaN lies above it, with and without the sign.
_INFINITY = {"BF16": 0x7F80, "F16": 0x7C00, "F32": 0x7F800000}


def is_finite(bits: Bits, dtype: str) -> bool:
    """Whether raw float bits hold neither NaN nor infinity: two maxima, no temporary."""
    infinity = _INFINITY[dtype]
    sign = 1 << (8 * bits.itemsize - 1)
    signed = bits.view(f"<i{bits.itemsize}")
    return int(signed.max()) < infinity and int(bits.max()) < infinity | sign


def cast(bits: Bits, have: str, want: str) -> Bits:
    """Raw bits of type `have` as raw bits of type `want`; what overflows becomes infinite."""
    if have == want:
        return bits
    wide = _widen(bits, have)
    if want == "F32":
        return wide.view(np.uint32)
    if want == "F16":
        with np.errstate(over="ignore"):
            return wide.astype(np.float16).view(np.uint16)
    raw = wide.view(np.uint32)
    # To bfloat16: add half of the last place, one less where the last bit kept is even.
    return ((raw + (0x7FFF + ((raw >> 16) & 1))) >> 16).astype(np.uint16)


def _widen(bits: Bits, have: str) -> npt.NDArray[np.float32]:
    if have == "BF16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if have == "F16":
        return bits.view(np.float16).astype(np.float32)
    return bits.view(np.float32)
