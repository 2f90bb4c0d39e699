"""One clear line about what is wrong and what to do; stays until it is dealt with."""

from __future__ import annotations

from textual.widgets import Static

from dfly_tui.text import content


class Notice(Static):
    """Lies over the first rows of the text, which keeps its place; hidden without words."""

    DEFAULT_CSS = """
    Notice {
        dock: top; layer: notes; width: 100%; height: auto; max-height: 40%; overflow-y: auto;
        padding: 0 1; display: none; border-left: outer $error; background: $error 10%;
    }
    """

    def __init__(self) -> None:
        super().__init__(id="notice")
        self.words = ""

    def say(self, words: str) -> None:
        """Show a line."""
        self.words = words
        self.update(content(words))
        self.display = True

    def clear(self) -> None:
        """Nothing is wrong any more."""
        self.words = ""
        self.display = False
