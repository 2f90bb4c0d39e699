"""An advisory lock on a file; the kernel takes it back when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path


class Lock:
    """Held until it is released or forgotten."""

    def __init__(self, descriptor: int) -> None:
        self.release = weakref.finalize(self, os.close, descriptor)


def lock(path: Path) -> Lock | None:
    """Lock a file without waiting; None if somebody else has it.

    Raises OSError if the file cannot be opened. Where the file system knows no locks, nobody is
    kept out.
    """
    while True:
        # Over NFS a lock needs a file open for writing.
        mode = os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY
        descriptor = os.open(path, mode | os.O_CLOEXEC)
        held = Lock(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.release()
            return None
        except OSError:
            return held
        # Another window may have put a new file in this one's place since it was opened.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return held
        held.release()
