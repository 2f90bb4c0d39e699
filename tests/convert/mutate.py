"""Mutations of checkpoint files, each a pure function of a random source.

Two ways in: through the bytes of a file as they lie there, and through its structure (the
pickle, the JSON, the zip's directory), sealed again with right lengths and checksums so that
the damage gets past them.
"""

from __future__ import annotations

import io
import json
import random
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

EDGES = (0, 1, 2, 7, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**47, 2**63 - 1)
HOSTILE = (
    b"cposix\nsystem\n",
    b"cbuiltins\neval\n",
    b"ctorch\nload\n",
    b"cnumpy.core.multiarray\n_reconstruct\n",
    b"\x8c\x02os\x8c\x06system\x93",
)

Mutation = Callable[[bytes, random.Random], bytes]


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    """A few bits anywhere."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def flip_ends(data: bytes, rng: random.Random) -> bytes:
    """A few bytes near the start or the end, where the structure is."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 2, 4))):
        reach = min(len(out), 6000)
        at = rng.randrange(reach) if rng.random() < 0.6 else len(out) - 1 - rng.randrange(reach)
        out[at] = rng.randrange(256)
    return bytes(out)


def cut(data: bytes, rng: random.Random) -> bytes:
    """The beginning only."""
    return data[: rng.randrange(len(data))]


def lengthen(data: bytes, rng: random.Random) -> bytes:
    """Something behind the end, or in front."""
    extra = rng.randbytes(rng.choice((1, 8, 64, 5000)))
    return data + extra if rng.random() < 0.7 else extra + data


def false_length(data: bytes, rng: random.Random) -> bytes:
    """A field of 2, 4 or 8 bytes holds a number at the edge of something."""
    out = bytearray(data)
    width = rng.choice((2, 4, 8))
    at = rng.randrange(max(1, min(len(out), 6000) - width))
    if rng.random() < 0.4:
        at = max(0, len(out) - at - width)
    if rng.random() < 0.2:
        at = 0
    out[at : at + width] = (rng.choice(EDGES) % (1 << (8 * width))).to_bytes(width, "little")
    return bytes(out)


def splice(data: bytes, rng: random.Random) -> bytes:
    """A run of bytes copied, moved or removed."""
    start = rng.randrange(len(data))
    run = data[start : start + rng.choice((1, 4, 32, 300))]
    at = rng.randrange(len(data))
    kind = rng.randrange(3)
    if kind == 0:
        return data[:at] + run + data[at:]
    if kind == 1:
        return data[:at] + run + data[at + len(run) :]
    return data[:start] + data[start + len(run) :]


BYTES: tuple[Mutation, ...] = (flip_bits, flip_ends, cut, lengthen, false_length, splice)


def pickle_value(data: bytes, rng: random.Random) -> bytes:
    """A number, string or opcode of a pickle becomes another."""
    out = bytearray(data)
    spots = [m.start() for m in re.finditer(rb"[KMJ]", data)] or [0]
    at = rng.choice(spots)
    for i in range(1, rng.choice((2, 3))):
        if at + i < len(out):
            out[at + i] = rng.choice((0, 1, 2, 255, rng.randrange(256)))
    return bytes(out)


def pickle_hostile(data: bytes, rng: random.Random) -> bytes:
    """A global from outside the list, called or not, somewhere in the pickle."""
    at = rng.randrange(2, len(data))
    call = rng.choice((b"", b"X\x04\x00\x00\x00true\x85R", b")R"))
    return data[:at] + rng.choice(HOSTILE) + call + data[at:]


