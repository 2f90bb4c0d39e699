"""`dfly-tui`: starts the engine's process, then the screen; ends both."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dfly_core import __version__
from dfly_core.records.commands import Load
from dfly_core.records.errors import Usage
from dfly_core.records.interrupt import ends_at_once
from dfly_core.records.usage import OneLineParser, as_utf8, flushed, parsed, prepare_streams
from dfly_core.records.visible import one_line
from dfly_tui.engine import WORKER, Engine
from dfly_tui.state.places import data_dir
from dfly_tui.state.settings import load_settings
from dfly_tui.state.store import Store


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = OneLineParser(
        prog="dfly-tui", description="Chat in the terminal, decoded speculatively with DFly."
    )
    top.lone = "--prompt"
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    top.add_argument("--model", metavar="M", help="target: a folder or a hub id")
    top.add_argument("--draft", metavar="D", help="drafter: a folder or a hub id")
    top.add_argument("--no-draft", action="store_true", help="the target alone")
    top.add_argument("--verify", choices=("exact", "fast", "auto"), help="how drafts are checked")
    top.add_argument("--prompt", metavar="TEXT", default="", help="ask this at once")
    top.add_argument(
        "--resume", metavar="N", nargs="?", const="last", help="open the last chat, or number N"
    )
    top.add_argument(
        "--plain", action="store_true",
        help="line mode, for screen readers and pipes: in a terminal every line is a message and "
        "/help lists the commands; a pipe is one message, and leaves no chat behind unless "
        "--resume says which one it belongs to (with --prompt stdin is not read)",
    )  # fmt: skip
    top.add_argument("--debug", action="store_true", help="show tracebacks")
    return top


def main(argv: Sequence[str] | None = None, worker: Sequence[str] = WORKER) -> int:
    """Run the app; returns the exit code."""
    prepare_streams()
    args, code = parsed(parser(), argv)
    if args is None:
        return flushed("dfly-tui", code)
    if args.draft and args.no_draft:
        sys.stderr.write("dfly-tui: --draft and --no-draft exclude each other: give one of them\n")
        return 2
    try:
        args.prompt = as_utf8(args.prompt, "--prompt")
    except Usage as error:
        sys.stderr.write(f"dfly-tui: {error}\n")
        return 2
    data = data_dir()
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"{data} can't be made ({error.strerror}): set XDG_DATA_HOME to a folder that can"
        sys.stderr.write(f"dfly-tui: {why}\n")
        return 1
    number, fault = _resumed(args.resume, data)
    if fault:
        sys.stderr.write(f"dfly-tui: {fault}\n")
        return 2
    if args.plain:
        return flushed("dfly-tui", _plain(args, worker, data, number))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.stderr.write("dfly-tui: this is no terminal: use --plain, or dfly-mlx generate\n")
        return 2
    engine = Engine(data / "engine.log", worker)
    try:
        # The engine starts while the screen is being imported and painted.
        engine.start()
        with ends_at_once("dfly-tui"):
            from dfly_tui.app import DflyApp, Start
        app = DflyApp(engine, Start(data, _load(args), args.prompt, number, args.debug))
        app.run()
        return app.return_code or 0
    except OSError as error:
        sys.stderr.write(f"dfly-tui: {error}\n")
        return 1
    finally:
        engine.end()


def _load(args: argparse.Namespace) -> Load | None:
    """What the command line asks to load; None leaves it to the settings."""
    if args.model or args.draft or args.no_draft or args.verify:
        return Load(args.model, args.draft, args.no_draft, args.verify or "exact")
    return None


def _resumed(asked: str | None, data: Path) -> tuple[int | None, str]:
    """The chat to open, or why there is none."""
    if asked is None:
        return None, ""
    store = Store(data / "chats")
    known = store.numbers()
    if asked == "last":
        return store.latest(), "" if known else "there is no chat to resume yet: start without it"
    if asked.isdecimal() and int(asked) in known:
        return int(asked), ""
    return None, f"there is no chat {one_line(asked, 40)}: /chats in the app lists them"


def _plain(args: argparse.Namespace, worker: Sequence[str], data: Path, number: int | None) -> int:
    with ends_at_once("dfly-tui"):
        from dfly_tui.plain import Plain
    settings, fault = load_settings(data / "settings.json")
    load = _load(args) or Load(
        settings.model, settings.draft, settings.no_draft, settings.verify_mode
    )
    engine = Engine(data / "engine.log", worker)
    plain = Plain(engine, load, settings.options, data, settings.system)
    if fault:
        plain.note(f"dfly-tui: {fault}")
    try:
        if number is not None:
            plain.resume(number)
        return plain.run(args.prompt)
    except OSError as error:
        sys.stderr.write(f"dfly-tui: {error}\n")
        return 1
    finally:
        plain.talk.close()
        engine.end()
