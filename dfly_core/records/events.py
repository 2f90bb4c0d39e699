"""What a job says. Every job ends with exactly one of its closing events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dfly_core.records.checked import Checked
from dfly_core.records.loaded import PairInfo, Verdict
from dfly_core.records.stats import Stats
from dfly_core.records.step import Finish, Step, Token

PROTOCOL = 2


@dataclass(frozen=True)
class Hello:
    """The worker's first words."""

    protocol: int
    version: str


@dataclass(frozen=True)
class Progress:
    """How far a stage is. `unit` is "bytes", "tokens", "tensors", "shapes"...; total 0 is unknown.

    `rate` is units per second over the stage so far, None before it can be told.
    """

    stage: str
    item: str
    done: int
    total: int
    unit: str
    rate: float | None = None


@dataclass(frozen=True)
class Loaded:
    """Ends a load. The verdict has no costs yet: see `Costed`."""

    pair: PairInfo
    verdict: Verdict | None


@dataclass(frozen=True)
class Costed:
    """What the loaded pair costs was measured: its verdict again, with the costs of today.

    Comes once for a load, between jobs or within the first one that needs it.
    """

    verdict: Verdict


@dataclass(frozen=True)
class Stepped:
    """One decoding step."""

    step: Step


@dataclass(frozen=True)
class Generated:
    """Ends an answer."""

    stats: Stats
    finish: Finish
    context_used: int
    peak_memory_bytes: int


@dataclass(frozen=True)
class Diagnosed:
    """Ends a diagnosis: the target's best and second-best token, and their logits."""

    tokens: tuple[Token, Token]
    logits: tuple[float, float]

    @property
    def gap(self) -> float:
        """How far the two lie apart; 0 at a tie."""
        return self.logits[0] - self.logits[1]


@dataclass(frozen=True)
class Converted:
    """Ends a conversion; the report is described in `dfly_core.convert`."""

    report: dict[str, Any]


@dataclass(frozen=True)
class Rowed:
    """One finished benchmark row, as it stands in the report file."""

    row: dict[str, Any]


@dataclass(frozen=True)
class Benchmarked:
    """Ends a benchmark: where the report lies, rows published and withheld, rows not run.

    `path` is None where no row was finished: then there is no report.
    """

    path: str | None
    published: int
    withheld: int
    left: int


@dataclass(frozen=True)
class Examined:
    """Ends an examination: the page as data; `healthy` says whether chat would work."""

    page: dict[str, Any]
    healthy: bool


@dataclass(frozen=True)
class Cancelled:
    """Ends a job that was cancelled before it had a result."""


@dataclass(frozen=True)
class Failed:
    """Ends a job that could not be done. `detail` is the traceback, for --debug only."""

    kind: str
    what: str
    remedy: str
    detail: str = ""


Event = (
    Hello
    | Progress
    | Loaded
    | Costed
    | Stepped
    | Generated
    | Diagnosed
    | Checked
    | Converted
    | Rowed
    | Benchmarked
    | Examined
    | Cancelled
    | Failed
)
CLOSING = (
    Loaded,
    Generated,
    Diagnosed,
    Checked,
    Converted,
    Benchmarked,
    Examined,
    Cancelled,
    Failed,
)
