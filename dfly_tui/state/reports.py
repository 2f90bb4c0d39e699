"""Benchmark reports: read, summed up, compared, exported; rows are what the report file holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

Row = Mapping[str, Any]
HEADS = ("prompt", "alone", "DFly", "speed-up", "", "length", "accepted", "parity")


@dataclass(frozen=True)
class Report:
    """A report file and its rows."""

    path: Path
    changed: float
    about: str
    rows: tuple[Row, ...]

    @property
    def words(self) -> str:
        """One line about the whole."""
        return summary(self.rows)


def number(row: Row, name: str) -> float | None:
    """A number of a row, or None."""
    value = row.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def summary(rows: Sequence[Row]) -> str:
    """Published and withheld rows, the median speed-up and its spread."""
    speeds = [s for row in rows if (s := number(row, "speedup")) is not None]
    withheld = sum(1 for row in rows if row.get("parity") is False)
    parts = [f"{len(rows)} rows"]
    if speeds:
        parts.append(f"median speed-up {median(speeds):.2f}x")
        parts.append(f"from {min(speeds):.2f} to {max(speeds):.2f}")
    if withheld:
        parts.append(f"{withheld} withheld")
    return " · ".join(parts)


def cells(row: Row) -> list[str]:
    """A row as table cells; a withheld row shows its diagnosis where its figures would be."""
    speedup = number(row, "speedup")
    if row.get("parity") is False:
        return [str(row.get("id", "")), "-", "-", "-", "", "-", "-", withheld_words(row)]
    rate = number(row, "acceptance_rate_median")
    return [
        str(row.get("id", "")),
        _shown(number(row, "baseline_tps_median"), ".1f"),
        _shown(number(row, "dfly_tps_median"), ".1f"),
        _shown(speedup, ".2f") + ("x" if speedup is not None else ""),
        bar(speedup),
        _shown(number(row, "mean_accepted_length_median"), ".2f"),
        "-" if rate is None else f"{rate:.0%}",
        "equal" if row.get("parity") else "-",
    ]


def withheld_words(row: Row) -> str:
    """Why a row is withheld."""
    why = row.get("withheld")
    if not isinstance(why, Mapping):
        return f"withheld: {why}" if why else "withheld"
    gap = why.get("gap")
    told = f", gap {gap:.3g}" if isinstance(gap, (int, float)) else ""
    return f"withheld: differs at token {why.get('index', '?')}{told}"


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
        changed = path.stat().st_mtime
    except (OSError, ValueError):
        return None
    rows = plain.get("results") if isinstance(plain, dict) else None
    if not isinstance(rows, list):
        return None
    about = f"{_last(plain.get('model'))} + {_last(plain.get('draft'))}"
    return Report(path, changed, about, tuple(row for row in rows if isinstance(row, dict)))


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
    old = {str(row.get("id")): number(row, "dfly_tps_median") for row in before}
    changes: dict[str, float] = {}
    for row in now:
        name, rate = str(row.get("id")), number(row, "dfly_tps_median")
        was = old.get(name)
        if rate and was:
            changes[name] = rate / was
    return changes


def as_markdown(rows: Sequence[Row], about: str) -> str:
    """A report as a Markdown table."""
    heads = [head or "0 to 4x" for head in HEADS]
    lines = [f"# {about}", "", summary(rows), "", _line(heads), _line(["---"] * len(heads))]
    lines += [_line(cells(row)) for row in rows]
    return "\n".join(lines) + "\n"


def _line(values: Sequence[str]) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _last(name: object) -> str:
    plain = name.get("name", name.get("path", "?")) if isinstance(name, dict) else name
    return Path(str(plain)).name or "?"
