"""Ctrl+c while Python imports or ends: one line, wherever it falls."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130


@contextmanager
def ends_at_once(program: str) -> Iterator[None]:
    """While this lasts ctrl+c ends the process with one line: only for imports.

    An exception would do for most code, but not all that is imported lets it through: some
    swallow it, and what is raised in a callback Python only prints.
    """

    def end(*_: object) -> None:
        os.write(2, f"{program}: interrupted\n".encode())
        os._exit(INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, by nohup for one, or taken
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def ended(code: int) -> int:
    """The exit code; from here on ctrl+c ends the process without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code
