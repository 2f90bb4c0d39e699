"""`dfly-mlx convert`: a published DFly checkpoint becomes a folder this program reads."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from dfly_core.cli.arguments import say
from dfly_core.cli.progress import shown
from dfly_core.records.checked import Checked, check_lines, sizing_words
from dfly_core.records.commands import Convert
from dfly_core.records.errors import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED
from dfly_core.records.events import Cancelled, Converted, Event, Progress
from dfly_core.records.interrupt import ends_at_once
from dfly_core.records.sizes import size_words
from dfly_core.records.visible import one_line

NAME = "convert"
HELP = "convert a DFly checkpoint (hub id, folder or file) to the MLX format"
LONE = "--draft"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare this subcommand's arguments."""
    parser.add_argument(
        "--output", metavar="DIR", help="the folder to make (not needed with --check)"
    )
    parser.add_argument(
        "--draft", metavar="SOURCE", help="hub id, folder or file (default: the official drafter)"
    )
    parser.add_argument("--revision", metavar="R", help="revision of a hub id")
    parser.add_argument("--quantize", type=int, choices=(4, 8), help="bits, in groups of 64")
    parser.add_argument(
        "--dtype", choices=("bf16", "f16", "f32"), help="float type (default: the source's)"
    )
    parser.add_argument("--force", action="store_true", help="replace a converted drafter")
    parser.add_argument(
        "--check", action="store_true",
        help="only tell what would happen: gates, sizes, room, predicted speed",
    )  # fmt: skip
    parser.add_argument(
        "--model", metavar="HUB_ID|FOLDER", help="with --check: the target to predict the speed for"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Convert and show how it goes; returns the exit code."""
    command = Convert(
        output=args.output,
        source=args.draft,
        revision=args.revision,
        quantize=args.quantize,
        dtype=args.dtype,
        force=args.force,
        check=args.check,
        target=args.model,
    )
    (closing,) = (event for event in shown(_job(command)) if not isinstance(event, Progress))
    if isinstance(closing, Checked):
        if args.json:
            say(json.dumps(asdict(closing), indent=2))
        else:
            _print_check(closing, args.quantize)
        return EXIT_FAILED if closing.refused else EXIT_DONE
    if isinstance(closing, Cancelled):
        return EXIT_INTERRUPTED
    if isinstance(closing, Converted):
        if args.json:
            say(json.dumps(closing.report, indent=2))
        else:
            _print_report(closing)
    return EXIT_DONE


def _job(command: Convert) -> Iterator[Event]:
    # MLX and the hub client are slow to import: not for --help.
    if command.check:
        with ends_at_once("dfly-mlx"):
            from dfly_core.jobs import Program

        return Program().run(command, lambda: False)
    with ends_at_once("dfly-mlx"):
        from dfly_core.convert.convert import convert

    return convert(command, lambda: False)


def _print_check(found: Checked, bits: int | None) -> None:
    say(f"{one_line(found.source)}: a check, nothing is written")
    for line in check_lines(found, bits):
        say(f"  {one_line(line, 2000)}")
    for sizing in found.sizes:
        say(f"  {sizing_words(sizing)}")
    if found.rests_on:
        say(f"  {one_line(found.rests_on, 2000)}")


def _print_report(converted: Converted) -> None:
    report = converted.report
    kind = f"{report['bits']} bit" if report["bits"] else report["dtype"]
    say(
        f"{one_line(report['output'])}: {report['tensors']} tensors, {kind}, "
        f"{size_words(report['output_bytes'])} in {report['seconds']:.1f} s "
        f"(from a {report['layout']})"
    )
    for note in report["notes"]:
        say(f"  {one_line(note)}")
    if report["errors"]:
        worst = max(report["errors"], key=lambda error: float(error["relative"]))
        say(f"  largest relative error {worst['relative']:.4f} in {worst['name']}")
    if report["agreement"]:
        agreement = report["agreement"]
        say(
            f"  hidden states agree with the unquantised drafter: mean cosine "
            f"{agreement['cosine_mean']:.5f}, least {agreement['cosine_least']:.5f} "
            f"({agreement['rows']} sample rows)"
        )
