"""`dfly-mlx`: parses, runs one job, prints its events; a fault is one line and an exit code."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

from dfly_core import __version__
from dfly_core.cli import bench, convert, doctor, generate
from dfly_core.records.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    DflyError,
    import_fault,
)
from dfly_core.records.usage import OneLineParser, flushed, parsed, prepare_streams
from dfly_core.records.visible import one_line

DESCRIPTION = (
    "Generate text with a model that a DFly drafter speeds up without changing its tokens, convert "
    "drafters to the MLX format, and check and measure both on this machine."
)
SUBCOMMANDS: tuple[ModuleType, ...] = (generate, convert, bench, doctor)


def parser() -> argparse.ArgumentParser:
    """The whole command line; each subcommand adds its own arguments."""
    top = OneLineParser(prog="dfly-mlx", description=DESCRIPTION)
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in SUBCOMMANDS:
        sub = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        sub.add_argument("--debug", action="store_true", help="show the traceback of a fault")
        module.add_arguments(sub)
        sub.lone = module.LONE
        sub.set_defaults(run=module.run, parser=sub)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit code (0, 1, 2, 3 or 130, see records.errors)."""
    prepare_streams()
    args, code = parsed(parser(), argv)
    if args is not None:
        code = _run(args)
    return flushed("dfly-mlx", code)


def _run(args: argparse.Namespace) -> int:
    try:
        return int(args.run(args))
    except (DflyError, ImportError) as error:
        if args.debug:
            traceback.print_exc()
        fault = import_fault(error) if isinstance(error, ImportError) else error
        print(f"dfly-mlx: {one_line(str(fault), 2000)}", file=sys.stderr)
        return fault.exit_code
    except KeyboardInterrupt:
        print("dfly-mlx: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left: no fault of ours, and nothing to say to it.
        return EXIT_FAILED
    except PermissionError as error:
        if args.debug:
            traceback.print_exc()
        what = f"{error.filename or 'a file'}: {error.strerror}"
        print(f"dfly-mlx: {one_line(what)}: check its permissions", file=sys.stderr)
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
