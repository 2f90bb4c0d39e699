"""Writes the files torch.save writes, without torch: the zip form and the legacy form.

Only for tests and measurements. The pickles are put together opcode by opcode, so that a test
can also write what torch never would.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

STORAGES = {"BF16": "BFloat16Storage", "F16": "HalfStorage", "F32": "FloatStorage"}
WIDTH = {"BF16": 2, "F16": 2, "F32": 4}


@dataclass(frozen=True)
class View:
    """A tensor to write: a view of the storage under `key`, which has `elements` elements."""

    key: str
    dtype: str
    elements: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    parameter: bool = False


def integer(value: int) -> bytes:
    """A pickled int."""
    if 0 <= value < 2**31:
        return b"J" + value.to_bytes(4, "little")
    return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)


def text(value: str) -> bytes:
    """A pickled str."""
    raw = value.encode()
    return b"X" + len(raw).to_bytes(4, "little") + raw


def sizes(values: Iterable[int]) -> bytes:
    """A pickled tuple of ints."""
    return b"(" + b"".join(map(integer, values)) + b"t"


def tensor(view: View, legacy: bool = False) -> bytes:
    """A pickled tensor, as torch._utils._rebuild_tensor_v2 is called for it."""
    storage = (
        b"(" + text("storage") + b"ctorch\n" + STORAGES[view.dtype].encode() + b"\n"
        + text(view.key) + text("cpu") + integer(view.elements) + (b"N" if legacy else b"") + b"tQ"
    )  # fmt: skip
    hooks = b"ccollections\nOrderedDict\n)R"
    plain = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage + integer(view.offset) + sizes(view.shape) + sizes(view.strides)
        + b"\x89" + hooks + b"tR"
    )  # fmt: skip
    if not view.parameter:
        return plain
    return b"ctorch._utils\n_rebuild_parameter\n(" + plain + b"\x88" + hooks + b"tR"


def state_dict(views: Mapping[str, View], legacy: bool = False) -> bytes:
    """A pickled OrderedDict of tensors, without PROTO and STOP."""
    items = b"".join(text(name) + tensor(view, legacy) for name, view in views.items())
    return b"ccollections\nOrderedDict\n)R(" + items + b"u"


def pickled(body: bytes) -> bytes:
    """A whole pickle."""
    return b"\x80\x02" + body + b"."


def write_zip(
    path: Path, body: bytes, storages: Mapping[str, Iterable[bytes]], prefix: str = "archive"
) -> None:
    """Write the zip form; a storage is given in pieces, so that large ones need no memory."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(f"{prefix}/data.pkl", pickled(body))
        archive.writestr(f"{prefix}/byteorder", "little")
        for key, pieces in storages.items():
            with archive.open(f"{prefix}/data/{key}", "w", force_zip64=True) as entry:
                for piece in pieces:
                    entry.write(piece)
        archive.writestr(f"{prefix}/version", "3\n")


def write_legacy(
    path: Path, body: bytes, storages: Mapping[str, tuple[int, bytes]], keys: bytes | None = None
) -> None:
    """Write the legacy form; a storage is its element count and its bytes."""
    magic = b"\x8a\x0a" + (0x1950A86A20F9469CFC6C).to_bytes(10, "little")
    system = b"}(" + text("protocol_version") + integer(1001) + text("little_endian") + b"\x88u"
    order = b"](" + b"".join(map(text, storages)) + b"e"
    with path.open("wb") as file:
        for part in (magic, integer(1001), system, body, keys or order):
            file.write(pickled(part))
        for count, raw in storages.values():
            file.write(count.to_bytes(8, "little") + raw)
