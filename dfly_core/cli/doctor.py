"""`dfly-mlx doctor`: one page to paste into a bug report; 0 only if chat would work."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from dfly_core import __version__
from dfly_core.cli.arguments import count, say
from dfly_core.cli.progress import shown
from dfly_core.preflight import preflight
from dfly_core.records.commands import Doctor
from dfly_core.records.errors import EXIT_DONE, EXIT_FAILED
from dfly_core.records.events import Examined
from dfly_core.records.interrupt import ends_at_once
from dfly_core.records.page import page_lines
from dfly_core.records.visible import visible

NAME = "doctor"
HELP = "examine this machine and the models: what works, how exact, how fast, what to do"
LONE = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--model", metavar="HUB_ID|FOLDER", help="the target (the embedded one)")
    parser.add_argument("--draft", metavar="HUB_ID|FOLDER", help="its drafter, converted")
    parser.add_argument(
        "--context", type=count, default=8192, metavar="N", help="tokens to keep in memory (8192)"
    )
    parser.add_argument("--json", action="store_true", help="print the page as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the page; never downloads anything."""
    early = [problem for problem in preflight() if problem.fatal]
    if early:
        # MLX can't even be imported then, so nothing more can be told.
        if args.json:
            found = {"version": __version__, "healthy": False}
            say(json.dumps(found | {"problems": [asdict(problem) for problem in early]}))
        for problem in early if not args.json else ():
            say(f"! {problem.what}: {problem.remedy}")
        return EXIT_FAILED
    with ends_at_once("dfly-mlx"):
        from dfly_core.jobs import Program

    command = Doctor(args.model, args.draft, args.context)
    events = shown(Program().run(command, lambda: False))
    (done,) = (event for event in events if isinstance(event, Examined))
    if args.json:
        say(json.dumps(done.page))
    else:
        say(visible("\n".join(page_lines(done.page))))
    return EXIT_DONE if done.healthy else EXIT_FAILED
