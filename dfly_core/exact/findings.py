"""What a self-test saw, as plain data that can be kept in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dfly_core.model.kernels import LinearRoute

Level = Literal["native", "chosen", "attention by row", "all by row"]


@dataclass(frozen=True)
class LinearFinding:
    """One linear shape at one row count: the bit-equal routes, and one module's seconds by each.

    Where native is exact it stands alone and was not timed.
    """

    shape: str
    rows: int
    exact: tuple[LinearRoute, ...]
    seconds: tuple[float, ...]

    @property
    def cheapest(self) -> LinearRoute:
        """The quickest exact route; an earlier one (simpler) unless another saves a tenth."""
        if not self.seconds:
            return "native" if "native" in self.exact else "rows"
        best = 0
        for index, seconds in enumerate(self.seconds):
            if seconds < 0.9 * self.seconds[best]:
                best = index
        return self.exact[best]

    def route(self, level: Level) -> LinearRoute:
        """The route at a level of care."""
        return "rows" if level == "all by row" else self.cheapest


@dataclass(frozen=True)
class AttentionFinding:
    """Attention between two bounds: the row counts of a native block that were bit-equal.

    `keys` are the key counts of single rows that were compared.
    """

    segment: int
    exact_rows: tuple[int, ...]
    keys: tuple[int, ...]


@dataclass(frozen=True)
class WholeFinding:
    """The whole model at one row count: bit-equal to single rows, and with which detours.

    `native` says it for mlx-lm's own pass, `exact` for the routes of `level`: "native" where
    nothing need be rerouted, "chosen" the cheapest of everything. `where` is the first
    difference seen on the way.
    """

    rows: int
    native: bool
    exact: bool
    level: Level
    where: str
    native_seconds: float
    exact_seconds: float


@dataclass(frozen=True)
class Findings:
    """Everything one self-test saw.

    `keys` are the context lengths of the whole-model check. `operations` are (name, row
    counts that were equal). `steady`: the same row twice gave the same bits. `draft_seconds`
    is empty where every block is exact as it comes: then no choice turns on it.
    """

    linear: tuple[LinearFinding, ...]
    attention: tuple[AttentionFinding, ...]
    operations: tuple[tuple[str, tuple[int, ...]], ...]
    whole: tuple[WholeFinding, ...]
    keys: tuple[int, ...]
    one_row_seconds: float
    draft_seconds: tuple[float, ...]
    steady: bool
    seconds: float
