"""`dfly-mlx bench`: parity and speed; the table to stderr, where the report is to stdout."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfly_core.cli.arguments import add_pair_arguments, count, interruptible, load_request, say
from dfly_core.records.commands import Bench
from dfly_core.records.errors import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_WITHHELD,
    Unavailable,
    Usage,
)
from dfly_core.records.events import Benchmarked, Progress, Rowed
from dfly_core.records.files import to_write
from dfly_core.records.interrupt import ends_at_once
from dfly_core.records.marks import mark_lines, short_marks
from dfly_core.records.report import (
    CATEGORY_HEADINGS,
    HEADINGS,
    NOTHING_KEPT,
    by_category,
    cells,
    markdown,
    why_withheld,
)
from dfly_core.records.visible import one_line

if TYPE_CHECKING:  # rich takes a while to import: not for the other subcommands
    from rich.console import Console
    from rich.table import Table

NAME = "bench"
HELP = "check that DFly's tokens are the target's own, and measure both"
LONE = "--prompts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_pair_arguments(parser)
    parser.add_argument(
        "--prompts", metavar="FILE", help="a prompt a line: plain (.txt) or JSON lines (our own)"
    )
    parser.add_argument("--trials", type=count, default=3, metavar="N", help="per prompt (3)")
    parser.add_argument(
        "--max-tokens", type=count, default=128, metavar="N", help="per answer (128)"
    )
    parser.add_argument(
        "--output", metavar="FILE",
        help="the report, written after every row; an interrupted run is taken up again "
        "(benchmark.json, or benchmark-2.json and so on where that is taken)",
    )  # fmt: skip
    parser.add_argument("--markdown", metavar="FILE", help="write the report as a page, too")
    parser.add_argument("--components", action="store_true", help="time the parts of a cycle")
    parser.add_argument(
        "--check-baseline", action="store_true", help="hold the baseline against mlx-lm's own"
    )
    parser.add_argument("--json", action="store_true", help="print the report instead of its path")


def run(args: argparse.Namespace) -> int:
    """Benchmark; 0 when every row stands, 3 when some are withheld, 130 when interrupted."""
    request = load_request(args)
    if request.no_draft:
        raise Usage("a benchmark needs a drafter", "leave --no-draft out")
    _check_page(args)
    job = Bench(
        output=args.output,
        model=request.model,
        draft=request.draft,
        prompts=args.prompts,
        trials=args.trials,
        max_tokens=args.max_tokens,
        verify=request.verify,
        components=args.components,
        check_baseline=args.check_baseline,
        draft_bits=request.draft_bits,
    )
    from rich.console import Console

    with ends_at_once("dfly-mlx"):
        from dfly_core.jobs import Program

    console = Console(stderr=True)
    done = None
    with interruptible() as pressed, console.status("loading") as status:
        for event in Program().run(job, pressed.is_set):
            if isinstance(event, Progress):
                status.update(f"{event.stage} {one_line(event.item)} {event.done}/{event.total}")
            elif isinstance(event, Rowed):
                console.print(one_line(_line(event.row)), markup=False, highlight=False)
            elif isinstance(event, Benchmarked):
                done = event
    if done is None or done.path is None:
        if done is not None:
            print(NOTHING_KEPT, file=sys.stderr)
        return EXIT_INTERRUPTED
    report = json.loads(Path(done.path).read_bytes())
    _show(console, report)
    if args.markdown:
        _write(Path(args.markdown), markdown(report))
    if done.left:
        left = f"{done.left} prompt{'s' * (done.left != 1)}"
        print(f"stopped, {left} left: the same command goes on", file=sys.stderr)
    say(json.dumps(report) if args.json else f"report: {done.path}")
    if done.left:
        return EXIT_INTERRUPTED
    return EXIT_WITHHELD if done.withheld else EXIT_DONE


def _line(row: dict[str, Any]) -> str:
    values = cells(row)
    named = zip(HEADINGS[1:-1], values[1:-1], strict=True)
    doubt = f" ({mark})" if (mark := short_marks(row)) else ""
    return f"{values[0]}: {values[-1]}, " + ", ".join(f"{n} {value}" for n, value in named) + doubt


def _show(console: Console, report: dict[str, Any]) -> None:
    rows = report["results"]
    console.print(report["verify"]["words"], markup=False, highlight=False)
    console.print(_table("by prompt", HEADINGS, [cells(row) for row in rows]))
    summed = [cells(row) for row in by_category(rows)]
    console.print(_table("by category", CATEGORY_HEADINGS, summed))
    for line in [*filter(None, map(why_withheld, rows)), *mark_lines(rows)]:
        console.print(one_line(line, 2000), markup=False, highlight=False)
    check = report["baseline_check"]
    if check and check["ratio"] is not None:
        ours, theirs = check["ours_tps_median"], check["mlx_lm_tps_median"]
        holds = "no more than 2 % slower" if check["holds"] else "MORE than 2 % slower"
        console.print(
            f"baseline {ours:.1f} tok/s, mlx-lm's own decoding {theirs:.1f}: ratio "
            f"{check['ratio']:.3f}, {holds}",
            highlight=False,
        )
    if report["components"]:
        console.print(_components(report["components"]))


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index in (0, len(headings) - 1) else "right")
    for row in rows:
        table.add_row(*(one_line(value) for value in row))
    return table


def _components(parts: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(title="parts of a cycle", title_justify="left")
    table.add_column("part")
    table.add_column("ms", justify="right")
    for name, seconds in parts["seconds"].items():
        table.add_row(name, f"{1000 * seconds:.2f}")
    for width, seconds in enumerate(parts["verify_seconds_by_width"]):
        table.add_row(f"verify width {width}", f"{1000 * seconds:.2f}")
    for name, key in (("host per cycle", "host_seconds"), ("whole cycle", "cycle_seconds")):
        if parts[key] is not None:
            table.add_row(name, f"{1000 * parts[key]:.2f}")
    if parts["ideal_tps"]:
        table.add_row("ideal tok/s", f"{parts['ideal_tps']:.1f}")
        table.add_row("achieved tok/s", f"{parts['achieved_tps']:.1f}")
    return table


def _check_page(args: argparse.Namespace) -> None:
    """Before anything runs: the page must be a file that can be written, and none of our own."""
    if args.markdown is None:
        return
    path, there = Path(args.markdown), os.path.lexists(args.markdown)
    for other in (args.prompts, args.output):
        if other is not None and Path(other).resolve() == path.resolve():
            raise Usage(f"--markdown {path} would write over another file", "name another")
    try:
        to_write(path, "a").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise Unavailable(
            f"{path} can't be written ({error.strerror})", "name another --markdown"
        ) from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unavailable(
            f"{path} can't be written ({error.strerror})", "name another --markdown"
        ) from error
