"""What a cycle costs in plain steps: the times behind every figure that compares the two."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from dfly_core.records.loaded import PairInfo, Verdict
from dfly_core.records.stats import Stats
from dfly_core.records.step import Step
from dfly_tui.state.progress import ago

_ENOUGH, _KEPT = 8, 32  # plain steps: from how many on their middle is told, and of how many


@dataclass(frozen=True)
class Plain:
    """What a plain step takes: `seconds`, after `context` tokens, timed `at` (since 1970).

    `here` says that this session timed it, while its answers were shown.
    """

    seconds: float
    context: int | None
    at: float | None
    here: bool = False

    def words(self, now: float) -> str:
        """How old it is and how long the context was; empty where neither is known."""
        parts = [] if self.at is None else [ago(now - self.at)]
        parts += [] if self.context is None else [f"at {self.context:,} tokens"]
        return " ".join(parts)


@dataclass
class PlainTimes:
    """The plain steps that this session timed, of one pair: newer than what loading timed."""

    pair: PairInfo | None = None
    timed: Plain | None = None
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, pair: PairInfo | None, step: Step, now: float) -> None:
        """One more step; only plain ones count, the prompt's is none."""
        if step.is_cycle or not step.index or not step.chosen:
            return
        self._for(pair)
        self._recent.append(step.seconds.total)
        if len(self._recent) >= _ENOUGH:
            # The middle: now and then a parked step has a probe in it.
            self.timed = Plain(median(self._recent), step.position, now, here=True)

    def take(self, pair: PairInfo | None, rate: float, context: int, now: float) -> None:
        """A whole answer of the target alone, in tokens/s."""
        self._for(pair)
        self._recent.clear()
        self.timed = Plain(1 / rate, context, now, here=True)

    def of(self, pair: PairInfo | None, verdict: Verdict | None) -> Plain | None:
        """The newest: of this session, else of loading; None without either."""
        if self.timed is not None and self.pair == pair:
            return self.timed
        costs = verify_costs(verdict)
        if verdict is None or not costs or costs[0] <= 0:
            return None
        return Plain(costs[0], verdict.cost_context, verdict.costs_at)

    def _for(self, pair: PairInfo | None) -> None:
        if self.pair != pair:
            self.pair, self.timed = pair, None
            self._recent.clear()


def verify_costs(verdict: Verdict | None) -> tuple[float, ...]:
    """Seconds for 1, 2... verified rows on the route in use, as loading timed them."""
    if verdict is None:
        return ()
    exact = verdict.taken != "fast" or not verdict.cost_native
    return verdict.cost_exact if exact else verdict.cost_native


@dataclass(frozen=True)
class BreakEven:
    """One verify costs `verify` target steps; a step must yield more than `needs` tokens.

    `now` is what it yields. The three and the two rates beside them are of one set of times.
    """

    verify: float
    needs: float
    now: float

    @property
    def pays(self) -> bool:
        """Whether drafting is faster than the target alone."""
        return self.now > self.needs

    @property
    def words(self) -> str:
        """The line of the panel."""
        return (
            f"1 verify = {self.verify:.1f} target steps; needs > {self.needs:.1f}; "
            f"now {self.now:.2f}"
        )


def bill(
    stats: Stats, cycle_seconds: float, width: int, plain: Plain | None, verdict: Verdict | None
) -> BreakEven | None:
    """What the cycles of an answer cost in plain steps; None where nothing can be told.

    `cycle_seconds` is the time of all of them, `width` that of the last one.
    """
    now, costs = stats.mean_accepted_length, verify_costs(verdict)
    if now is None or plain is None:
        return None
    if plain.here:
        needs = cycle_seconds / stats.cycles / plain.seconds
        return BreakEven(needs * _verify_share(stats, width, verdict), needs, now)
    # Loading timed both, with nothing else going on; cycles of now beside a plain step of then
    # would show the app's own work as a cost of drafting.
    if verdict is None or width >= min(len(costs), len(verdict.cost_draft)):
        return None
    verify = costs[width] / plain.seconds
    return BreakEven(verify, verify + verdict.cost_draft[width] / plain.seconds, now)


def _verify_share(stats: Stats, width: int, verdict: Verdict | None) -> float:
    """How much of a cycle is the verification: as timed in these cycles, else as by loading."""
    verify = stats.timed_verify_seconds
    rest = stats.timed_draft_seconds + stats.timed_commit_seconds
    costs = verify_costs(verdict)
    if not verify and verdict is not None and width < min(len(costs), len(verdict.cost_draft)):
        verify, rest = costs[width], verdict.cost_draft[width]
    return verify / (verify + rest) if verify else 1.0
