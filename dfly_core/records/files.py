"""Files that a user names: a folder, a pipe without another end, an endless device are faults.

Only `OSError` and `UnicodeDecodeError` come out of here, so that one handler suffices.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TextIO

from dfly_core.records.sizes import size_words

MOST = 64 << 20  # bytes: no prompt, settings or report is as long
_PIECE = 1 << 20


def contents(path: str | Path, most: int = MOST) -> bytes:
    """All bytes of a file; raises OSError also where there are more than `most`."""
    # Without O_NONBLOCK the opening waits for a writer, perhaps forever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.set_blocking(descriptor, True)
        return drained(lambda count: os.read(descriptor, count), most)
    finally:
        os.close(descriptor)


def drained(read: Callable[[int], bytes], most: int = MOST) -> bytes:
    """All that a stream has; raises OSError also where that is more than `most` bytes."""
    found, size = [], 0
    while piece := read(_PIECE):
        found.append(piece)
        size += len(piece)
        if size > most:
            raise OSError(errno.EFBIG, f"more than {size_words(most)}")
    return b"".join(found)


def why_unread(error: OSError | UnicodeDecodeError) -> str:
    """What such a fault was, in a few words."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    return error.strerror or str(error)


def to_write(path: str | Path, mode: Literal["w", "a"] = "w") -> TextIO:
    """A text file to write; a pipe which nobody reads fails instead of waiting for a reader."""
    return open(path, mode, encoding="utf-8", opener=_at_once)


def _at_once(path: str, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "a pipe that nobody reads", path) from error
        raise
    os.set_blocking(descriptor, True)
    return descriptor
