"""Options that several subcommands share."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

from dfly_core.records.commands import Load
from dfly_core.records.errors import Unavailable, Usage
from dfly_core.records.loaded import VerifyMode


def count(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 0 or more")
    return int(text)


def add_pair_arguments(parser: argparse.ArgumentParser) -> None:
    """--model, --draft, --no-draft, --draft-bits, --verify."""
    parser.add_argument("--model", metavar="HUB_ID|FOLDER", help="the target")
    parser.add_argument("--draft", metavar="HUB_ID|FOLDER", help="its drafter, converted")
    parser.add_argument("--no-draft", action="store_true", help="the target alone")
    parser.add_argument(
        "--draft-bits", type=int, choices=(4, 8), help="quantise a 16-bit drafter while loading"
    )
    parser.add_argument(
        "--verify", choices=get_args(VerifyMode), default="exact",
        help="exact: the target's own tokens, whatever it costs; fast: blocks as they come; "
        "auto: exact unless that costs more than a tenth (exact)",
    )  # fmt: skip


def load_request(args: argparse.Namespace) -> Load:
    """The Load command the pair's options mean; raises Usage where they exclude each other."""
    if args.no_draft and args.draft:
        raise Usage("--draft and --no-draft exclude each other", "give one of them")
    return Load(args.model, args.draft, args.no_draft, args.verify, args.draft_bits)


def say(text: str, end: str = "\n") -> None:
    """Write to stdout at once; raises Unavailable when it can't be, BrokenPipeError as it is."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unavailable(
            f"stdout can't be written ({error.strerror})", "make room, or send it elsewhere"
        ) from error


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Ctrl+C sets the event once; a second one interrupts for good."""
    pressed = threading.Event()

    def handler(*_: object) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