def pickle_deep(data: bytes, rng: random.Random) -> bytes:
    """Thousands of nested or growing things in front of the value."""
    count = rng.choice((100, 5000, 200_000, 1_000_000))
    unit = rng.choice((b"(", b"]", b"}", b")\x85", b"]\x85", b"\x8c\x00", b"K\x01q\x01", b"(("))
    return data[:2] + unit * (count // len(unit)) + data[2:]


def pickle_twice(data: bytes, rng: random.Random) -> bytes:
    """One name takes the place of another of the same length, or of any."""
    names = re.findall(rb"X(....)([a-z][a-z0-9_.]+)", data, re.DOTALL)
    whole = [length + name for length, name in names if len(name) == length[0]]
    if len(whole) < 2:
        return data
    one, other = rng.sample(whole, 2)
    return data.replace(b"X" + one, b"X" + other, 1)


PICKLES: tuple[Mutation, ...] = (
    pickle_value, pickle_value, pickle_hostile, pickle_deep, pickle_twice, flip_bits, splice, cut,
)  # fmt: skip


def zip_structure(data: bytes, rng: random.Random) -> bytes:
    """Entries twice, renamed, moved out of the folder, compressed, swapped or missing."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at = rng.randrange(len(entries))
    name, content = entries[at]
    kind, method = rng.randrange(7), zipfile.ZIP_STORED
    if kind == 0:
        entries.append((name, rng.choice((content, rng.randbytes(len(content))))))
    elif kind == 1:
        tricks = ("../", "/", "../../../../tmp/", "a/../../", "C:\\", "..\\")
        entries[at] = (rng.choice(tricks) + name, content)
    elif kind == 2:
        method = zipfile.ZIP_DEFLATED
    elif kind == 3:
        entries.append((f"{name}{'/x' * rng.choice((1, 20, 3000))}", content))
    elif kind == 4:
        del entries[at]
    elif kind == 5:
        entries[at] = (name, content[: rng.randrange(len(content) + 1)])
    else:
        entries[at] = (rng.choice(entries)[0], content)
    return _zipped(entries, method)


def in_zip(mutation: Mutation) -> Mutation:
    """A mutation of the pickle inside a zip, sealed with a right checksum."""

    def mutated(data: bytes, rng: random.Random) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
        return _zipped(
            [
                (name, mutation(content, rng) if name.endswith("data.pkl") else content)
                for name, content in entries
            ]
        )

    return mutated


def _zipped(entries: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # names twice are meant
                archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return buffer.getvalue()


def json_text(data: bytes, rng: random.Random) -> bytes:
    """A value, key or bracket of JSON becomes something else."""
    kind = rng.randrange(6)
    if kind == 0:
        deep = rng.choice((50, 2000, 200_000))
        return b'{"x":' + b"[" * deep + b"]" * deep + b"," + data.lstrip()[1:]
    if kind == 1:
        numbers = list(re.finditer(rb"\d+", data))
        if numbers:
            spot = rng.choice(numbers)
            new = str(rng.choice((*EDGES, -1, 10**30))).encode()
            return data[: spot.start()] + new + data[spot.end() :]
    if kind == 2:
        strings = list(re.finditer(rb'"[^"]*"', data))
        one, other = rng.choice(strings), rng.choice(strings)
        return data[: one.start()] + other.group() + data[one.end() :]
    if kind == 3:
        plain = list(re.finditer(rb"\d+|true|false|null", data))
        if plain:
            spot = rng.choice(plain)
            odd = (b"1e999", b"NaN", b"-1", b"true", b"null", b'"x"', b"[]", b"{}", b"1.5",
                   b"9" * 5000)  # fmt: skip
            return data[: spot.start()] + rng.choice(odd) + data[spot.end() :]
    if kind == 4:
        tricks = (b'"../x.bin"', b'"/etc/passwd"', b'"a/../../b.bin"', b'"config.json"', b'""')
        strings = list(re.finditer(rb'"[^"]*"', data))
        spot = rng.choice(strings)
        return data[: spot.start()] + rng.choice(tricks) + data[spot.end() :]
    return rng.choice((flip_bits, splice, cut))(data, rng)


def in_header(data: bytes, rng: random.Random) -> bytes:
    """A mutation of a safetensors header, with its length put right."""
    length = int.from_bytes(data[:8], "little")
    head = json_text(data[8 : 8 + length], rng)
    return len(head).to_bytes(8, "little") + head + data[8 + length :]


def header_twice(data: bytes, rng: random.Random) -> bytes:
    """A name twice in a safetensors header, or two tensors' places swapped."""
    length = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + length])
    names = [name for name in header if name != "__metadata__"]
    one, other = rng.sample(names, 2)
    if rng.random() < 0.5:
        text = json.dumps(header)[:-1] + "," + json.dumps(one) + ":" + json.dumps(header[other])
        head = (text + "}").encode()
    else:
        key = rng.choice(("data_offsets", "shape", "dtype"))
        header[one][key], header[other][key] = header[other][key], header[one][key]
        head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + data[8 + length :]


def mutations_of(path: Path) -> tuple[Mutation, ...]:
    """What can be done to a file, by its name and first bytes."""
    if path.suffix == ".json":
        return (json_text, json_text, json_text, flip_bits, cut)
    if path.suffix == ".safetensors":
        return (*BYTES, in_header, in_header, in_header, header_twice)
    with path.open("rb") as file:
        zipped = file.read(2) == b"PK"
    if zipped:
        return (*BYTES, zip_structure, zip_structure, *(in_zip(one) for one in PICKLES))
    # The legacy form has no checksums: its pickles are open to everything.
    return (*BYTES, pickle_value, pickle_hostile, pickle_deep, pickle_twice)
