"""Benchmark reports in the app: listed, summed up, compared; cells and pages are the records'."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dfly_core.records import report as records
from dfly_tui.state.progress import plural

Row = Mapping[str, Any]
# Shorter than the records' headings: a withheld row needs the room; rates are tokens/s.
HEADS = ("prompt", "alone", "DFly", "speed-up", "", "length", "accepted", "parity")


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
        model, draft = self.plain.get("model"), self.plain.get("draft")
        return f"{Path(str(model)).name} + {Path(str(draft)).name} · {summary(self.rows)}"

    def page(self) -> str:
        """The report as Markdown."""
        return records.markdown(self.plain)


def summary(rows: Sequence[Row]) -> str:
    """Published and withheld rows, the median speed-up and its spread."""
    speeds = [row["speedup"] for row in rows if row.get("speedup") is not None]
    withheld = sum(1 for row in rows if not row.get("parity"))
    parts = [plural(len(rows), "row")]
    if speeds:
        parts.append(f"median speed-up {median(speeds):.2f}x")
    if len(speeds) > 1:
        parts.append(f"from {min(speeds):.2f} to {max(speeds):.2f}")
    if withheld:
        parts.append(f"{withheld} withheld")
    return " · ".join(parts)


def cells(row: Row) -> list[str]:
    """A row as table cells, with a bar; a withheld row ends with its diagnosis."""
    shown = list(records.cells(row))
    shown.insert(4, bar(row.get("speedup")))
    why = row.get("withheld")
    if isinstance(why, Mapping):
        gap = f", gap {why['gap']:.3g}" if why.get("gap") is not None else ""
        shown[-1] = f"withheld: differs at token {why.get('index')}{gap}"
    return shown


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
        plain = json.loads(path.read_text("utf-8"))
        report = Report(path, path.stat().st_mtime, plain)
        # A file of another kind fails here, not on the screen.
        report.page()
        [cells(row) for row in report.rows]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return report


def read_reports(folder: Path) -> list[Report]:
    """The reports in a folder, newest first."""
    found = [read_report(path) for path in folder.glob("*.json")] if folder.is_dir() else []
    return sorted((r for r in found if r is not None), key=lambda report: -report.changed)


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
