"""Finds the tensors in a safetensors file, strictly: header, types, and no byte unaccounted for."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from dfly_core.convert.stored import WIDTHS, Region, StoredTensor, dense_strides, map_bytes
from dfly_core.records.errors import Refused, Unavailable

# The drafter's header is 8 KB; a whole training checkpoint's stays under 1 MB.
MAX_HEADER = 16 << 20
AGAIN = "the file is damaged: download it again"


def read_safetensors(path: Path) -> dict[str, StoredTensor]:
    """Name every tensor of a safetensors file and say where it lies.

    Raises Refused naming the tensor or fault, Unavailable if the file can't be read.
    """
    header, start, size = _header(path)
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            tensors[name] = _entry(name, entry, path, start)
    end = start
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].region.start):
        if tensor.region.start != end:
            raise Refused(
                f"{path.name}: {name[:200]!r} does not begin where its neighbour ends", AGAIN
            )
        end += tensor.region.nbytes
    if end != size:
        raise Refused(
            f"{path.name} has {size} bytes where its header describes {end}",
            "the file is cut short or damaged: download it again",
        )
    return tensors


def _header(path: Path) -> tuple[dict[str, Any], int, int]:
    try:
        size = path.stat().st_size
        if size < 8:
            raise Refused(f"{path.name} has {size} bytes and no header", "download it again")
        length = int.from_bytes(map_bytes(path, 0, 8).tobytes(), "little")
    except OSError as error:
        raise Unavailable(f"can't read {path} ({error.strerror or error})", "try again") from error
    if length > MAX_HEADER or 8 + length > size:
        raise Refused(f"{path.name} claims a header of {length} bytes in a file of {size}", AGAIN)
    text = map_bytes(path, 8, length).tobytes()
    try:
        header = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path.name} has a header that is no JSON ({error})", AGAIN) from error
    if not isinstance(header, dict):
        raise Refused(f"{path.name} has a header that is no JSON object", AGAIN)
    return header, 8 + length, size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:200]!r} twice")
        found[key] = value
    return found


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**48


def _entry(name: str, entry: Any, path: Path, start: int) -> StoredTensor:
    fault = Refused(f"{path.name}: the header entry of {name[:200]!r} is not a tensor's", AGAIN)
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise fault
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or len(shape) > 8 or not all(map(_is_size, shape)):
        raise fault
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)):
        raise fault
    if not isinstance(dtype, str) or dtype not in WIDTHS:
        raise Refused(
            f"{path.name}: {name[:200]!r} has the unknown dtype {str(dtype)[:40]!r}", AGAIN
        )
    nbytes = math.prod(shape) * WIDTHS[dtype]
    if offsets[1] - offsets[0] != nbytes:
        raise Refused(
            f"{path.name}: {name[:200]!r} has {offsets[1] - offsets[0]} bytes where shape "
            f"{shape} of {dtype} needs {nbytes}",
            AGAIN,
        )
    region = Region(path, start + offsets[0], nbytes)
    return StoredTensor(region, dtype, tuple(shape), dense_strides(tuple(shape)))
