"""Threads that follow a file while it is written: one hashes it, one has it on the disk.

Both wait for other parts of the machine while the writer works (hashing has a core of its own
and releases the interpreter, syncing waits for the disk), so neither adds to the time it takes.
"""

from __future__ import annotations

import hashlib
import os
import threading
from io import RawIOBase
from pathlib import Path
from typing import TypeVar

from dfly_core.convert.staging import sync

Self = TypeVar("Self", bound="Follower")  # typing has its own from Python 3.11 on


class Follower:
    """Follows a file as far as `written` says; subclasses say what is done with each stretch.

    Nothing is opened before the first `written`. Leaving the `with` block drops the rest.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ready, self._over, self._dropped = 0, False, False
        self._change = threading.Condition()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()

    def __enter__(self: Self) -> Self:
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

    def end(self) -> None:
        """The file is complete; returns at once."""
        with self._change:
            self._over = True
            self._change.notify()

    def wait(self) -> None:
        """Wait until all is done, after `end`; raises the OSError met on the way."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            position = 0
            if (ready := self._wait(0)) == 0:
                return
            with self._path.open("rb", buffering=0) as file:
                while ready > position:
                    self._take(file, position, ready)
                    position, ready = ready, self._wait(ready)
            if not self._dropped:
                self._finish()
        except OSError as error:
            self._error = error

    def _wait(self, position: int) -> int:
        """How far the file is written, once that is beyond `position`; `position` at the end."""
        with self._change:
            self._change.wait_for(lambda: self._dropped or self._over or self._ready > position)
            return position if self._dropped else self._ready

    def _take(self, file: RawIOBase, position: int, ready: int) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        pass


class Hasher(Follower):
    """SHA-256 of the bytes as they are read back from the file."""

    def __init__(self, path: Path) -> None:
        self._hash = hashlib.sha256()
        self._view = memoryview(bytearray(1 << 20))
        super().__init__(path)

    def hexdigest(self) -> str:
        """The hash in hexadecimal, after `wait`."""
        return self._hash.hexdigest()

    def _take(self, file: RawIOBase, position: int, ready: int) -> None:
        while position < ready and not self._dropped:
            got = file.readinto(self._view[: min(len(self._view), ready - position)])
            if not got:
                raise OSError(0, "the file became shorter while it was written")
            self._hash.update(self._view[:got])
            position += got


class Syncer(Follower):
    """Starts to sync while the file is still written, so that little is left at its end."""

    STRIDE = 256 << 20

    def __init__(self, path: Path) -> None:
        self._synced = 0
        super().__init__(path)

    def _take(self, file: RawIOBase, position: int, ready: int) -> None:
        if ready - self._synced >= self.STRIDE:
            os.fsync(file.fileno())
            self._synced = ready

    def _finish(self) -> None:
        sync(self._path)
