"""The conversation on screen: a window of turns, the newest followed until the user scrolls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from dfly_tui.state.conversation import Conversation, Turn
from dfly_tui.text import content, line

if TYPE_CHECKING:
    from dfly_tui.widgets.answer import Answer

WINDOW = 24  # turns mounted at once: layout costs by widget, and keys wait for layout


class Question(Static):
    """What the user said."""

    DEFAULT_CSS = """
    Question {
        height: auto; margin: 1 0 0 0; padding: 0 1;
        border-left: outer $primary; background: $foreground 5%;
    }
    """

    def __init__(self, turn: Turn) -> None:
        super().__init__(content(_shortened(turn.text)))
        self.turn = turn


class Transcript(VerticalScroll):
    """Turns; `follow` keeps the newest line in view until the user scrolls up."""

    DEFAULT_CSS = """
    Transcript {
        height: 1fr; scrollbar-size-vertical: 1; scrollbar-gutter: stable; padding: 0 0 0 1;
    }
    /* Textual 8.2 pushes an anchored text that is shorter than its room to the bottom. */
    Transcript > #turns { height: auto; min-height: 100%; }
    Transcript .edge { color: $foreground 60%; height: 1; margin: 1 0 0 0; display: none; }
    """

    class Moved(Message):
        """The view moved, by the user or by new text."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._turns: list[Turn] = []
        self._first = 0
        self._last = 0
        self._known = 0  # turns there were when the window was last brought up to date
        self._live: Answer | None = None
        self._column = Vertical(id="turns")
        self._above = Static(classes="edge")
        self._below = Static(classes="edge")

    def compose(self) -> ComposeResult:
        """Only the two edges; turns come and go between them."""
        with self._column:
            yield self._above
            yield self._below

    @property
    def following(self) -> bool:
        """Whether the newest line is in view."""
        return self.scroll_y >= self.max_scroll_y - 1

    def show(self, chat: Conversation) -> None:
        """Show the end of a conversation."""
        self._turns = chat.turns
        self._window(max(len(self._turns) - WINDOW, 0), len(self._turns))
        self.follow()

    def follow(self) -> None:
        """Go to the newest text and stay there."""
        if self._last < len(self._turns):
            self._window(max(len(self._turns) - WINDOW, 0), len(self._turns))
        self.anchor()

    def said(self) -> None:
        """Turns were added at the end of the conversation shown."""
        if self._last < self._known:
            self.follow()
            return
        for turn in self._turns[self._last :]:
            self._column.mount(self._view(turn), before=self._below)
        self._last = self._known = len(self._turns)
        while self._last - self._first > WINDOW:
            self._drop_first()
        self._edges()
        self.anchor()

    def feed(self, text: str) -> None:
        """Append to the answer that grows, if it is in the window."""
        if self._live is not None and self._live.is_attached:
            self._live.feed(text)

    def settle(self) -> None:
        """The answer that grew is whole."""
        if self._live is not None and self._live.is_attached:
            self._live.settle()
        self._live = None

    def _view(self, turn: Turn) -> Question | Answer:
        if turn.who == "user":
            return Question(turn)
        from dfly_tui.widgets.answer import Answer  # not before there is one

        view = Answer(turn)
        if turn.end is None:
            self._live = view
        return view

    def _window(self, first: int, last: int) -> None:
        self._first, self._last, self._known = first, last, len(self._turns)
        with self.app.batch_update():
            self._column.query_children("Question, Answer").remove()
            views = [self._view(turn) for turn in self._turns[first:last]]
            self._column.mount_all(views, before=self._below)
        self._edges()

    def _drop_first(self) -> None:
        views = self._column.query_children("Question, Answer")
        if views:
            views.first().remove()
        self._first += 1

    def _edges(self) -> None:
        above, below = self._first, len(self._turns) - self._last
        self._above.update(line(f"{above} earlier turns: page up at the top brings them back"))
        self._below.update(line(f"{below} later turns: End goes to the newest"))
        self._above.display, self._below.display = above > 0, below > 0

    def action_page_up(self) -> None:
        """A page up; at the top, the turns before."""
        if self.scroll_y <= 0 and self._first > 0:
            first = max(self._first - WINDOW // 2, 0)
            self._window(first, min(first + WINDOW, len(self._turns)))
            self.release_anchor()
        else:
            super().action_page_up()

    def action_scroll_end(self) -> None:
        """To the newest text."""
        self.follow()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell the screen, which shows whether there is new text below."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Moved())


def _shortened(text: str) -> str:
    """A huge message is shown by its beginning; the store keeps it whole."""
    most = 8_000
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters in all)"
