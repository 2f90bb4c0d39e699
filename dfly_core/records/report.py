"""A benchmark's report: rows that stand, rows that are withheld and why, and their table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dfly_core.records.marks import Company, marked_words, marks, short_marks
from dfly_core.records.sizes import memory_words

SCHEMA_VERSION = 1
NOTHING_KEPT = "Stopped before a row was finished: nothing was kept"


@dataclass(frozen=True)
class Trial:
    """One decoding of a prompt. Seconds, tokens/s without the prompt, bytes.

    None where there is nothing to tell: no cycles, or a DFly rate that may not be published.
    """

    tokens: int
    matches: bool
    tokens_per_second: float | None
    time_to_first_token: float | None
    prefill_seconds: float | None
    peak_memory_bytes: int
    mean_accepted_length: float | None = None
    acceptance_rate: float | None = None
    cycles: int = 0
    plain_steps: int = 0


@dataclass(frozen=True)
class Withheld:
    """Why a row's numbers may not be published: the first token that differs.

    `index` counts the answer's tokens from 0; `expected` is the target's own token there,
    `got` the verified one (None where the answer had ended). `logits` are the target's own,
    one row at a time, for those two; `gap` is their difference. `step` and `slot` say which
    step chose it and as which of its tokens; `route` how its block was run.
    """

    trial: int
    index: int
    expected: int | None
    got: int | None
    expected_text: str
    got_text: str
    logits: tuple[float | None, float | None]
    gap: float | None
    step: int | None
    slot: int | None
    route: str
    words: str


@dataclass(frozen=True)
class Row:
    """One prompt's result: medians over trials where every trial matched, else `withheld`.

    `spread` fields are (lowest, highest) over trials. Peak memory leaves the drafter's bytes
    out of the baseline's, which would not need it. Where there is no `speedup`,
    `no_speedup` says why; `marks` say why the rates can't be trusted.
    """

    id: str
    category: str
    baseline_tps_median: float | None
    dfly_tps_median: float | None
    speedup: float | None
    mean_accepted_length_median: float | None
    acceptance_rate_median: float | None
    parity: bool
    withheld: Withheld | None
    baseline_tps_spread: tuple[float, float] | None
    dfly_tps_spread: tuple[float, float] | None
    baseline_ttft_median: float | None
    dfly_ttft_median: float | None
    baseline_peak_memory_bytes: int
    dfly_peak_memory_bytes: int
    baseline_trials: tuple[Trial, ...]
    dfly_trials: tuple[Trial, ...]
    no_speedup: str | None = None
    company: Company | None = None
    marks: tuple[str, ...] = ()


def make_row(
    id: str,
    category: str,
    baseline: Sequence[Trial],
    dfly: Sequence[Trial],
    withheld: Withheld | None,
    company: Company | None = None,
) -> Row:
    """The row of a prompt's trials; without parity every median is withheld with it.

    `company` is how busy the machine was meanwhile.
    """
    parity = withheld is None

    def median(trials: Sequence[Trial], name: str) -> float | None:
        found = _values(trials, name)
        return statistics.median(found) if parity and found else None

    def spread(trials: Sequence[Trial]) -> tuple[float, float] | None:
        found = _values(trials, "tokens_per_second")
        return (min(found), max(found)) if parity and found else None

    plain, fast = median(baseline, "tokens_per_second"), median(dfly, "tokens_per_second")
    mean = median(dfly, "mean_accepted_length")
    drafted = mean is not None
    row = Row(
        id=id,
        category=category,
        baseline_tps_median=plain,
        dfly_tps_median=fast,
        speedup=fast / plain if plain and fast and drafted else None,
        mean_accepted_length_median=mean,
        acceptance_rate_median=median(dfly, "acceptance_rate"),
        parity=parity,
        withheld=withheld,
        baseline_tps_spread=spread(baseline),
        dfly_tps_spread=spread(dfly),
        baseline_ttft_median=median(baseline, "time_to_first_token"),
        dfly_ttft_median=median(dfly, "time_to_first_token"),
        baseline_peak_memory_bytes=max(trial.peak_memory_bytes for trial in baseline),
        dfly_peak_memory_bytes=max(trial.peak_memory_bytes for trial in dfly),
        baseline_trials=tuple(baseline),
        dfly_trials=tuple(dfly if parity else (_without_rates(trial) for trial in dfly)),
        no_speedup=None if drafted else NO_CYCLE if parity else "withheld",
        company=company,
    )
    return replace(row, marks=marks(asdict(row)))


NO_CYCLE = "no trial drafted: both sides did the same work, and a ratio would be noise"


def _without_rates(trial: Trial) -> Trial:
    return Trial(trial.tokens, trial.matches, None, None, None, trial.peak_memory_bytes)


def _values(trials: Sequence[Trial], name: str) -> list[float]:
    return [value for trial in trials if (value := getattr(trial, name)) is not None]


@dataclass(frozen=True)
class Report:
    """The whole benchmark. `results` are rows as plain data, as they stand in the file."""

    model: str
    draft: str | None
    trials: int
    max_tokens: int
    hardware: dict[str, Any]
    software: dict[str, Any]
    models: dict[str, Any]
    verify: dict[str, Any]
    width_policy: dict[str, Any]
    prompts: dict[str, Any]
    started: str
    finished: bool = False
    baseline_check: dict[str, Any] | None = None
    components: dict[str, Any] | None = None
    results: tuple[dict[str, Any], ...] = ()
    schema_version: int = field(default=SCHEMA_VERSION)


HEADINGS = (
    "prompt",
    "target tok/s",
    "DFly tok/s",
    "speed-up",
    "mean accepted length",
    "accepted",
    "parity",
)
CATEGORY_HEADINGS = ("category", *HEADINGS[1:])
NO_CATEGORY = "none"
NOTHING = "-"
NO_DRAFT = "did not draft"
DOUBT = "?"
MARKS = "marks"


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of the report as table cells, one per heading; works for `by_category` rows too.

    A `?` after a speed-up says that the row, or one it sums up, is marked.
    """
    return (
        str(row["id"]),
        _number(row["baseline_tps_median"], ".1f"),
        _number(row["dfly_tps_median"], ".1f"),
        _number(speedup(row), ".2f", "x" + DOUBT * bool(marks(row) or row.get("marked_words"))),
        NO_DRAFT if never_drafted(row) else _number(row["mean_accepted_length_median"], ".2f"),
        _number(row["acceptance_rate_median"], ".0%"),
        row.get("parity_words") or ("equal" if row["parity"] else "WITHHELD"),
    )


