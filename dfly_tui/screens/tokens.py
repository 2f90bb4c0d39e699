"""The answer with each token's origin: drafted and accepted, or the target's own."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dfly_tui.screens.dialogs import Dialog
from dfly_tui.state.conversation import Run
from dfly_tui.text import content

_DRAFTED = "$success"
_OWN = "bold underline $warning"


class TokensScreen(Dialog[None]):
    """Underlined is the target's own, so that colour is not needed to tell."""

    DEFAULT_CSS = """
    TokensScreen VerticalScroll { height: auto; max-height: 60vh; scrollbar-size-vertical: 1; }
    TokensScreen.-low VerticalScroll { max-height: 50vh; }
    TokensScreen.-tiny VerticalScroll { height: 1fr; max-height: 100%; }
    TokensScreen > .box { width: 96; }
    TokensScreen VerticalScroll > Static { height: auto; }
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        super().__init__()
        self._runs = list(runs)

    def compose(self) -> ComposeResult:
        """Counts, then the text."""
        drafted = sum(len(run.text) for run in self._runs if run.draft)
        whole = sum(len(run.text) for run in self._runs)
        share = f"{drafted / whole:.0%} of the characters came from the drafter" if whole else ""
        with Vertical(classes="box"):
            yield Static(content(share or "Nothing is known about this answer"), classes="title")
            with VerticalScroll():
                yield Static(Content("").join(map(_shown, self._runs)))
            yield Static(
                Content("").join(
                    [
                        Content("drafted and accepted").stylize(_DRAFTED),
                        Content("   "),
                        Content("the target's own").stylize(_OWN),
                        Content("   Esc leaves"),
                    ]
                ),
                classes="hint",
            )


def _shown(run: Run) -> Content:
    return content(run.text).stylize(_DRAFTED if run.draft else _OWN)
