"""`dfly-mlx`: parses, runs one job, prints its events; a fault is one line and an exit code."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

from dfly_core import __version__
from dfly_core.cli import bench, convert, doctor, generate
from dfly_core.cli.arguments import OneLineParser
from dfly_core.records.errors import EXIT_FAILED, EXIT_INTERRUPTED, DflyError
from dfly_core.records.visible import one_line

SUBCOMMANDS: tuple[ModuleType, ...] = (generate, convert, bench, doctor)


def parser() -> argparse.ArgumentParser:
    """The whole command line; each subcommand adds its own arguments."""
    top = OneLineParser(prog="dfly-mlx", description=__doc__)
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in SUBCOMMANDS:
        sub = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        sub.add_argument("--debug", action="store_true", help="show the traceback of a fault")
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit code (0, 1, 2, 3 or 130, see records.errors)."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except DflyError as error:
        if args.debug:
            traceback.print_exc()
        print(f"dfly-mlx: {one_line(str(error), 2000)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("dfly-mlx: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left: no fault of ours, and nothing to say to it.
        sys.stderr.close()
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001  the last door: never a bare traceback
        if args.debug:
            traceback.print_exc()
        print(
            f"dfly-mlx: unexpected {type(error).__name__}: {one_line(str(error))}: "
            "please report it with the output of --debug",
            file=sys.stderr,
        )
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
