"""How many proposals to verify: the width that pays, or none (parked, with the reason)."""

from __future__ import annotations

from collections.abc import Sequence

from dfly_core.model.acceptance import PRIOR_RATE, Acceptance
from dfly_core.records.loaded import Costs

TO_PARK = 0.97  # of the plain rate; a little below, so that noise does not flip it
PROBE_FIRST, PROBE_LAST = 8, 24  # parked steps between two probes
PROBE_SOON = 2  # and before the first of an answer
PROBE_SIZE = 3  # proposals of a probe; all must be right to try again


class WidthPolicy:
    """Chooses the width of each cycle; `fixed` None lets it choose, 0 never drafts.

    The best width maximises (1 + s_1 + ... + s_w) / (draft(w) + verify(w+1)). When none beats
    plain decoding it parks: `off` says why. While parked a short draft is made now and then
    and compared with what the target says anyway; when all of it is right, drafting returns.
    `before` is what was seen in the answer before this one.
    """

    def __init__(
        self,
        most: int,
        fixed: int | None = None,
        costs: Costs | None = None,
        before: Acceptance | None = None,
    ) -> None:
        self._most = most
        self._fixed = fixed
        self._costs = costs
        self.acceptance = before.carried(most) if before else Acceptance(most)
        self.off: str | None = "width 0 was asked for" if fixed == 0 else None
        self._hopeless = fixed == 0 or most == 0
        self._interval = PROBE_FIRST
        self._since_probe = 0
        self._right_before = 0.0
        if fixed is None and costs is not None and most > 0:
            self._reconsider()
            # What parks an answer before it began was another text: this one is tried soon.
            self._since_probe = PROBE_FIRST - PROBE_SOON

    def width(self, room: int) -> int:
        """Proposals to verify in the next cycle, at most `room`; 0 means decode plainly."""
        if self.off is not None:
            return 0
        if self._fixed is not None or self._costs is None:
            wanted = self._most if self._fixed is None else self._fixed
        else:
            wanted = best_width(self.acceptance.products(), self._costs)[0]
        return max(0, min(wanted, self._most, room))

    def observe_cycle(self, proposals: Sequence[int], chosen: Sequence[int]) -> None:
        """Learn from a cycle: what was proposed, and what the target stands for."""
        self.acceptance.propose(proposals)
        self.acceptance.emit(chosen)
        if self._fixed is None and self._costs is not None:
            self._reconsider()

    def observe_plain(self, token: int) -> None:
        """Learn from a plain step: the target chose this token."""
        probing = self.acceptance.undecided
        self.acceptance.emit([token])
        self._since_probe += 1
        if probing and not self.acceptance.undecided:
            self._judge_probe()

    def give_up(self, why: str) -> None:
        """Decode plainly for the rest of this answer."""
        self.off, self._hopeless = why, True

    def wants_probe(self) -> bool:
        """Whether this parked step is the moment for a short draft."""
        return (
            self.off is not None
            and not self._hopeless
            and not self.acceptance.undecided
            and self._since_probe >= self._interval
        )

    @property
    def probe_size(self) -> int:
        """Proposals of a probe."""
        return min(PROBE_SIZE, self._most)

    def probe(self, proposals: Sequence[int]) -> None:
        """A short draft was made for the tokens that come next."""
        self._since_probe = 0
        self.acceptance.propose(proposals)
        self._right_before = self.acceptance.seen[0]

    def _judge_probe(self) -> None:
        gained = self.acceptance.seen[0] - self._right_before
        if gained > self.probe_size - 0.5:
            self.acceptance = Acceptance(self._most)
            self.off, self._interval = None, PROBE_FIRST
        else:
            self._interval = min(2 * self._interval, PROBE_LAST)

    def _reconsider(self) -> None:
        assert self._costs is not None
        plain = 1 / self._costs.plain
        width, rate = best_width([1.0] * self._most, self._costs)
        if rate < plain:
            self._hopeless = True
            share = self._costs.cycle(width) / self._costs.plain
            self.off = (
                f"a cycle costs {share:.1f} target steps here and gives at most {width + 1} tokens"
            )
            return
        width, rate = best_width(self.acceptance.products(), self._costs)
        if rate < TO_PARK * plain:
            seconds = self._costs.cycle(width)
            cost, tokens = seconds * plain, rate * seconds
            right, reached = self.acceptance.seen
            # Before a proposal was judged there is nothing to blame but the costs.
            if reached:
                seen = f"with {right / reached:.0%} of proposals right lately"
            else:
                seen = f"if {PRIOR_RATE:.0%} of proposals are right, and none was tried yet"
            self.off = (
                f"not expected to pay: a cycle costs {cost:.1f} target steps, as measured at "
                f"loading, and gives about {tokens:.1f} tokens {seen}"
            )
            self._since_probe = 0


def best_width(products: Sequence[float], costs: Costs) -> tuple[int, float]:
    """The width 1.. with the highest rate, and that rate in tokens/s."""
    best, best_rate, tokens = 1, 0.0, 1.0
    for width, chance in enumerate(products[: len(costs.verify) - 1], start=1):
        tokens += chance
        rate = tokens / costs.cycle(width)
        if rate > best_rate:
            best, best_rate = width, rate
    return best, best_rate
