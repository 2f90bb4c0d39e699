"""The step strip: one row per step, each token's fate by glyph and by colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from dfly_core.records.step import Step
from dfly_tui.state.panel import was_off
from dfly_tui.text import line

ACCEPTED, REJECTED, OWN, UNUSED, PROMPT = "●", "○", "◆", "·", "▸"
STYLES = {
    ACCEPTED: "$success",
    REJECTED: "$error",
    OWN: "$warning",
    UNUSED: "$foreground 40%",
    PROMPT: "$foreground 40%",
}
LEGEND = ((ACCEPTED, "accepted"), (REJECTED, "rejected"), (UNUSED, "unused"), (OWN, "target's own"))


def glyphs(step: Step) -> str:
    """One glyph per proposal, then the target's own token: as many solid ones as tokens it gave."""
    if not step.is_cycle:
        return PROMPT if step.index == 0 else OWN if step.chosen else ""
    own = OWN if step.kept > step.accepted else UNUSED
    return "".join(fate(step, slot) for slot in range(len(step.proposals))) + own


def fate(step: Step, slot: int) -> str:
    """The glyph of proposal `slot` (from 0)."""
    if slot >= step.kept and step.kept < len(step.chosen):
        return UNUSED  # past the answer's end, whatever the target said
    return ACCEPTED if step.outcome(slot) == "accepted" else REJECTED


def coloured(marks: str) -> Content:
    """Glyphs with their colours."""
    return Content("").join(Content(mark).stylize(STYLES.get(mark, "")) for mark in marks)


def row(step: Step, slots: int, width: int) -> Content:
    """The row of a step: its number, the glyphs, tokens emitted, the text they gave."""
    marks = glyphs(step)
    lead = f"{step.index:>4} "
    count = f" {step.kept} "
    room = width - len(lead) - (slots + 1) - len(count)
    if not marks and step.finish == "cancelled":
        return Content(lead + "stopped").stylize("$foreground 65%")
    shown = line(step.text.replace("\n", "⏎"), limit=max(room, 1)) if room > 1 else Content("")
    pad = (" off" if was_off(step) and slots > 3 else "").ljust(max(slots + 1 - len(marks), 0))
    return Content("").join(
        [
            Content(lead).stylize("$foreground 65%"),
            coloured(marks),
            Content(pad + count).stylize("$foreground 70%"),
            shown.stylize("$foreground 80%"),
        ]
    )


class StepStrip(ScrollView, can_focus=True):
    """All steps of the last answer; the newest is followed until a step is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Earlier step", show=False),
        Binding("down", "move(1)", "Later step", show=False),
        Binding("pageup", "move(-10)", "Ten earlier", show=False),
        Binding("pagedown", "move(10)", "Ten later", show=False),
        Binding("enter", "replay", "Replay step", id="strip.replay"),
    ]
    DEFAULT_CSS = """
    StepStrip { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    @dataclass
    class Chosen(Message):
        """The user wants to see this step (an index into the steps shown)."""

        at: int

    def __init__(self) -> None:
        super().__init__(id="strip")
        self._steps: Sequence[Step] = ()
        self._slots = 0
        self._cursor: int | None = None

    def show(self, steps: Sequence[Step], slots: int) -> None:
        """Show these steps; the sequence may be one that grows."""
        self._steps, self._slots = steps, slots
        follow = self._cursor is None
        if self._cursor is not None and self._cursor >= len(steps):
            self._cursor = None
        self.virtual_size = Size(self.size.width, len(steps))
        if follow:
            # After layout: the bars below may just have taken some of the room.
            self.call_after_refresh(self.scroll_end, animate=False)
        self.refresh()

    def on_blur(self) -> None:
        """Leaving the strip follows the newest step again."""
        self._cursor = None
        self.refresh()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if not self._steps:
            return
        last = len(self._steps) - 1
        at = last if self._cursor is None else self._cursor + by
        self._cursor = min(max(at, 0), last)
        self.scroll_to_region(Region(0, self._cursor, 1, 1), animate=False)
        self.refresh()

    def action_replay(self) -> None:
        """Open the step under the cursor, or the newest."""
        if self._steps:
            at = len(self._steps) - 1 if self._cursor is None else self._cursor
            self.post_message(self.Chosen(at))

    def render_line(self, y: int) -> Strip:
        """One step."""
        at = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if at >= len(self._steps):
            return Strip.blank(width, self.visual_style.rich_style)
        shown = row(self._steps[at], self._slots, width)
        if at == self._cursor:
            shown = shown.stylize("reverse")
        return Visual.to_strips(
            self, shown, width, 1, self.visual_style, apply_selection=False, pad=True
        )[0]
