"""`dfly-tui`: starts the engine's process, then the screen; ends both."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dfly_core import __version__
from dfly_core.records.commands import Load
from dfly_tui.engine import WORKER, Engine
from dfly_tui.state.places import data_dir


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="dfly-tui", description="Chat in the terminal, decoded speculatively with DFly."
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    top.add_argument("--model", metavar="M", help="target: a folder or a hub id")
    top.add_argument("--draft", metavar="D", help="drafter: a folder or a hub id")
    top.add_argument("--no-draft", action="store_true", help="the target alone")
    top.add_argument("--verify", choices=("exact", "fast", "auto"), help="how drafts are checked")
    top.add_argument("--prompt", metavar="TEXT", default="", help="ask this at once")
    top.add_argument("--debug", action="store_true", help="show tracebacks")
    return top


def main(argv: Sequence[str] | None = None, worker: Sequence[str] = WORKER) -> int:
    """Run the app; returns the exit code."""
    args = parser().parse_args(argv)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.stderr.write("dfly-tui: this is no terminal: use --plain, or dfly-mlx generate\n")
        return 2
    data = data_dir()
    engine = Engine(data / "engine.log", worker)
    load = None
    if args.model or args.draft or args.no_draft or args.verify:
        load = Load(args.model, args.draft, args.no_draft, args.verify or "exact")
    try:
        # The engine starts while the screen is being imported and painted.
        engine.start()
        from dfly_tui.app import DflyApp, Start

        app = DflyApp(engine, Start(data, load, args.prompt, debug=args.debug))
        app.run()
        return app.return_code or 0
    except OSError as error:
        sys.stderr.write(f"dfly-tui: {error}\n")
        return 1
    finally:
        engine.end()


if __name__ == "__main__":
    sys.exit(main())
