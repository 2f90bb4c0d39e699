"""Finds the tensors in a file written by torch.save: the zip form and the legacy form.

Reads the pickle and the directory only; the tensors stay in the file (see stored.py). Every
fault is Refused and names the file and the thing in it.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dfly_core.convert.stored import WIDTHS, Region, StoredTensor, map_bytes
from dfly_core.convert.unpickle import MAX_BYTES, Storage, Tensor, unpickle
from dfly_core.records.errors import Refused, Unavailable

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001
WRAPPERS = ("state_dict", "model")
_PLAIN_FLAGS = 0x808  # sizes stated again behind the data, and a name in UTF-8
AGAIN = "the file is damaged: download it again"


def read_torch(path: Path) -> dict[str, StoredTensor]:
    """Name every tensor of a torch file and say where it lies, wrappers taken off.

    Raises Refused for anything but a state dict of tensors, Unavailable if it can't be read.
    """
    if not path.is_file():  # opening a pipe might wait forever
        raise Refused(f"{path} is no file", "name a folder, a file or a hub id")
    try:
        with path.open("rb") as file:
            head = file.read(512)
            size = file.seek(0, 2)
    except OSError as error:
        raise Unavailable(f"can't read {path} ({error.strerror or error})", "try again") from error
    if head.startswith(b"PK\x03\x04"):
        root, regions = _read_zip(path, size)
    elif head[:1] == b"\x80":
        root, regions = _read_legacy(path, size)
    elif head.startswith(b"version https://git-lfs"):
        raise Refused(f"{path.name} is a git-lfs pointer, not the weights", "run `git lfs pull`")
    elif head[257:262] == b"ustar":
        raise Refused(
            f"{path.name} is a tar archive as torch wrote before 0.1.10",
            "load and save it with a newer torch",
        )
    else:
        raise Refused(f"{path.name} is no file torch.save writes", AGAIN)
    return {
        name: _place(name, value, regions, path) for name, value in _state_dict(root, path).items()
    }


def _state_dict(root: Any, path: Path) -> dict[str, Tensor]:
    for _ in range(len(WRAPPERS) + 1):
        inside = [
            key for key in WRAPPERS if isinstance(root, dict) and isinstance(root.get(key), dict)
        ]
        if len(inside) > 1:
            raise Refused(
                f"{path.name} holds both {inside[0]!r} and {inside[1]!r}", "save one state dict"
            )
        if inside:
            root = root[inside[0]]
    if not isinstance(root, dict) or not root:
        raise Refused(f"{path.name} holds no state dict", "save the drafter's state_dict()")
    for name, value in root.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise Refused(
                f"{path.name}: {str(name)[:200]!r} is a {type(value).__name__}, not a tensor",
                "save the drafter's state_dict() alone",
            )
    return root


def _place(name: str, value: Tensor, regions: dict[str, Region], path: Path) -> StoredTensor:
    storage = value.storage
    region = regions.get(storage.key)
    if region is None:
        raise Refused(
            f"{path.name}: the storage {storage.key[:80]!r} of {name[:200]!r} is missing", AGAIN
        )
    due = storage.elements * WIDTHS[storage.dtype]
    if region.nbytes != due:
        raise Refused(
            f"{path.name}: the storage of {name[:200]!r} has {region.nbytes} bytes where its "
            f"{storage.elements} elements of {storage.dtype} need {due}",
            AGAIN,
        )
    return StoredTensor(region, storage.dtype, value.shape, value.strides, value.offset)


def _read_zip(path: Path, size: int) -> tuple[Any, dict[str, Region]]:
    entries = _zip_entries(path, size)
    pickles = [name for name in entries if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise Refused(f"{path.name} holds {len(pickles)} entries named data.pkl, not one", AGAIN)
    prefix = pickles[0].removesuffix("data.pkl")
    pickled = entries[pickles[0]]
    if pickled.nbytes > MAX_BYTES:
        raise Refused(f"{path.name}: data.pkl has {pickled.nbytes} bytes", "save a state dict")
    data = map_bytes(path, pickled.start, pickled.nbytes).tobytes()
    # set_crc32_options(False) leaves 0 in every entry: then the file states no checksums at all.
    checked = pickled.crc != 0
    if checked and zlib.crc32(data) != pickled.crc:
        raise Refused(f"{path.name}: data.pkl does not match its checksum", AGAIN)
    order = entries.get(f"{prefix}byteorder")
    if order and map_bytes(path, order.start, order.nbytes).tobytes() != b"little":
        raise Refused(f"{path.name} is not little-endian", "save it on a little-endian machine")
    root, _ = unpickle(data, path.name)
    stem = f"{prefix}data/"
    return root, {
        name.removeprefix(stem): entry if checked else Region(entry.path, entry.start, entry.nbytes)
        for name, entry in entries.items()
        if name.startswith(stem)
    }


def _zip_entries(path: Path, size: int) -> dict[str, Region]:
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            entries = dict(_checked_entries(archive.infolist(), file, path))
    # zipfile raises all of these on damaged directories, and NotImplementedError on odd versions.
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, OSError) as error:
        raise Refused(f"{path.name} is cut short or damaged ({error})", AGAIN) from error
    end = 0
    for entry in sorted(entries.values(), key=lambda region: region.start):
        if entry.start < end or entry.start + entry.nbytes > size:
            raise Refused(f"{path.name}: zip entries overlap or leave the file", AGAIN)
        end = entry.start + entry.nbytes
    return entries


def _checked_entries(
    infos: list[zipfile.ZipInfo], file: Any, path: Path
) -> Iterator[tuple[str, Region]]:
    seen: set[str] = set()
    for info in infos:
        name = info.filename
        if name in seen:
            raise Refused(f"{path.name} holds the zip entry {name[:200]!r} twice", AGAIN)
        seen.add(name)
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            raise Refused(
                f"{path.name} holds a zip entry that points elsewhere: {name[:200]!r}",
                "take the file from its publisher",
            )
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & ~_PLAIN_FLAGS:
            raise Refused(
                f"{path.name}: the zip entry {name[:200]!r} is compressed or encrypted",
                "torch stores weights plainly: take the original file",
            )
        if info.compress_size != info.file_size:
            raise Refused(f"{path.name}: the zip entry {name[:200]!r} has two sizes", AGAIN)
        # The data begins behind the local header, whose extra field the directory doesn't know.
        file.seek(info.header_offset)
        local = file.read(30)
        if local[:4] != b"PK\x03\x04":
            raise Refused(f"{path.name}: no zip entry where {name[:200]!r} should begin", AGAIN)
        name_length = int.from_bytes(local[26:28], "little")
        extra = int.from_bytes(local[28:30], "little")
        if file.read(name_length) != info.orig_filename.encode("utf-8"):
            raise Refused(
                f"{path.name}: the zip entry {name[:200]!r} has another name inside", AGAIN
            )
        start = info.header_offset + 30 + name_length + extra
        yield name, Region(path, start, info.file_size, info.CRC)


def _read_legacy(path: Path, size: int) -> tuple[Any, dict[str, Region]]:
    """The form before torch 1.6: five pickles, then each storage behind its element count."""
    data = map_bytes(path, 0, min(size, MAX_BYTES)).data
    magic, position = unpickle(data, path.name)
    if magic != LEGACY_MAGIC:
        raise Refused(f"{path.name} is a pickle, but not one torch.save writes", AGAIN)
    protocol, position = unpickle(data, path.name, position)
    system, position = unpickle(data, path.name, position)
    if protocol != LEGACY_PROTOCOL or not isinstance(system, dict):
        raise Refused(f"{path.name} has torch file protocol {protocol!r}, not 1001", AGAIN)
    if system.get("little_endian") is not True:
        raise Refused(f"{path.name} is not little-endian", "save it on a little-endian machine")
    root, position = unpickle(data, path.name, position)
    keys, position = unpickle(data, path.name, position)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Refused(f"{path.name} lists no storages", AGAIN)
    storages = _storages(root)
    regions: dict[str, Region] = {}
    for key in keys:
        storage = storages.get(key)
        if storage is None or key in regions:
            raise Refused(
                f"{path.name}: storage {key[:80]!r} is listed twice or belongs to none", AGAIN
            )
        due = storage.elements * WIDTHS[storage.dtype]
        if position + 8 + due > size:
            raise Refused(
                f"{path.name} is cut short: storage {key[:80]!r} ends at byte {position + 8 + due} "
                f"of {size}",
                "download it again",
            )
        stated = int.from_bytes(map_bytes(path, position, 8).tobytes(), "little", signed=True)
        if stated != storage.elements:
            raise Refused(
                f"{path.name}: storage {key[:80]!r} states {stated} elements, the pickle "
                f"{storage.elements}",
                AGAIN,
            )
        regions[key] = Region(path, position + 8, due)
        position += 8 + due
    return root, regions


def _storages(root: Any) -> dict[str, Storage]:
    """Every storage below `root`, at any depth: the file's order covers them all."""
    found: dict[str, Storage] = {}
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            found.setdefault(value.storage.key, value.storage)
        elif isinstance(value, (dict, list, tuple)) and id(value) not in seen:
            seen.add(id(value))
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return found
