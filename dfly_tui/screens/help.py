"""Help, made from the bindings and the table of commands: it cannot be out of date."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from dfly_tui.commands import COMMANDS
from dfly_tui.widgets.step_strip import ACCEPTED, OWN, REJECTED, UNVERIFIED, coloured

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

READING = (
    (ACCEPTED, "a drafted token that the model agreed with: it came for free"),
    (REJECTED, "a drafted token that the model did not want: thrown away"),
    (UNVERIFIED, "a drafted token that was not checked in this step"),
    (OWN, "the model's own token; every step ends with one"),
)


class HelpScreen(ModalScreen[None]):
    """Keys, commands, and how to read the panel."""

    app: DflyApp

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q", "close", "Close", id="help.close")
    ]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > VerticalScroll {
            width: 84; max-width: 96%; height: auto; max-height: 92%; padding: 1 2;
            background: $surface; border: round $foreground 25%; scrollbar-size-vertical: 1;
        }
        & Static { height: auto; }
    }
    """

    def compose(self) -> ComposeResult:
        """Three lists."""
        with VerticalScroll():
            yield Static(Content("\n").join(self._lines()))

    def _lines(self) -> list[Content]:
        lines = [_title("Keys")]
        lines += [_pair(keys, words) for keys, words in self._keys()]
        lines += [Content(""), _title("Commands, typed as a message or found with ctrl+p")]
        lines += [_pair(f"/{c.word}", c.help) for c in COMMANDS]
        lines += [Content(""), _title("A row of the live panel is one step")]
        lines += [coloured(mark) + Content(f"  {words}") for mark, words in READING]
        lines += [Content(""), Content("Esc closes this").stylize("$foreground 60%")]
        return lines

    def _keys(self) -> list[tuple[str, str]]:
        """Keys and what they do, as bound now; one entry per binding id."""
        chat = self.app.chat_screen
        found: dict[str, tuple[list[str], str]] = {}
        for node in (chat.composer, chat, self.app):
            bindings = node._bindings.copy()
            bindings.apply_keymap(self.app.keymap)
            for _, binding in bindings:
                if binding.id:
                    keys = found.setdefault(binding.id, ([], binding.description))[0]
                    shown = self.app.get_key_display(binding)
                    keys += [shown] if shown not in keys else []
        return [(" or ".join(keys), words) for keys, words in found.values()]

    def action_close(self) -> None:
        """Back to where the user was."""
        self.dismiss(None)


def _title(words: str) -> Content:
    return Content(words).stylize("bold $primary")


def _pair(left: str, right: str) -> Content:
    return Content(f"{left:<16}").stylize("bold") + Content(right)
