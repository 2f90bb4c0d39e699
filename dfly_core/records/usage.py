"""What both command lines share: faults are one line, and what was printed did arrive."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from dfly_core.records.errors import EXIT_DONE, EXIT_FAILED, EXIT_USAGE, Usage
from dfly_core.records.visible import one_line

TEXTS = ("prompt", "system")  # options that may be empty; an empty name would mean the folder here


class OneLineParser(argparse.ArgumentParser):
    """An ArgumentParser that reports a usage fault in one line."""

    lone: str | None = None  # the option that a word without one most likely belongs to

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but of a word that no option takes it says which one would."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            used: OneLineParser = getattr(found, "parser", self)
            if rest[0].startswith("-"):
                used.error(f"there is no option {rest[0]}")
            lone = used.lone
            free = lone is not None and not getattr(found, lone.removeprefix("--"))
            word = shlex.quote(" ".join(rest) if lone == "--prompt" else rest[0])
            remedy = f"write {lone} {word}" if free else "no option takes it"
            used.error(f"{word} stands alone: {remedy}")
        return found

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


def as_utf8(text: str, name: str) -> str:
    """An argument's text; where the locale could not read its bytes they are read as UTF-8.

    Raises Usage where they are something else.
    """
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        try:
            return os.fsencode(text).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Usage(f"{name} is not UTF-8 ({error.reason})", "convert it first") from error


def parsed(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> tuple[argparse.Namespace | None, int]:
    """The arguments; or None and an exit code where the parser has said all there is to say."""
    try:
        args = parser.parse_args(argv)
        for name, value in vars(args).items():
            if value == "" and name not in TEXTS:
                option = name.replace("_", "-")
                parser.error(f"--{option} is empty: give it a value, or leave it out")
        return args, EXIT_DONE
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
