"""The list of chats: search, open, rename, delete, export."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dfly_tui.screens.dialogs import AskLine, Confirm, Dialog
from dfly_tui.state.progress import plural
from dfly_tui.state.store import Summary, matches
from dfly_tui.text import line

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp


class ChatsScreen(Dialog[int]):
    """Closes with the number of the chat to open."""

    app: DflyApp

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "into_list", "To the list", show=False),
        Binding("f2", "rename", "Rename", id="chats.rename"),
        Binding("f4", "export", "Export", id="chats.export"),
        Binding("f8,delete", "delete", "Delete", id="chats.delete"),
    ]
    DEFAULT_CSS = """
    ChatsScreen OptionList {
        height: auto; max-height: 20; background: $surface; border: none; padding: 0;
        scrollbar-size-vertical: 1;
    }
    ChatsScreen > .box { width: 90; }
    ChatsScreen.-low OptionList { max-height: 50vh; }
    ChatsScreen.-tiny OptionList { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Summary] = []
        self._shown: list[Summary] = []

    def compose(self) -> ComposeResult:
        """Search line, list, keys."""
        with Vertical(classes="box"):
            yield Static("Chats, each with its number for --resume", classes="title")
            yield Input(placeholder="Search titles and texts")
            yield OptionList(markup=False)
            yield Static(
                "Enter opens · F2 renames · F4 exports · F8 deletes · Esc leaves", classes="hint"
            )

    def on_mount(self) -> None:
        """Read the folder once; searching is in memory."""
        self._read()

    def on_resize(self) -> None:
        """The rows are fitted to the width."""
        self._show(self.query_one(Input).value)

    def _read(self) -> None:
        self._all = self.app.talk.store.summaries()
        self._show(self.query_one(Input).value)

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, words: str) -> None:
        self._shown = [summary for summary in self._all if matches(summary, words)]
        options = self.query_one(OptionList)
        width = min(90, int(self.app.size.width * 0.96)) - 8
        options.clear_options()
        options.add_options([Option(_row(summary, width)) for summary in self._shown])
        if not self._shown:
            words = "No chat has these words" if self._all else "No chats yet"
            options.add_option(Option(words, disabled=True))
        else:
            options.highlighted = 0

    def action_into_list(self) -> None:
        """From the search line into the list."""
        self.query_one(OptionList).focus()

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _open(self) -> None:
        if (chosen := self._chosen) is not None:
            self.dismiss(chosen.number)

    @property
    def _chosen(self) -> Summary | None:
        at = self.query_one(OptionList).highlighted
        return self._shown[at] if at is not None and at < len(self._shown) else None

    def action_rename(self) -> None:
        """Give the chosen chat a title."""
        if (chosen := self._chosen) is not None:
            number = chosen.number
            self.app.push_screen(
                AskLine("Title", chosen.title),
                lambda title: self._then(title is not None, self.app.rename_chat, number, title),
            )

    def action_export(self) -> None:
        """Write the chosen chat as Markdown."""
        if (chosen := self._chosen) is not None:
            self.app.export_chat(chosen.number)

    def action_delete(self) -> None:
        """Delete the chosen chat after a question."""
        if (chosen := self._chosen) is not None:
            number = chosen.number
            self.app.push_screen(
                Confirm(f"Delete “{chosen.title}” for good?", "deletes"),
                lambda yes: self._then(bool(yes), self.app.delete_chat, number),
            )

    def _then(self, really: bool, act: object, *args: object) -> None:
        if really and callable(act):
            act(*args)
            self._read()


def _row(summary: Summary, width: int) -> Content:
    when = _ago(time.time() - summary.changed)
    right = f"{plural(summary.turns, 'message')}  {when:>9}"
    number = f"{summary.number:>3}  "
    title = line(summary.title, limit=max(width - len(number) - len(right) - 2, 8))
    title = Content(number).stylize("dim") + title
    gap = " " * max(width - title.cell_length - len(right), 1)
    return title + Content(gap) + Content(right).stylize("dim")


def _ago(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"
