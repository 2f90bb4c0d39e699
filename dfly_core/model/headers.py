"""What the weight files of a model folder say they hold; reads their headers only."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dfly_core.records.errors import Refused

# What mlx, mlx-lm and our own look-ups raise over files that are damaged or made up.
DAMAGE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RuntimeError,
)
FLOATS = ("BF16", "F16", "F32")


class Header(NamedTuple):
    """One tensor: its type as safetensors names it, and its shape."""

    kind: str
    shape: tuple[int, ...]


def read_headers(folder: Path) -> dict[str, Header]:
    """All tensors of a folder's model*.safetensors by name; Refused where a file is damaged."""
    found: dict[str, Header] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        try:
            if not path.is_file():  # opening a pipe might wait forever
                raise ValueError("it is no file")
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                if length > min(path.stat().st_size, 100_000_000):
                    raise ValueError("its header is longer than the file")
                header = json.loads(file.read(length))
                header.pop("__metadata__", None)
                for name, entry in header.items():
                    found[name] = Header(str(entry["dtype"]), tuple(entry["shape"]))
                end = max((e["data_offsets"][1] for e in header.values()), default=0)
            if path.stat().st_size < 8 + length + end:
                raise ValueError("the file is cut short")
        except (*DAMAGE, struct.error) as error:
            raise Refused(f"{path} can't be read ({error})", "download or convert it again") from (
                error
            )
    return found


def check_kinds(folder: Path, headers: Mapping[str, Header], remedy: str) -> None:
    """Refuse weights labelled as anything but floats or quantised words: they load as nonsense."""
    for name, header in sorted(headers.items()):
        packed = f"{name.rpartition('.')[0]}.scales" in headers and header.kind in ("U32", "U8")
        if header.kind not in FLOATS and not packed:
            raise Refused(
                f"{folder}: tensor {name} has dtype {header.kind}, not one of {', '.join(FLOATS)}",
                remedy,
            )
