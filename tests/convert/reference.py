"""An independent reader of checkpoint files, for comparison: Python's own unpickler and MLX.

Used on files that the converter accepted. Its unpickler resolves the same few names, to
functions of this module, and nothing else.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[Any]
KINDS = {
    "BFloat16Storage": ("<u2", "BF16"),
    "HalfStorage": ("<u2", "F16"),
    "FloatStorage": ("<u4", "F32"),
    "LongStorage": ("<u8", "I64"),
}
Stated = Callable[[], tuple[str, Bits]]  # what a file holds under a name, read when asked
Lazy = tuple[tuple[str, str, int], int, tuple[int, ...], tuple[int, ...]]


def _tensor(
    storage: Any, offset: int, shape: Any, strides: Any, *_: Any
) -> tuple[Any, int, Any, Any]:
    return storage, offset, shape, strides


# The one in Python: the one in C takes memory by the highest memo number it meets.
class _Unpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
            ("torch", "Size"): tuple,
            **{("torch", kind): kind for kind in KINDS},
        }
        return known[module, name]

    def persistent_load(self, pid: Any) -> tuple[str, str, int]:
        return pid[1], pid[2], pid[4]


def _unwrapped(root: Any) -> Mapping[str, Lazy]:
    while "state_dict" in root or "model" in root:
        root = root.get("state_dict") or root["model"]
    return root


def _view(lazy: Lazy, fetch: Callable[[str], bytes]) -> tuple[str, Bits]:
    (kind, key, _), offset, shape, strides = lazy
    code, dtype = KINDS[kind]
    flat = np.frombuffer(fetch(key), code)
    index = np.full((), offset)
    for size, stride in zip(shape, strides, strict=True):
        index = index[..., None] + np.arange(size) * stride
    return dtype, flat[index]


def read_zip(path: Path) -> dict[str, Stated]:
    """Name to what gives (dtype, bits), of a torch zip."""
    archive = zipfile.ZipFile(path)
    (entry,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
    root = _Unpickler(io.BytesIO(archive.read(entry))).load()
    stem = entry.removesuffix("data.pkl") + "data/"
    return {
        name: partial(_view, lazy, lambda key: archive.read(stem + key))
        for name, lazy in _unwrapped(root).items()
    }


def read_legacy(path: Path) -> dict[str, Stated]:
    """Name to what gives (dtype, bits), of a legacy torch file."""
    with path.open("rb") as file:
        for _ in range(3):
            pickle.Unpickler(file).load()  # noqa: S301  magic, protocol, system: plain values
        root = _unwrapped(_Unpickler(file).load())
        keys = pickle.Unpickler(file).load()  # noqa: S301  a list of strings
        kinds = {lazy[0][1]: lazy[0] for lazy in root.values()}
        storages = {}
        for key in keys:
            count = int.from_bytes(file.read(8), "little")
            assert count == kinds[key][2]
            storages[key] = file.read(count * np.dtype(KINDS[kinds[key][0]][0]).itemsize)
    return {name: partial(_view, lazy, storages.__getitem__) for name, lazy in root.items()}


def read_mlx(path: Path) -> dict[str, Stated]:
    """Name to what gives (dtype, bits), of a safetensors file, by MLX's reader."""
    arrays = mx.load(str(path), format="safetensors")
    assert isinstance(arrays, dict)
    return {name: partial(_array, array) for name, array in arrays.items()}


def _array(array: mx.array) -> tuple[str, Bits]:
    dtype = {mx.bfloat16: "BF16", mx.float16: "F16", mx.float32: "F32"}[array.dtype]
    width = {2: mx.uint16, 4: mx.uint32}[array.dtype.size]
    return dtype, np.array(array.view(width)).reshape(array.shape)


def read_file(path: Path) -> dict[str, Stated]:
    """Name to what gives (dtype, bits), of any of them."""
    if path.suffix == ".safetensors":
        return read_mlx(path)
    with path.open("rb") as file:
        zipped = file.read(2) == b"PK"
    return read_zip(path) if zipped else read_legacy(path)
