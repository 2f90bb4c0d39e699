"""Writes model.safetensors block by block, and has it read back tensor by tensor."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from dfly_core.convert.cast import cast, is_finite
from dfly_core.convert.follow import Follower, Stretch, checksum
from dfly_core.convert.place import WEIGHTS
from dfly_core.convert.plan import GROUP_SIZE, Item, Plan
from dfly_core.convert.safefile import read_safetensors
from dfly_core.convert.staging import writing
from dfly_core.convert.stored import WIDTHS, Bits, Region, blocks
from dfly_core.model.rate import Meter
from dfly_core.records.errors import DflyError, Refused, Stopped, Unavailable
from dfly_core.records.events import Progress

# Linux takes the room for one large write in large pages, which it has to search for: writing
# 2 GB in pieces of 16 MB took 1.5 s of processor time here, in pieces of 256 kB 0.5 s.
PIECE_BYTES = 256 << 10
DAMAGED = "the file is damaged: download it again"


@dataclass
class Error:
    """How far dequantised weights are from the originals, summed over blocks of rows."""

    squares: float = 0.0
    of: float = 0.0
    largest: float = 0.0

    def add(self, squares: float, of: float, largest: float) -> None:
        """One more block: summed squared changes, summed squared weights, largest change."""
        self.squares += squares
        self.of += of
        self.largest = max(self.largest, largest)

    @property
    def relative(self) -> float:
        """Root of the summed squared errors over that of the squared weights."""
        return math.sqrt(self.squares / self.of) if self.of else 0.0


@dataclass
class Written:
    """What a finished weights file holds: size, each tensor's CRC-32, quantisation errors."""

    nbytes: int = 0
    checksums: dict[str, int] = field(default_factory=dict)
    errors: dict[str, Error] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where an output tensor lies in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return math.prod(self.shape) * WIDTHS[self.dtype]


def write_weights(
    plan: Plan, folder: Path, cancelled: Callable[[], bool], written: Written
) -> Iterator[Progress]:
    """Write, sync and read back `folder`/model.safetensors; fills in `written`.

    Raises Refused naming the tensor for NaN, infinity, overflow or a wrong checksum in the
    source, Unavailable for a full disk or bytes that read back differently, Stopped when
    cancelled.
    """
    path = folder / WEIGHTS
    meter = Meter("convert", plan.output_bytes)
    head, places = _layout(plan)
    checked: set[Region] = set()
    with writing(plan.output), Follower(path) as follower:
        with path.open("xb", buffering=0) as file:
            _put(file, head, 0)
            for item, targets in places:
                _check_region(item, checked)
                for amount in _write_item(plan, item, targets, file, written):
                    yield meter.advance(item.name, amount)
                    if cancelled():
                        raise Stopped
                for place in targets:
                    sum_of_it = written.checksums[place.name]
                    follower.add(Stretch(place.name, place.start, place.nbytes, sum_of_it))
        written.nbytes = len(head) + plan.output_bytes
        yield from _verify(plan, path, follower, cancelled)


def _verify(
    plan: Plan, path: Path, follower: Follower, cancelled: Callable[[], bool]
) -> Iterator[Progress]:
    """Wait until every tensor was read back; compare the header, too."""
    found = read_safetensors(path)
    due = {entry[0]: entry[1:] for item in plan.items for entry in item.outputs(plan.bits)}
    if {name: (tensor.dtype, tensor.shape) for name, tensor in found.items()} != due:
        raise Unavailable(f"{path.name} reads back with other tensors", "convert again")
    follower.end()
    meter = Meter("verify", plan.output_bytes)
    finished = False
    while not finished:
        finished = follower.wait(0.05)
        if follower.wrong is not None:
            raise _wrong(plan, follower.wrong)
        yield meter.advance(path.name, follower.checked - meter.done)
        if cancelled():
            raise Stopped


def _wrong(plan: Plan, name: str) -> DflyError:
    """Whose fault it is that a tensor reads back with other bytes: the source's or the disk's."""
    for item in plan.items:
        if item.name == name and _stated(item) is not None:
            region = item.stored.region
            _compare(item, checksum(region.path, region.start, region.nbytes))
    return Unavailable(
        f"{name} reads back with other bytes than were written",
        "check the disk, then convert again",
    )


