"""What both command lines share: faults are one line, and what was printed did arrive."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from dfly_core.records.errors import EXIT_DONE, EXIT_FAILED, EXIT_USAGE
from dfly_core.records.visible import one_line


class OneLineParser(argparse.ArgumentParser):
    """An ArgumentParser that reports a usage fault in one line."""

    def error(self, message: str) -> NoReturn:
        """Say the fault and its remedy on stderr; exit 2."""
        self.exit(EXIT_USAGE, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse's own swallows what a full disk raises.
        (file or sys.stderr).write(message)


def prepare_streams() -> None:
    """Closed standard streams become empty ones; what stdout can't encode is written escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def parsed(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> tuple[argparse.Namespace | None, int]:
    """The arguments; or None and an exit code where the parser has said all there is to say."""
    try:
        return parser.parse_args(argv), EXIT_DONE
    except SystemExit as done:
        return None, done.code if isinstance(done.code, int) else EXIT_FAILED
    except OSError as error:
        return None, _unwritten(parser.prog, error)


def flushed(name: str, code: int) -> int:
    """The exit code once stdout is written out; a full disk is one line of program `name`'s."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter would try once more at its end, and complain in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or _unwritten(name, error)
    return code


def _unwritten(name: str, error: OSError) -> int:
    # A reader of our output who left is no fault of ours, and there is nothing to say to it.
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"{name}: stdout can't be written ({error.strerror})\n")
    return EXIT_FAILED
