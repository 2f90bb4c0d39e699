"""What makes a benchmark row's rates doubtful, in words that stand beside its figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FEW_TRIALS = 3  # two values have no middle: their median is their mean, an outlier included

# Upper over lower quartile of a side's rates. Two sides at this bound put a speed-up off by up
# to 1.2 * 1.2 = 1.44 times. On a 2-core virtual machine with neighbours (5 trials, 24 prompts of
# the embedded pair) the median side had 1.12, and 37 of 48 were within 1.2.
NOISY_RATIO = 1.2

# What others want of the machine: the load average less the processor time we took ourselves,
# which is no sign of company (our own threads alone hold the load at the number of cores). From
# half of the cores on, threads of both must take turns.
BUSY_SHARE = 0.5

SIDES = (("target", "baseline"), ("DFly", "dfly"))


@dataclass(frozen=True)
class Company:
    """How busy the machine was during a row: the system's load average over the last minute,
    the cores, and how many of them this process kept busy itself."""

    average: float
    cores: int
    own: float


def marks(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Why a row's rates can't be trusted, nothing where they can; reads older reports, too.

    A withheld row has no rates, hence no marks.
    """
    if not row.get("parity"):
        return ()
    sides = {name: _rates(row.get(f"{key}_trials") or ()) for name, key in SIDES}
    return (*_few(sides.values()), *_noisy(sides), *_busy(row.get("company")))


def short_marks(row: Mapping[str, Any]) -> str:
    """The same in a table's cell: `1 trial: no spread`, `noisy, machine was busy`."""
    return ", ".join(map(_short, marks(row)))


def _short(mark: str) -> str:
    return mark.partition(" (")[0]


def marked_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many rows with rates are doubtful: `2 of 24 rows doubtful (?)`; else empty."""
    published = [row for row in rows if row.get("parity")]
    count = sum(bool(marks(row)) for row in published)
    return f"{count} of {len(published)} rows doubtful (?)" if count else ""


def mark_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many rows are marked, then which for which reason, a line each; none without marks."""
    words = marked_words(rows)
    if not words:
        return []
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        for mark in marks(row):
            by_reason.setdefault(_short(mark), []).append(str(row["id"]))
    count = sum(bool(row.get("parity")) for row in rows)
    return [
        f"{words}, and so are medians over them:",
        *(
            f"- {reason} ({'every row' if len(ids) == count else ', '.join(ids)})"
            for reason, ids in by_reason.items()
        ),
    ]


def _rates(trials: Iterable[Mapping[str, Any]]) -> list[float]:
    return [rate for trial in trials if (rate := trial.get("tokens_per_second")) is not None]


def _few(sides: Iterable[Sequence[float]]) -> Iterable[str]:
    count = min(len(rates) for rates in sides)
    if 0 < count < FEW_TRIALS:
        yield f"{count} trial{'s' * (count > 1)}: no spread"


def _noisy(sides: Mapping[str, Sequence[float]]) -> Iterable[str]:
    told = [
        f"{name} {min(rates):.1f} to {max(rates):.1f} tok/s"
        for name, rates in sides.items()
        if len(rates) >= FEW_TRIALS and _quartile_ratio(rates) > NOISY_RATIO
    ]
    if told:
        yield f"noisy ({', '.join(told)})"


def _quartile_ratio(rates: Sequence[float]) -> float:
    low, _, high = statistics.quantiles(rates, n=4, method="inclusive")
    return high / low if low else float("inf")


def _busy(company: Mapping[str, Any] | None) -> Iterable[str]:
    if company and company["average"] - company["own"] > BUSY_SHARE * company["cores"]:
        yield (
            f"the machine was busy (load {company['average']:.1f} on {company['cores']} cores, "
            f"{company['own']:.1f} of it ours)"
        )