def _layout(plan: Plan) -> tuple[bytes, list[tuple[Item, list[Place]]]]:
    """The file's head, and for each item the places of its tensors, in the order of the file."""
    # Odd sizes last, so that every other tensor begins at a multiple of its width.
    items = sorted(plan.items, key=lambda item: item.stored.nbytes % 8 != 0)
    header: dict[str, object] = {"__metadata__": {"format": "mlx"}}
    position = 0
    offsets = []
    for item in items:
        for name, dtype, shape in item.outputs(plan.bits):
            nbytes = math.prod(shape) * WIDTHS[dtype]
            header[name] = {
                "dtype": dtype,
                "shape": list(shape),
                "data_offsets": [position, position + nbytes],
            }
            offsets.append(position)
            position += nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    starts = iter(offsets)
    return head, [
        (item, [Place(*entry, len(head) + next(starts)) for entry in item.outputs(plan.bits)])
        for item in items
    ]


def _write_item(
    plan: Plan, item: Item, places: list[Place], file: BinaryIO, written: Written
) -> Iterator[int]:
    """Write one tensor and what it becomes; yields the bytes written for each block."""
    error = Error()
    if item.quantised:
        written.errors[item.name] = error
    stated = _stated(item)
    source_checksum = 0
    checksums, done = [0] * len(places), [0] * len(places)
    for block in blocks(item.stored):
        if not is_finite(block, item.stored.dtype):
            raise Refused(f"{item.name_in} holds NaN or infinity", "take another checkpoint")
        outputs = _outputs(plan, item, block, error)
        for i, bits in enumerate(outputs):
            if stated is None or not item.verbatim:
                checksums[i] = zlib.crc32(_bytes(bits), checksums[i])
            _put(file, _bytes(bits), places[i].start + done[i])
            done[i] += bits.nbytes
        if stated is not None and not item.verbatim:
            source_checksum = zlib.crc32(_bytes(block), source_checksum)
        yield sum(bits.nbytes for bits in outputs)
    if stated is not None and item.verbatim:
        # The zip's own checksum of these very bytes: reading back will tell, once for both.
        checksums = [stated]
    elif stated is not None:
        _compare(item, source_checksum)
    written.checksums |= {place.name: checksums[i] for i, place in enumerate(places)}


def _stated(item: Item) -> int | None:
    """The checksum the source states for exactly this tensor's bytes, if it does."""
    return item.stored.region.crc if item.stored.whole else None


def _outputs(plan: Plan, item: Item, block: Bits, error: Error) -> tuple[Bits, ...]:
    bits = cast(block, item.stored.dtype, item.dtype)
    if item.dtype != item.stored.dtype and not is_finite(bits, item.dtype):
        raise Refused(
            f"{item.name_in} has values too large for {item.dtype}", "convert to bf16 or f32"
        )
    if item.quantised and plan.bits is not None:
        # Imports MLX, which a plain conversion has no use for.
        from dfly_core.convert.quantize import quantize_rows

        *parts, sums = quantize_rows(bits, item.dtype, plan.bits, GROUP_SIZE)
        error.add(*sums)
        return tuple(parts)
    return (bits,)


def _check_region(item: Item, checked: set[Region]) -> None:
    """Compare a view's storage with the checksum its zip states; whole tensors do it inline."""
    region = item.stored.region
    if item.stored.whole or region.crc is None or region in checked:
        return
    checked.add(region)
    _compare(item, checksum(region.path, region.start, region.nbytes))


def _compare(item: Item, checksum: int) -> None:
    stated = item.stored.region.crc
    if stated is not None and checksum != stated:
        raise Refused(
            f"{item.name_in} does not match its checksum in {item.stored.region.path.name}",
            DAMAGED,
        )


def _bytes(bits: Bits) -> memoryview:
    return bits.data.cast("B")


def _put(file: BinaryIO, data: bytes | memoryview, position: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(file.fileno(), view[:PIECE_BYTES], position)
        view, position = view[count:], position + count
