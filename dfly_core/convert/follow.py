"""Hashes a file while it is being written, on a thread of its own."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

from dfly_core.records.errors import Unavailable

_CHUNK = 4 << 20


class Follower:
    """SHA-256 of a growing file, of the bytes as they are read back from it.

    Hashing is the slowest step of a plain conversion (2 GB/s here), so it runs beside the
    others; hashlib releases the interpreter. Nothing is opened before `written` is called.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._hash = path, hashlib.sha256()
        self._ready, self._over, self._dropped = 0, False, False
        self._change = threading.Condition()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="hash", daemon=True)
        self._thread.start()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        with self._change:
            self._dropped = True
            self._change.notify()
        self._thread.join()

    def written(self, position: int) -> None:
        """Everything before `position` has its final content."""
        with self._change:
            self._ready = position
            self._change.notify()

    def result(self) -> str:
        """Wait for the end of what was written; the hash in hexadecimal. Raises Unavailable."""
        with self._change:
            self._over = True
            self._change.notify()
        self._thread.join()
        if self._error is not None:
            raise Unavailable(
                f"{self._path} can't be read back ({self._error})", "check the disk, then try again"
            ) from self._error
        return self._hash.hexdigest()

    def _run(self) -> None:
        if self._wait(0) == 0:
            return
        try:
            with self._path.open("rb", buffering=0) as file:
                self._follow(file.fileno())
        except OSError as error:
            self._error = error

    def _follow(self, handle: int) -> None:
        position, view = 0, memoryview(bytearray(_CHUNK))
        while (ready := self._wait(position)) > position:
            while position < ready and not self._dropped:
                got = os.preadv(handle, [view[: min(_CHUNK, ready - position)]], position)
                if got == 0:
                    raise OSError(0, "the file became shorter while it was written")
                self._hash.update(view[:got])
                position += got

    def _wait(self, position: int) -> int:
        """How far the file is written, once that is beyond `position`; `position` at the end."""
        with self._change:
            self._change.wait_for(lambda: self._dropped or self._over or self._ready > position)
            return position if self._dropped else self._ready
