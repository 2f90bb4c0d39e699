"""How many proposals to verify: the width that pays, or none."""

from __future__ import annotations

from dfly_core.records.step import Step


class WidthPolicy:
    """Chooses the width of each cycle; `fixed` None lets it choose, 0 never drafts."""

    def __init__(self, most: int, fixed: int | None = None) -> None:
        self._most = most
        self._fixed = fixed
        self.off: str | None = "width 0 was asked for" if fixed == 0 else None

    def width(self, room: int) -> int:
        """Proposals to verify in the next cycle, at most `room`; 0 means decode plainly."""
        wanted = self._most if self._fixed is None else min(self._fixed, self._most)
        return max(0, min(wanted, room))

    def observe(self, step: Step) -> None:
        """Learn from a finished step."""
