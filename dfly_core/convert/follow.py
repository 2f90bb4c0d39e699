"""Syncs a file and reads it back while the rest of it is still being written."""

from __future__ import annotations

import os
import queue
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dfly_core.convert.staging import sync
from dfly_core.convert.stored import BLOCK_BYTES, map_bytes
from dfly_core.records.errors import DflyError

STRIDE_BYTES = 128 << 20  # a sync costs the disk some milliseconds, however little it has to do


@dataclass(frozen=True)
class Stretch:
    """A tensor's bytes in a file, and the CRC-32 they must have."""

    name: str
    start: int
    nbytes: int
    checksum: int


class Follower:
    """Takes finished tensors, has them on the disk, then reads each back.

    Syncing waits for the disk and checking releases the interpreter, so each has a thread and
    goes on beside the writing; done afterwards they took as long again. Leaving the `with`
    block drops the rest.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: queue.SimpleQueue[Stretch | None] = queue.SimpleQueue()
        self._synced: queue.SimpleQueue[Stretch | None] = queue.SimpleQueue()
        self._dropped = False
        self.checked = 0
        self.wrong: str | None = None
        self._error: OSError | DflyError | None = None
        self._threads = [
            threading.Thread(target=self._run, args=(work,), name="follower", daemon=True)
            for work in (self._sync, self._check)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self._dropped = True
        self.end()
        for thread in self._threads:
            thread.join()

    def add(self, stretch: Stretch) -> None:
        """These bytes are written, and stay as they are."""
        self._written.put(stretch)

    def end(self) -> None:
        """Nothing is written any more; returns at once."""
        self._written.put(None)

    def wait(self, seconds: float) -> bool:
        """Whether everything added before `end` was synced and checked; waits for it a while.

        Then `wrong` names the first tensor with other bytes than were written, if any, and
        `checked` counts bytes. Raises the OSError or DflyError met on the way.
        """
        self._threads[-1].join(seconds)
        if self._threads[-1].is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (OSError, DflyError) as error:
            self._error = error
        finally:
            self._synced.put(None)

    def _sync(self) -> None:
        waiting: list[Stretch] = []
        while (stretch := self._written.get()) is not None and not self._dropped:
            waiting.append(stretch)
            if sum(one.nbytes for one in waiting) >= STRIDE_BYTES:
                with self._path.open("rb") as file:
                    os.fsync(file.fileno())
                self._pass_on(waiting)
                waiting = []
        if not self._dropped:
            sync(self._path)
            self._pass_on(waiting)

    def _pass_on(self, stretches: list[Stretch]) -> None:
        for stretch in stretches:
            self._synced.put(stretch)

    def _check(self) -> None:
        while (stretch := self._synced.get()) is not None and not self._dropped:
            if checksum(self._path, stretch.start, stretch.nbytes) != stretch.checksum:
                self.wrong = stretch.name
                return
            self.checked += stretch.nbytes


def checksum(path: Path, start: int, nbytes: int) -> int:
    """CRC-32 of part of a file, read by memory map."""
    found = 0
    for first in range(0, nbytes, BLOCK_BYTES):
        part = map_bytes(path, start + first, min(BLOCK_BYTES, nbytes - first))
        found = zlib.crc32(part.data, found)
    return found
