"""How often a drafter's proposals are right, lately."""

from __future__ import annotations

from collections.abc import Sequence

# Before anything was seen a proposal is taken to be right this often: a start that tries. A
# drafter that is not parks after a cycle or two, and the next answer remembers.
PRIOR_RATE, PRIOR_WEIGHT = 0.9, 2.0
TYPICAL_RATE = 0.75  # what predictions are told for, cautiously; the papers' 5.4 tokens are 0.88
DECAY = 0.97  # per cycle; about the last 33 cycles count
CARRIED = 8.0  # cycles that the answer before counts for


class Acceptance:
    """Running chance that proposal j is right once all before it were.

    A probe, which is never verified, is judged as a cycle's proposals are: by what the target
    says next.
    """

    def __init__(self, most: int) -> None:
        self._reached = [0.0] * most
        self._right = [0.0] * most
        self._open: list[tuple[int, int]] = []

    def propose(self, proposals: Sequence[int]) -> None:
        """These ids are proposed for the tokens that follow."""
        self._open = list(enumerate(proposals))
        self._reached = [n * DECAY for n in self._reached]
        self._right = [n * DECAY for n in self._right]

    def emit(self, tokens: Sequence[int]) -> None:
        """The target chose these tokens next."""
        for token in tokens:
            if not self._open:
                return
            slot, proposal = self._open.pop(0)
            self._reached[slot] += 1
            if proposal == token:
                self._right[slot] += 1
            else:
                self._open.clear()

    def carried(self, most: int) -> Acceptance:
        """What the next answer starts from: these rates, counting as much as a few cycles."""
        new = Acceptance(most)
        cycles = max(self._reached, default=0.0)
        share = min(1.0, CARRIED / cycles) if cycles else 0.0
        for slot, (ok, seen) in enumerate(zip(self._right, self._reached, strict=True)):
            if slot < most:
                new._right[slot], new._reached[slot] = ok * share, seen * share
        return new

    @property
    def undecided(self) -> bool:
        """Whether some proposal is still to be judged."""
        return bool(self._open)

    @property
    def seen(self) -> tuple[float, float]:
        """(right, reached) proposals lately."""
        return sum(self._right), sum(self._reached)

    def products(self) -> list[float]:
        """s_1..s_most: the chance that the first k proposals are all right."""
        right, reached = self.seen
        common = (right + PRIOR_RATE * PRIOR_WEIGHT) / (reached + PRIOR_WEIGHT)
        out, product = [], 1.0
        for ok, seen in zip(self._right, self._reached, strict=True):
            product *= (ok + common * PRIOR_WEIGHT) / (seen + PRIOR_WEIGHT)
            out.append(product)
        return out
