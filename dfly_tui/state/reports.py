"""Benchmark reports in the app: listed, summed up, compared; cells and pages are the records'."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dfly_core.records import report as records
from dfly_core.records.files import contents
from dfly_core.records.marks import marked_words, marks
from dfly_tui.state.progress import plural

Row = Mapping[str, Any]
# Shorter than the records' headings: a withheld row needs the room.
HEADS = (
    "prompt", "alone\ntok/s", "DFly\ntok/s", "speed-up", "", "mean accepted\nlength",
    "accepted", "parity",
)  # fmt: skip
WIDE, MIDDLE = 110, 76  # cells a table needs for all columns, and for all but the bar
BAR_WORDS = "Bars run from 0 to 4x; ┼ is 1x, the target alone. Rates are tokens/s."

CATEGORY_WORDS = "Category speed-up: median of its rows' own"
CATEGORY_SHORT = "Categories: medians of their rows"


@dataclass(frozen=True)
class Report:
    """A report file: its plain data and its rows."""

    path: Path
    changed: float
    plain: dict[str, Any]

    @property
    def rows(self) -> list[Row]:
        """The rows as they stand in the file."""
        return list(self.plain["results"])

    @property
    def words(self) -> str:
        """One line about the whole."""
        model, draft = Path(str(self.plain.get("model"))), Path(str(self.plain.get("draft")))
        embedded = model.name == draft.name == "embedded"
        pair = "embedded pair" if embedded else f"{model.name} + {draft.name}"
        return f"{pair} · {summary(self.rows)}"

    def page(self) -> str:
        """The report as Markdown."""
        return records.markdown(self.plain)


def summary(rows: Sequence[Row]) -> str:
    """Published and withheld rows, the median speed-up and its spread."""
    speeds = [speed for row in rows if (speed := records.speedup(row)) is not None]
    idle = sum(map(records.never_drafted, rows))
    withheld = sum(1 for row in rows if not row.get("parity"))
    parts = [plural(len(rows), "row")]
    if speeds:
        parts.append(f"median speed-up {median(speeds):.2f}x")
    if len(speeds) > 1:
        parts.append(f"from {min(speeds):.2f} to {max(speeds):.2f}")
    if marked := marked_words(rows):
        parts.append(marked)
    if idle:
        parts.append(f"{idle} did not draft")
    if withheld:
        parts.append(f"{withheld} withheld")
    return " · ".join(parts)


def columns(width: int) -> tuple[int, ...]:
    """Which of the columns have room in a table of that many cells."""
    if width >= WIDE:
        return tuple(range(len(HEADS)))
    return (0, 1, 2, 3, 5, 6, 7) if width >= MIDDLE else (0, 3, 5, 7)


def cells(row: Row) -> list[str]:
    """A row as table cells, with a bar."""
    shown = list(records.cells(row))
    shown.insert(4, bar(records.speedup(row)))
    return shown


def diagnosis(row: Row) -> str:
    """Why a row is withheld, in a few words; empty when it stands."""
    why = row.get("withheld")
    if not isinstance(why, Mapping):
        return ""
    gap = f", gap {why['gap']:.3g}" if why.get("gap") is not None else ""
    return f"withheld: token {why.get('index')}{gap}"


def doubts(row: Row) -> str:
    """Why a row's rates can't be trusted; empty when they can."""
    return ", ".join(marks(row))


def categories(rows: Sequence[Row]) -> list[list[str]]:
    """The rows by category, as cells; none when there is only one row."""
    return [cells(row) for row in records.by_category(rows)] if len(rows) > 1 else []


def bar(speedup: float | None, width: int = 12) -> str:
    """A bar from 0 to 4x, with a mark where 1x is."""
    if speedup is None:
        return ""
    filled = round(min(speedup, 4.0) / 4 * width)
    one = width // 4
    drawn = "━" * filled + "─" * (width - filled)
    return drawn[: one - 1] + "┼" + drawn[one:]


def read_report(path: Path) -> Report | None:
    """The report in a file, or None."""
    try:
        plain = json.loads(contents(path))
        report = Report(path, path.stat().st_mtime, plain)
        # A file of another kind fails here, not on the screen.
        report.page()
        [cells(row) for row in report.rows]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return report


def read_reports(folder: Path) -> list[Report]:
    """The reports in a folder that have rows, newest first."""
    found = [read_report(path) for path in folder.glob("*.json")] if folder.is_dir() else []
    return sorted((r for r in found if r and r.rows), key=lambda report: -report.changed)


def next_path(folder: Path) -> Path:
    """A name that is free."""
    numbers = [int(p.stem[6:]) for p in folder.glob("bench-*.json") if p.stem[6:].isdigit()]
    return folder / f"bench-{max(numbers, default=0) + 1}.json"


def compared(now: Sequence[Row], before: Sequence[Row]) -> dict[str, float]:
    """By row id, how many times faster the DFly rate is than before."""
    old = {str(row.get("id")): row.get("dfly_tps_median") for row in before}
    changes: dict[str, float] = {}
    for row in now:
        name, rate = str(row.get("id")), row.get("dfly_tps_median")
        was = old.get(name)
        if rate and was:
            changes[name] = rate / was
    return changes


def compared_categories(now: Sequence[Row], before: Sequence[Row]) -> list[float | None]:
    """For each of `categories`, the middle of its rows' changes; None where none was compared."""
    changes = compared(now, before)
    found = []
    for summed in records.by_category(now):
        name = summed["id"]
        rows = [row for row in now if name == "all" or str(row["category"]) == name]
        ratios = [changes[key] for row in rows if (key := str(row.get("id"))) in changes]
        found.append(median(ratios) if ratios else None)
    return found


def incomparable(now: Sequence[Row], before: Sequence[Row]) -> str:
    """What no prompt is that could be compared; empty if there is one."""
    names, old = ({str(row.get("id")) for row in rows} for rows in (now, before))
    if not names & old:
        return "in common"
    return "" if compared(now, before) else "that both published"
