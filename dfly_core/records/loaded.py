"""What was loaded, what was checked about it, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

VerifyMode = Literal["exact", "fast", "auto"]


@dataclass(frozen=True)
class PairInfo:
    """The loaded models in plain words. Sizes are bytes; `draft` is None for a target alone."""

    model: str
    draft: str | None
    embedded: bool
    block_size: int
    taps: tuple[int, ...]
    context_limit: int
    vocab_size: int
    target_layers: int
    target_dtype: str
    target_bits: int | None
    draft_bits: int | None
    target_bytes: int
    draft_bytes: int
    kv_bytes_per_token: int


@dataclass(frozen=True)
class Costs:
    """Measured seconds on this machine: one plain step, a draft, a verification.

    `verify[w]` is the time of a verification of w proposals (w+1 rows), `draft[w]` that of a
    draft of w, for w = 0..K-1; `draft[0]` is what a draft takes before its first proposal.
    `context` is the number of tokens they were measured after, `taken_at` when (seconds since
    1970); None where that is not known.
    """

    plain: float
    verify: tuple[float, ...]
    draft: tuple[float, ...]
    context: int | None = None
    taken_at: float | None = None

    def cycle(self, width: int) -> float:
        """Seconds of a cycle that drafts and verifies `width` proposals."""
        return self.draft[width] + self.verify[width]


@dataclass(frozen=True)
class Verdict:
    """What the self-test found; it never says more than `checked`.

    `routes` maps a shape of work ("linear 4096x4096 q4/64", "attention, 1 to 320 keys") to the
    route chosen for it. `exact_width` is the widest block of proposals whose verification was
    seen bit-equal to single rows: 0 means none. Costs are seconds by number of proposals, index
    0 for none: of a verification (of one row more), and of a draft (empty without a drafter);
    `cost_context` and `costs_at` as in `Costs`. `taken` is the mode in force (auto has chosen),
    `width` the widest block of proposals it allows.
    """

    machine: str
    model: str
    mode: VerifyMode
    route: str
    routes: tuple[tuple[str, str], ...]
    exact_width: int
    cost_exact: tuple[float, ...]
    cost_native: tuple[float, ...]
    cost_draft: tuple[float, ...]
    checked: tuple[str, ...]
    words: str
    taken: Literal["exact", "fast"] = "exact"
    width: int = 0
    cost_context: int | None = None
    costs_at: float | None = None

    def with_costs(self, costs: Costs) -> Verdict:
        """The same with the costs of today, not of the day the self-test ran."""
        found = replace(
            self, cost_draft=costs.draft, cost_context=costs.context, costs_at=costs.taken_at
        )
        if self.taken == "exact":
            return replace(found, cost_exact=costs.verify[: self.exact_width + 1])
        return replace(found, cost_native=costs.verify)

    def without_costs(self) -> Verdict:
        """The same without the costs that the self-test saw, which may be of another day."""
        return replace(
            self, cost_exact=(), cost_native=(), cost_draft=(), cost_context=None, costs_at=None
        )
