"""A tensor where it lies in a file, read by memory map a few rows at a time."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dfly_core.records.errors import Refused, Unavailable

Bits = npt.NDArray[Any]  # raw bits: uint16 for BF16 and F16, uint32 for F32 and packed weights

# Names and widths in bytes as safetensors has them; only the float kinds are ever converted.
WIDTHS = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2,
    "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
FLOATS = ("BF16", "F16", "F32")
BLOCK_BYTES = 4 << 20


@dataclass(frozen=True)
class Region:
    """A run of bytes in a file; `crc` is the CRC-32 the file itself states for it, if any."""

    path: Path
    start: int
    nbytes: int
    crc: int | None = None


@dataclass(frozen=True)
class StoredTensor:
    """A view of a region: `offset` and `strides` count elements, as torch's do."""

    region: Region
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor itself, whatever the storage behind it holds."""
        return math.prod(self.shape) * WIDTHS[self.dtype]

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in the file as they will be written."""
        return all(
            size == 1 or stride == due
            for size, stride, due in zip(
                self.shape, self.strides, dense_strides(self.shape), strict=True
            )
        )

    @property
    def whole(self) -> bool:
        """Whether the tensor is its region, byte for byte."""
        return self.contiguous and self.offset == 0 and self.nbytes == self.region.nbytes


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a C-ordered array."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def check_view(name: str, tensor: StoredTensor) -> None:
    """Refuse a view that leaves its storage, repeats elements or holds none."""
    if not tensor.shape or 0 in tensor.shape:
        raise Refused(f"{name} is empty (shape {tensor.shape})", "download the checkpoint again")
    last = tensor.offset + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True)
    )
    if (last + 1) * WIDTHS[tensor.dtype] > tensor.region.nbytes:
        raise Refused(
            f"{name} reaches byte {(last + 1) * WIDTHS[tensor.dtype]} of a storage of "
            f"{tensor.region.nbytes} in {tensor.region.path.name}",
            "the file is damaged: download it again",
        )
    # A view that repeats elements is no weight, and a small file could claim any size with it.
    reach = 0
    for stride, size in sorted(zip(tensor.strides, tensor.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                raise Refused(
                    f"{name} has overlapping strides {tensor.strides} for shape {tensor.shape}",
                    "save the state dict with contiguous tensors",
                )
            reach += stride * (size - 1)


def span(tensor: StoredTensor) -> tuple[int, int]:
    """First byte and the byte after the last one, counted from the start of the file."""
    width = WIDTHS[tensor.dtype]
    last = tensor.offset + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True)
    )
    start = tensor.region.start
    return start + tensor.offset * width, start + (last + 1) * width


def map_bytes(path: Path, start: int, nbytes: int) -> npt.NDArray[np.uint8]:
    """Map part of a file; it is unmapped when the last array over it is gone."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if start + nbytes > size:
                # Touching a page behind the end would kill the process.
                raise Refused(
                    f"{path.name} ends at byte {size} where {start + nbytes} are needed",
                    "the file is cut short: download it again",
                )
            aligned = start - start % mmap.ALLOCATIONGRANULARITY
            window = mmap.mmap(
                file.fileno(), start - aligned + nbytes, access=mmap.ACCESS_READ, offset=aligned
            )
    except OSError as error:
        raise Unavailable(f"can't read {path} ({error.strerror or error})", "try again") from error
    return np.frombuffer(window, np.uint8, count=nbytes, offset=start - aligned)


def blocks(tensor: StoredTensor, limit: int = BLOCK_BYTES) -> Iterator[Bits]:
    """Yield the tensor's bits in C order, as many rows at a time as fit in `limit` bytes.

    Each block has shape (rows, ...); it may be a view of a mapped file, so copy what you keep.
    The mapping of one block is gone before the next is made, which bounds resident memory.
    """
    width = WIDTHS[tensor.dtype]
    bits = np.dtype(f"<u{width}")
    rows, rest = tensor.shape[0], tensor.shape[1:]
    per_block = max(1, limit // max(1, math.prod(rest) * width))
    for first in range(0, rows, per_block):
        count = min(per_block, rows - first)
        part = StoredTensor(
            tensor.region,
            tensor.dtype,
            (count, *rest),
            tensor.strides,
            tensor.offset + first * tensor.strides[0],
        )
        start, end = span(part)
        raw = map_bytes(tensor.region.path, start, end - start)
        if part.contiguous:
            yield np.frombuffer(raw, bits).reshape(part.shape)
        else:
            flat = np.frombuffer(raw, bits)
            yield np.ascontiguousarray(
                np.lib.stride_tricks.as_strided(
                    flat, part.shape, [stride * width for stride in part.strides], writeable=False
                )
            )
