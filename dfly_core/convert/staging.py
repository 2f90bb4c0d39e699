"""A folder beside the destination that becomes it in one step, or never.

The destination is absent or whole at every moment, a killed process included: the new folder
is built under a hidden name in the same parent, synced, and renamed. A lock on the folder tells
the next run whether its maker still lives.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from dfly_core.records.errors import Busy, Refused, Unavailable

_NEW, _OLD = "new", "old"


class Staging:
    """The folder under construction. `publish` makes it the destination.

    Call `clear_leftovers` first.
    """

    def __init__(self, output: Path) -> None:
        # A link is followed: what it points at is replaced, not the link.
        self.output = output.resolve()
        self.folder = _name(self.output, _NEW)
        self._lock = -1

    def __enter__(self) -> Staging:
        with _told(self.output):
            self.output.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir()
            self._lock = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)

    def publish(self, replace: bool) -> None:
        """Make the folder the destination; everything in it must be synced already."""
        with _told(self.output):
            sync(self.folder)
            if replace and self.output.exists():
                self._exchange()
            else:
                # Onto an empty folder this succeeds, onto anything else it fails.
                self.folder.rename(self.output)
            sync(self.output.parent)

    def _exchange(self) -> None:
        if exchange(self.folder, self.output):
            return  # the old one now has our hidden name, and goes with it
        # No such call here: between these two lines the old one is aside, and the next run
        # puts it back if this one dies there.
        aside = _name(self.output, _OLD)
        self.output.rename(aside)
        self.folder.rename(self.output)
        shutil.rmtree(aside, ignore_errors=True)


def clear_leftovers(output: Path) -> None:
    """Remove what dead runs left beside `output`, and put back what one had moved aside.

    Raises Busy while another run is at work on it.
    """
    output = output.resolve()
    with _told(output):
        for path in sorted(_beside(output, _NEW)):
            _clear(path, output)
        for path in sorted(_beside(output, _OLD)):
            if output.exists():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.rename(output)


def _clear(path: Path, output: Path) -> None:
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError as error:
        raise Busy(f"another conversion is writing {output}", "wait for it to end") from error
    finally:
        os.close(lock)


def sync(path: Path) -> None:
    """Have a file's or folder's content on the disk itself before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
        if full is not None:
            with contextlib.suppress(OSError):  # some file systems know only fsync
                fcntl.fcntl(handle, full)
                return
        os.fsync(handle)
    finally:
        os.close(handle)


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; False where the system has no such call."""
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        call, arguments = "renamex_np", (os.fsencode(one), os.fsencode(other), 2)  # RENAME_SWAP
    else:
        here = -100  # AT_FDCWD
        call, arguments = (
            "renameat2",
            (here, os.fsencode(one), here, os.fsencode(other), 2),  # RENAME_EXCHANGE
        )
    function = getattr(library, call, None)
    return function is not None and function(*arguments) == 0


@contextlib.contextmanager
def writing(output: Path) -> Iterator[None]:
    """Tell a full disk or a failing one in one line, as a fault of the output."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"can't write {output} ({error.strerror or error})",
            "free some space or choose an output elsewhere",
        ) from error


def _name(output: Path, kind: str) -> Path:
    return output.with_name(f".{output.name}.dfly-{kind}-{secrets.token_hex(4)}")


def _beside(output: Path, kind: str) -> Iterator[Path]:
    start = f".{output.name}.dfly-{kind}-"
    if output.parent.is_dir():
        yield from (path for path in output.parent.iterdir() if path.name.startswith(start))


@contextlib.contextmanager
def _told(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename2 is not None or isinstance(error, FileExistsError):
            raise Refused(f"the output {output} appeared meanwhile", "choose another") from error
        raise Unavailable(
            f"can't write {output} ({error.strerror or error})", "choose another output"
        ) from error
