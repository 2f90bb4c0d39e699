"""Small questions: a line, a text, yes or no."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from dfly_tui.commands import QUIET
from dfly_tui.text import content
from dfly_tui.widgets.line_input import LineInput

Result = TypeVar("Result")
_CHAT_KEYS = ("f1", "ctrl+o", *(key for key, _, _ in QUIET))
LOW, TINY = 23, 12  # rows below which a box gives up its margins, then its border


class Dialog(ModalScreen[Result]):
    """A box in the middle; Escape leaves it with nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", id="dialog.close"),
        Binding("pageup", "page(-1)", "Scroll up", show=False),
        Binding("pagedown", "page(1)", "Scroll down", show=False),
        *(Binding(key, f"elsewhere('{key}')", show=False) for key in _CHAT_KEYS),
    ]

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > .box {
            width: 72; max-width: 96%; height: auto; max-height: 96%;
            padding: 1 2; background: $surface; border: round $foreground 25%;
            overflow-y: auto; scrollbar-size-vertical: 1;
        }
        & .title { text-style: bold; height: auto; margin: 0 0 1 0; }
        & .hint { color: $foreground 60%; height: auto; margin: 1 0 0 0; }
        & Input, & TextArea { border: round $foreground 25%; background: $background; }
        & Input:focus, & TextArea:focus { border: round $primary; }
        &.-low > .box { padding: 0 1; max-width: 100%; max-height: 100%; }
        &.-low .title, &.-low .hint { margin: 0; }
        &.-tiny > .box { border: none; width: 100%; height: 100%; }
        &.-tiny Input, &.-tiny TextArea { border: none; height: 1; padding: 0; }
    }
    """

    def on_resize(self) -> None:
        """Where there are few rows the words come before the air around them."""
        self.set_class(self.app.size.height < LOW, "-low")
        self.set_class(self.app.size.height < TINY, "-tiny")

    def action_page(self, by: int) -> None:
        """Scroll a box that is longer than the terminal."""
        box = self.query_one(".box")
        box.scroll_relative(y=by * max(box.size.height - 1, 1), animate=False)

    def action_leave(self) -> None:
        """Close without a result."""
        self.dismiss(None)

    def action_elsewhere(self, key: str) -> None:
        """A key of the chat, which is behind this box."""
        self.app.clear_notifications()
        shown = self.app.get_key_display(Binding(key, ""))
        self.notify(f"{shown} works in the chat: Esc closes this box", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A box may have a key of the chat for itself."""
        if action != "elsewhere":
            return True
        bound = self._bindings.key_to_bindings.get(str(parameters[0]), [])
        return all(binding.action.startswith("elsewhere") for binding in bound)


class AskLine(Dialog[str]):
    """Asks for one line; one that `fault` has words against stays to be mended."""

    DEFAULT_CSS = "AskLine .fault { height: auto; color: $error; display: none; }"

    def __init__(
        self,
        title: str,
        value: str = "",
        hint: str = "Enter accepts, Esc leaves",
        fault: Callable[[str], str] = lambda text: "",
    ) -> None:
        super().__init__()
        self._title, self._value, self._hint, self._fault = title, value, hint, fault

    def compose(self) -> ComposeResult:
        """Title, line, what is wrong with it, hint."""
        with Vertical(classes="box"):
            yield Static(content(self._title), classes="title")
            yield LineInput(self._value, select_on_focus=False)
            yield Static(classes="fault")
            yield Static(content(self._hint), classes="hint")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        words = self._fault(event.value)
        if words:
            told = self.query_one(".fault", Static)
            told.update(content(words))
            told.display = True
        else:
            self.dismiss(event.value)


class AskText(Dialog[str]):
    """Asks for a text of several lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "accept", "Accept", id="dialog.accept")
    ]
    DEFAULT_CSS = """
    AskText TextArea { height: 10; max-height: 50vh; }
    AskText.-tiny TextArea { height: 1fr; }
    """

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title, self._value = title, value

    def compose(self) -> ComposeResult:
        """Title, text, hint."""
        with Vertical(classes="box"):
            yield Static(content(self._title), classes="title")
            yield TextArea(self._value)
            yield Static("ctrl+s accepts, Esc leaves", classes="hint")

    def action_accept(self) -> None:
        """Close with the text."""
        self.dismiss(self.query_one(TextArea).text)


class Confirm(Dialog[bool]):
    """Asks yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "Yes", id="dialog.yes"),
        Binding("n", "leave", "No", id="dialog.no"),
    ]

    def __init__(self, question: str, verb: str) -> None:
        super().__init__()
        self._question, self._verb = question, verb

    def compose(self) -> ComposeResult:
        """Question, keys."""
        with Vertical(classes="box"):
            yield Static(content(self._question), classes="title")
            yield Static(f"y {self._verb}, n or Esc leaves it", classes="hint")

    def action_yes(self) -> None:
        """Close with yes."""
        self.dismiss(True)
