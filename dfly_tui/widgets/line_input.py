"""A line to type into that keeps its cursor in sight, at first the end of what is there."""

from __future__ import annotations

from rich.cells import cell_len
from textual.geometry import Region
from textual.widgets import Input


class LineInput(Input):
    """Textual scrolls to the cursor when it moves, not when the line gets its width."""

    def on_resize(self) -> None:
        """The width is known, or another one."""
        at = Region(cell_len(self.value[: self.cursor_position]), 0, 1, 1)
        self.call_after_refresh(self.scroll_to_region, at, force=True, animate=False)