def never_drafted(row: Mapping[str, Any]) -> bool:
    """Whether a row that stands had no cycle in any trial: both sides then did the same work."""
    return bool(row["dfly_tps_median"]) and row["mean_accepted_length_median"] is None


def speedup(row: Mapping[str, Any]) -> float | None:
    """The row's speed-up; None where nothing was drafted, since the ratio is only noise there."""
    return None if never_drafted(row) else row["speedup"]


def _number(value: float | None, form: str, unit: str = "") -> str:
    return NOTHING if value is None else f"{value:{form}}{unit}"


def why_withheld(row: Mapping[str, Any]) -> str | None:
    """One line on a withheld row, None for one that stands."""
    return None if row["parity"] else f"{row['id']} withheld: {row['withheld']['words']}"


def by_category(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Medians over the published rows of each category, in order of appearance, then of all.

    Rows without a category count among all only.
    """
    rows = list(rows)
    names = [n for n in dict.fromkeys(str(row["category"]) for row in rows) if n != NO_CATEGORY]
    groups = [(name, [row for row in rows if row["category"] == name]) for name in names]
    if len(groups) != 1 or len(groups[0][1]) != len(rows):
        groups.append(("all", rows))
    return [_summary(name, group) for name, group in groups if group]


def _summary(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    fields = (
        "baseline_tps_median",
        "dfly_tps_median",
        "speedup",
        "mean_accepted_length_median",
        "acceptance_rate_median",
    )
    published = [row for row in rows if row["parity"]]
    out: dict[str, Any] = {"id": name, "parity": len(published) == len(rows)}
    for field_ in fields:
        found = (speedup(row) if field_ == "speedup" else row[field_] for row in published)
        values = [value for value in found if value is not None]
        out[field_] = statistics.median(values) if values else None
    out["parity_words"] = f"{len(published)} of {len(rows)}"
    out["marked_words"] = marked_words(rows)
    return out


def markdown(report: Mapping[str, Any]) -> str:
    """The report as a Markdown page: what was measured on what, both tables, withheld rows."""
    hardware, verify = report["hardware"], report["verify"]
    sold = hardware["memory_gb"]
    memory = memory_words(float(sold) * 2**30) if sold else "unknown memory"
    lines = [
        f"# Target {report['model']}, drafter {report['draft']}",
        "",
        f"{hardware['chip']}, {memory}, {hardware['os']}, "
        f"mlx {hardware['mlx']}, mlx-lm {hardware['mlx_lm']}, Python {hardware['python']}. "
        f"{_trials(report['trials'])} of at most {report['max_tokens']} tokens, interleaved; "
        "medians; the prompt's time is not in the rates.",
        "",
        f"Verify {verify['words']}.",
        "",
        *_markdown_table(report["results"], HEADINGS),
        "",
        *_markdown_table(by_category(report["results"]), CATEGORY_HEADINGS),
        "",
    ]
    lines += [f"- {line}" for row in report["results"] if (line := why_withheld(row))]
    return "\n".join(lines).rstrip() + "\n"


def _trials(count: int) -> str:
    return f"{count} trial{'s' * (count != 1)}"


def _markdown_table(rows: Sequence[Mapping[str, Any]], headings: tuple[str, ...]) -> list[str]:
    """A table of rows, with a column of their marks where there are any."""

    def line(values: Sequence[str]) -> str:
        return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"

    told = [row.get("marked_words") or short_marks(row) for row in rows]
    shown = [cells(row) for row in rows]
    if any(told):
        headings = (*headings, MARKS)
        shown = [(*row, mark) for row, mark in zip(shown, told, strict=True)]
    return [line(headings), line(["---"] + ["---:"] * (len(headings) - 1)), *map(line, shown)]
