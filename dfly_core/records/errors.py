"""Faults a person can mend: what is wrong, with which thing, and the one thing to do."""

from __future__ import annotations

from typing import ClassVar


class DflyError(Exception):
    """A fault told in one line: `what` names the thing and both values, `remedy` the way out."""

    kind: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}" if self.remedy else self.what


class Refused(DflyError):
    """Something that was read does not fit: a config, a checkpoint, a pair, a prompt file."""

    kind = "refused"


class Missing(DflyError):
    """A file, folder, hub repository or revision that is not there."""

    kind = "missing"


class Usage(DflyError):
    """The request itself is off: a value out of range, options that exclude each other."""

    kind = "usage"
    exit_code = 2


class Unavailable(DflyError):
    """The network, the disk or the memory did not allow it; trying again may work."""

    kind = "unavailable"


class Busy(DflyError):
    """One job at a time, and one is running."""

    kind = "busy"


class TooLong(DflyError):
    """The prompt leaves no room in the context."""

    kind = "too-long"


class Stopped(Exception):
    """Not a fault: raised at a safe moment of a job that was cancelled, which then ends."""


def import_fault(error: ImportError) -> Unavailable:
    """What a person is told when the engine, or a library it needs, can't be imported."""
    said = " ".join(str(error).split())
    return Unavailable(
        f"the engine can't be imported ({said})",
        "run `pip install -U dfly-tui`; if that does not help, `dfly-mlx doctor`",
    )


EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_WITHHELD = 3
EXIT_INTERRUPTED = 130

KINDS: dict[str, type[DflyError]] = {
    error.kind: error for error in (DflyError, Refused, Missing, Usage, Unavailable, Busy, TooLong)
}
