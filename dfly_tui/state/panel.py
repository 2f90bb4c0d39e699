"""What the live panel knows: folds steps and says each figure in words."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from dfly_core.records.events import Costed, Generated
from dfly_core.records.loaded import PairInfo, Verdict
from dfly_core.records.stats import Stats
from dfly_core.records.step import Step, Token
from dfly_tui.state.bill import BreakEven, Plain, PlainTimes, bill

RING = 4096  # steps kept for replay
_RECENT = 12  # steps
_SURE = 8  # cycles: before, one bad draft would call a good answer slow


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
    """One answer's figures, and what is known of the pair that gives it.

    `asked` is whether this chat has asked for an answer, or for A/B; `went_on` whether that
    answer began before, so that the figures are of its rest.
    """

    pair: PairInfo | None = None
    verdict: Verdict | None = None
    stats: Stats = field(default_factory=Stats)
    steps: deque[Step] = field(default_factory=lambda: deque(maxlen=RING))
    first_token: float | None = None
    context_used: int = 0
    peak_memory: int = 0
    parity: Parity = field(default_factory=Parity)
    raced: tuple[float, float] | None = None  # tokens/s with the drafter and alone
    asked: bool = False
    went_on: bool = False
    clock: Callable[[], float] = time.time
    plain_times: PlainTimes = field(default_factory=PlainTimes)
    _fixed: bool = False
    _cycle_seconds: float = 0.0
    _width: int = 0
    _last_off: str = ""

    def clear(self) -> None:
        """Another chat, or another pair: nothing was asked of it yet."""
        self.begin()
        self.asked, self.context_used = False, 0

    def costed(self, event: Costed) -> None:
        """Costs were measured; those of another pair, which a benchmark brings, are not ours."""
        mine, theirs = self.verdict, event.verdict
        if mine is not None and (mine.model, mine.mode) == (theirs.model, theirs.mode):
            self.verdict = theirs

    def begin(self, sampled: bool = False, went_on: bool = False, fixed: bool = False) -> None:
        """A new answer starts, or one goes on: the figures start afresh.

        With a `fixed` width it is drafted whether that pays or not.
        """
        self.stats, self.first_token, self.raced = Stats(), None, None
        self.steps.clear()
        self.peak_memory = 0
        self.parity = Parity("sampled" if sampled else "unchecked")
        self.asked, self.went_on, self._fixed = True, went_on, fixed
        self._cycle_seconds, self._width, self._last_off = 0.0, 0, ""

    def add(self, step: Step) -> None:
        """One more step."""
        self.stats = self.stats.add(step)
        self.steps.append(step)
        self.context_used = step.position + len(step.emitted) + (0 if step.index == 0 else 1)
        self.plain_times.add(self.pair, step, self.clock())
        if step.is_cycle:
            self._cycle_seconds += step.seconds.total
            self._width = step.width
        elif was_off(step):
            self._last_off = step.off or NO_REASON
        if step.index == 0 and step.kept:
            self.first_token = step.seconds.total

    def end(self, done: Generated) -> None:
        """The answer is whole: the engine's own counts replace the folded ones."""
        self.stats = done.stats
        self.context_used = done.context_used
        self.peak_memory = done.peak_memory_bytes

    def judge(self, found: Comparison, fast: Stats, slow: Stats) -> None:
        """A/B ended: both decoders, greedy, on the last prompt."""
        self.asked = True  # also in a chat that was opened again: there is something to show
        rate, alone = fast.tokens_per_second, slow.tokens_per_second
        if alone:
            self.plain_times.take(self.pair, alone, self.context_used, self.clock())
        # Where nothing was drafted both did the same work, and a ratio would be noise.
        told = rate and alone and fast.cycles and not found.parted
        self.raced = (rate, alone) if rate and alone and told else None
        if self.parity.state != "sampled":
            # Of an answer that was drawn, two greedy runs say nothing.
            self.parity = Parity("differs" if found.parted else "matches", found.same)

    def near(self, gap: float) -> None:
        """How near the tie was where the decoders part."""
        if self.parity.state == "differs":
            self.parity = replace(self.parity, gap=gap)

    @property
    def slots(self) -> int:
        """How many proposals a step drafts at most."""
        if self.pair and self.pair.draft:
            return max(self.pair.block_size - 1, 1)
        return max((len(step.proposals) for step in self.steps), default=0)

    @property
    def token_ids(self) -> list[int]:
        """The ids of the answer so far (of the steps still kept)."""
        return [token.id for step in self.steps for token in step.emitted]

    @property
    def scope(self) -> str:
        """What the figures are of."""
        return "This answer, since it went on" if self.went_on else "This answer"

    @property
    def plain(self) -> Plain | None:
        """What a plain step takes, as timed last."""
        return self.plain_times.of(self.pair, self.verdict)

    @property
    def ceiling(self) -> float | None:
        """Tokens/s of the target alone: by a plain step timed here, else by what drafting gains."""
        plain, even, rate = self.plain, self.break_even, self.stats.tokens_per_second
        if plain is None or plain.here or even is None or rate is None:
            return 1 / plain.seconds if plain else None
        return rate * even.needs / even.now

    @property
    def break_even(self) -> BreakEven | None:
        """What a step costs in target steps, and whether it pays; None where that is unknown.

        None also while drafting is off: the reason then has the bill that counts.
        """
        if self.why_off:
            return None
        return bill(self.stats, self._cycle_seconds, self._width, self.plain, self.verdict)

    @property
    def gain(self) -> str:
        """How much faster than the target alone: measured by A/B, else guessed, from what."""
        if self.raced is not None:
            fast, alone = self.raced
            return f"{fast / alone:.2f}x by A/B: {fast:.0f} tok/s against {alone:.0f} alone"
        even, plain = self.break_even, self.plain
        if even is None or plain is None:
            return ""
        when = plain.words(self.clock())
        what = "plain steps" if plain.here else "costs"
        rests = f" from {what} timed {when}" if when else ""
        return f"estimate {even.now / even.needs:.1f}x{rests}; F5 measures it"

    @property
    def why_off(self) -> str | None:
        """Why nothing is drafted, or None while drafting goes on.

        A parked drafter is probed now and then: a reason in one of the last steps still holds.
        """
        for step in list(self.steps)[-_RECENT:][::-1]:
            if was_off(step):
                return step.off or NO_REASON
            if step.is_cycle and step.accepted > 1:
                break
        if self.pair and not self.pair.draft:
            return "no drafter is loaded"
        return None

    @property
    def kept_on(self) -> str:
        """Why drafting goes on where it does not pay; empty where it pays, or may yet go off."""
        even = self.break_even
        if not self._fixed or even is None or even.pays or self.stats.cycles < _SURE:
            return ""
        embedded = self.pair is not None and self.pair.embedded
        why = "the embedded pair always drafts" if embedded else "its width is set in F9"
        return f"Does not pay here; goes on, as {why}"

    @property
    def was_off(self) -> str:
        """While drafting goes on: in how many steps before it did not, and why; else empty."""
        off, cycles = self.stats.plain_steps, self.stats.cycles
        if not self._last_off or self.why_off:
            return ""
        return f"Drafting was off in {off} of {off + cycles} steps: {self._last_off}"


NO_REASON = "the engine gave no reason"


def was_off(step: Step) -> bool:
    """Whether a step decoded without a draft; the prompt's step and one that only ends are not."""
    return bool(step.index and step.chosen and not step.is_cycle)


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
