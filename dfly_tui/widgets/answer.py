"""An answer on screen: its text, and a line under it once it ended.

With it comes the Markdown parser, which is a tenth of what an empty chat would have to import.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from dfly_tui.state.conversation import Turn, foot_words
from dfly_tui.text import line
from dfly_tui.widgets.prose import Prose


class Answer(Vertical):
    """What the model said, and a line under it once it ended."""

    DEFAULT_CSS = """
    Answer { height: auto; margin: 1 0 0 0; padding: 0 1 0 2; }
    Answer > .foot { height: auto; color: $foreground 60%; margin: 1 0 0 0; }
    """

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self.turn = turn
        self.prose = Prose(turn.text)
        self._foot = Static(classes="foot")

    def compose(self) -> ComposeResult:
        """The text, then the foot."""
        yield self.prose
        yield self._foot

    def on_mount(self) -> None:
        """An answer from disk has its foot at once."""
        self.show_foot()

    def feed(self, text: str) -> None:
        """Append original text."""
        self.prose.feed(text)

    def settle(self) -> None:
        """The answer is whole."""
        self.prose.settle()
        self.show_foot()

    def show_foot(self) -> None:
        """Say how the answer ended and what it took."""
        words = foot_words(self.turn)
        self._foot.update(line(words))
        self._foot.display = bool(words)
