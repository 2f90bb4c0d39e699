"""What the live panel knows: folds steps and says each figure in words."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from dfly_core.records.events import Generated
from dfly_core.records.loaded import PairInfo, Verdict
from dfly_core.records.stats import Stats
from dfly_core.records.step import Step, Token
from dfly_tui.state.progress import ago

RING = 4096  # steps kept for replay
_RECENT = 12  # steps


@dataclass(frozen=True)
class Parity:
    """Whether the answer was seen equal to the target alone.

    `tokens` is how many agreed; `gap` how far the target's two best logits lie apart where
    they part, None until that was asked.
    """

    state: Literal["unchecked", "matches", "differs", "sampled"] = "unchecked"
    tokens: int = 0
    gap: float | None = None

    @property
    def words(self) -> str:
        """One line; never more than was checked."""
        if self.state == "matches":
            return f"matches {self.tokens} tokens"
        if self.state == "differs":
            gap = "" if self.gap is None else f" (gap {self.gap:.3g})"
            return f"first difference at token {self.tokens}{gap}"
        if self.state == "sampled":
            return "not applicable: sampled"
        return "not checked"


@dataclass
class PanelState:
    """One answer's figures, and what is known of the pair that gives it."""

    pair: PairInfo | None = None
    verdict: Verdict | None = None
    stats: Stats = field(default_factory=Stats)
    steps: deque[Step] = field(default_factory=lambda: deque(maxlen=RING))
    first_token: float | None = None
    context_used: int = 0
    peak_memory: int = 0
    parity: Parity = field(default_factory=Parity)
    speedup: float | None = None
    clock: Callable[[], float] = time.time

    def begin(self, sampled: bool = False) -> None:
        """A new answer starts."""
        self.stats, self.first_token, self.speedup = Stats(), None, None
        self.steps.clear()
        self.parity = Parity("sampled" if sampled else "unchecked")

    def add(self, step: Step) -> None:
        """One more step."""
        self.stats = self.stats.add(step)
        self.steps.append(step)
        self.context_used = step.position + len(step.emitted) + (0 if step.index == 0 else 1)
        if step.index == 0 and step.kept:
            self.first_token = step.seconds.total

    def end(self, done: Generated) -> None:
        """The answer is whole: the engine's own counts replace the folded ones."""
        self.stats = done.stats
        self.context_used = done.context_used
        self.peak_memory = done.peak_memory_bytes

    def judge(self, found: Comparison, speedup: float | None) -> None:
        """A/B ended: both decoders, greedy, on the last prompt."""
        self.speedup = None if found.parted else speedup
        if self.parity.state != "sampled":
            # Of an answer that was drawn, two greedy runs say nothing.
            self.parity = Parity("differs" if found.parted else "matches", found.same)

    def near(self, gap: float) -> None:
        """How near the tie was where the decoders part."""
        if self.parity.state == "differs":
            self.parity = replace(self.parity, gap=gap)

    @property
    def slots(self) -> int:
        """How many proposals a step drafts."""
        if self.pair and self.pair.draft:
            return max(self.pair.block_size - 1, 1)
        return max((len(step.proposals) for step in self.steps), default=0)

    @property
    def token_ids(self) -> list[int]:
        """The ids of the answer so far (of the steps still kept)."""
        return [token.id for step in self.steps for token in step.emitted]

    @property
    def break_even(self) -> BreakEven | None:
        """What a step costs in target steps, and whether it pays; None without measured costs."""
        cost = self.costs
        width = next((s.width for s in reversed(self.steps) if s.is_cycle), 0)
        if not cost or not width or width >= len(cost) or cost[0] <= 0:
            return None
        draft = self.verdict.cost_draft if self.verdict else None
        if draft is None and self.stats.timed_steps:
            draft = self.stats.timed_draft_seconds / self.stats.timed_steps
        return BreakEven(
            verify=cost[width] / cost[0],
            needs=(cost[width] + (draft or 0.0)) / cost[0],
            now=self.stats.mean_accepted_length,
        )

    @property
    def costs(self) -> tuple[float, ...]:
        """Seconds for 1, 2... verified rows on the route in use."""
        if self.verdict is None:
            return ()
        exact = self.verdict.taken != "fast" or not self.verdict.cost_native
        return self.verdict.cost_exact if exact else self.verdict.cost_native

    @property
    def gain(self) -> str:
        """How much faster than the target alone: measured by A/B, else guessed, from what."""
        if self.speedup is not None:
            return f"{self.speedup:.2f}x the target alone, measured by A/B"
        even = self.break_even
        if even is None or even.now is None:
            return ""
        rests, verdict = "", self.verdict
        if verdict is not None and verdict.costs_at is not None:
            rests = f", from times measured {ago(self.clock() - verdict.costs_at)}"
            if verdict.cost_context is not None:
                rests += f" at {verdict.cost_context:,} tokens"
        return f"estimate {even.now / even.needs:.1f}x{rests}; F5 measures it"

    @property
    def ceiling(self) -> float | None:
        """Tokens a second of the target alone, as the self-test timed it: an estimate."""
        costs = self.costs
        return 1 / costs[0] if costs and costs[0] > 0 else None

    @property
    def why_off(self) -> str | None:
        """Why nothing is drafted, or None while drafting goes on.

        A parked drafter is probed now and then: a reason in one of the last steps still holds.
        """
        for step in list(self.steps)[-_RECENT:][::-1]:
            if step.off:
                return step.off
            if step.is_cycle and step.accepted > 1:
                break
        if self.pair and not self.pair.draft:
            return "no drafter is loaded"
        return None


@dataclass(frozen=True)
class BreakEven:
    """One verify costs `verify` target steps; a step must yield more than `needs` tokens."""

    verify: float
    needs: float
    now: float | None

    @property
    def words(self) -> str:
        """The line of the panel."""
        now = "-" if self.now is None else f"{self.now:.2f}"
        return f"1 verify = {self.verify:.1f} target steps; needs > {self.needs:.1f}; now {now}"


@dataclass(frozen=True)
class Comparison:
    """Two decoders on one prompt: how many ids agree, where they part."""

    same: int
    parted: bool
    left: Token | None
    right: Token | None


def compare(left: list[Token], right: list[Token]) -> Comparison:
    """Token by token; a longer tail counts as a difference where it begins."""
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a.id != b.id:
            return Comparison(at, True, a, b)
    shorter = min(len(left), len(right))
    if len(left) == len(right):
        return Comparison(shorter, False, None, None)
    longer = left if len(left) > shorter else right
    extra = longer[shorter]
    return Comparison(
        shorter, True, extra if longer is left else None, extra if longer is right else None
    )
