"""The composer: a multi-line draft; Enter sends, newline keys break the line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea

from dfly_core.records.visible import visible
from dfly_tui.state.graphemes import first_glyph, last_glyph

ODD_NEWLINE = "shift+\r"  # what CSI 27;2;13~ arrives as; no binding can name it
LARGE = 8_000  # characters; a larger paste stays folded, or wrapping it would hold the screen


class Composer(TextArea):
    """The draft of the next message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # For footer and help. The keys themselves are met in `_on_key`, in their turn: a binding
        # with priority would overtake letters that were typed just before.
        Binding("enter", "send", "Send", id="composer.send"),
        Binding("ctrl+j,shift+enter", "newline", "New line", id="composer.newline"),
    ]

    DEFAULT_CSS = """
    Composer {
        height: auto;
        min-height: 3;
        max-height: 10;
        background: $background;
        border: round $foreground 25%;
        padding: 0 1;
        scrollbar-size-vertical: 1;
        &:focus { border: round $primary; }
        & .text-area--placeholder { color: $text 65%; }
    }
    """

    @dataclass
    class Sent(Message):
        """The user sent this text."""

        text: str

    class Empty(Message):
        """Send was pressed with nothing typed."""

    class Followed(Message):
        """End was pressed where it has nothing to do in the draft."""

    def __init__(self) -> None:
        super().__init__(
            compact=False, highlight_cursor_line=False, placeholder="Ask something", id="composer"
        )
        self._send_keys = {"enter"}
        self._newline_keys = {"ctrl+j", "shift+enter", ODD_NEWLINE}
        self._folded: dict[str, str] = {}
        self._history: list[str] = []
        self._at = 0

    def bind_keys(self, keymap: Mapping[str, str]) -> None:
        """The user's own keys for sending and for line ends."""
        if keys := keymap.get("composer.send"):
            self._send_keys = set(keys.split(","))
        if keys := keymap.get("composer.newline"):
            self._newline_keys = set(keys.split(","))

    def remember(self, said: list[str]) -> None:
        """What up and down bring back, oldest first."""
        self._history = list(said)
        self._at = len(self._history)

    @property
    def draft(self) -> str:
        """The whole draft, large pastes unfolded."""
        text = self.text
        for mark, whole in self._folded.items():
            text = text.replace(mark, whole)
        return text

    def set_draft(self, text: str) -> None:
        """Replace the draft."""
        self._folded.clear()
        self.text = self._fold(text)
        self.move_cursor(self.document.end)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Behind a box nothing is sent."""
        return action not in ("send", "newline") or self.screen.is_active

    def action_send(self) -> None:
        """Send the draft unless it is empty."""
        self.post_message(self.Sent(self.draft) if self.draft.strip() else self.Empty())

    def action_newline(self) -> None:
        """Break the line."""
        self.insert("\n")

    def render_line(self, y: int) -> Strip:
        """A line; TextArea cannot wrap its placeholder into no width at all."""
        if self.content_size.width < 2:
            return Strip.blank(self.size.width, self.visual_style.rich_style)
        return super().render_line(y)

    async def _on_key(self, event: events.Key) -> None:
        handled = {
            "up": self._older,
            "down": self._newer,
            "end": self._follow,
        }.get(event.key)
        if event.key in self._send_keys:
            handled = self._send
        elif event.key in self._newline_keys:
            handled = self._newline
        if handled is not None and handled():
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def _send(self) -> bool:
        self.action_send()
        return True

    def _newline(self) -> bool:
        self.action_newline()
        return True

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert(self._fold(event.text.replace("\r\n", "\n").replace("\r", "\n")))

    def _fold(self, text: str) -> str:
        if len(text) <= LARGE:
            return visible(text)
        mark = f"[paste {len(self._folded) + 1}: {len(text):,} characters]"
        self._folded[mark] = text
        return mark

    def _older(self) -> bool:
        if self.cursor_location[0] > 0 or self._at == 0 or not self._browsing:
            return False
        self._at -= 1
        self.set_draft(self._history[self._at])
        return True

    def _newer(self) -> bool:
        last = self.cursor_location[0] == self.document.line_count - 1
        if not last or self._at >= len(self._history) or not self._browsing:
            return False
        self._at += 1
        self.set_draft(self._history[self._at] if self._at < len(self._history) else "")
        return True

    @property
    def _browsing(self) -> bool:
        """Whether up and down may replace the draft: only if nothing of it would be lost."""
        known = self._at < len(self._history) and self.draft == self._history[self._at]
        return known or not self.text

    def _follow(self) -> bool:
        if self.cursor_at_end_of_line:
            self.post_message(self.Followed())
        return False

    def action_delete_left(self) -> None:
        """Delete the glyph left of the cursor, whole."""
        row, column = self.cursor_location
        count = last_glyph(self.document[row][:column])
        if self.selection.is_empty and count > 1:
            self.delete((row, column - count), (row, column))
        else:
            super().action_delete_left()

    def action_delete_right(self) -> None:
        """Delete the glyph right of the cursor, whole."""
        row, column = self.cursor_location
        count = first_glyph(self.document[row][column:])
        if self.selection.is_empty and count > 1:
            self.delete((row, column), (row, column + count))
        else:
            super().action_delete_right()
