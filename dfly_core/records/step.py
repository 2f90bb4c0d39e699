"""What one step of decoding did: the one record that text, panel, log and benchmark share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Finish = Literal["stop", "length", "context", "cancelled"]
Origin = Literal["draft", "target"]
Outcome = Literal["accepted", "rejected"]


@dataclass(frozen=True)
class Token:
    """A token id and its text for showing; a piece alone may hold half a character."""

    id: int
    piece: str


@dataclass(frozen=True)
class Seconds:
    """Wall time of a step; the parts are None unless this step was one of the timed sample."""

    total: float
    draft: float | None = None
    verify: float | None = None
    commit: float | None = None

    @property
    def sampled(self) -> bool:
        """Whether the parts were measured on this step."""
        return self.verify is not None


@dataclass(frozen=True)
class Step:
    """One cycle (draft, verify, accept, commit), one plain step, or the prompt's own step 0.

    `position` is the anchor's position; `proposals` are the drafted tokens, at most K-1, all
    verified, of which the first `accepted` agreed with the target. `chosen` is
    what the target stands for: the accepted proposals, then its own token. `kept` of them
    entered the answer (a stop may fall inside), with one string each in `texts`: joined over
    all steps they are the answer. `finish` is set on the last step only. `off` says why a
    step did not draft.
    """

    index: int
    position: int
    anchor: Token | None
    proposals: tuple[Token, ...]
    accepted: int
    chosen: tuple[Token, ...]
    kept: int
    texts: tuple[str, ...]
    finish: Finish | None
    off: str | None
    seconds: Seconds

    @property
    def width(self) -> int:
        """Proposals that were drafted and verified."""
        return len(self.proposals)

    @property
    def is_cycle(self) -> bool:
        """Whether something was drafted and verified: the prompt's and plain steps are none."""
        return self.width > 0

    @property
    def emitted(self) -> tuple[Token, ...]:
        """The tokens that entered the answer."""
        return self.chosen[: self.kept]

    @property
    def text(self) -> str:
        """The text this step added to the answer."""
        return "".join(self.texts)

    def origin(self, slot: int) -> Origin:
        """Who put chosen token `slot` (from 0) there: an accepted draft, or the target itself."""
        return "draft" if slot < self.accepted else "target"

    def outcome(self, slot: int) -> Outcome:
        """What became of proposal `slot` (from 0)."""
        return "accepted" if slot < self.accepted else "rejected"
