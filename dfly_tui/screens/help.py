"""Help, made from the bindings and the table of commands: it cannot be out of date."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from dfly_tui.commands import COMMANDS
from dfly_tui.screens.dialogs import Dialog
from dfly_tui.widgets.step_strip import ACCEPTED, OWN, PROMPT, REJECTED, UNUSED, coloured

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

READING = (
    (ACCEPTED, "a drafted token that the target agreed with: it came for free"),
    (REJECTED, "a drafted token that the target did not want: thrown away"),
    (UNUSED, "a drafted token that lay past the answer's end"),
    (OWN, "the target's own token; every step ends with one, unless the answer ends before it"),
    (PROMPT, "the prompt was read"),
)

FIGURES = (
    ("mean accepted length", "tokens that a step gave, on average: the more, the faster"),
    ("alone", "tokens/s of the target without a drafter; ~ is an estimate, F5 measures it"),
    ("1 2 3 ...", "how often the first, second, third draft of a step was right, with counts"),
    ("1 verify = N", "what a step costs, in steps of the target alone, and what it gives"),
    ("Parity", "whether the answer was seen equal to the target's own, token by token"),
    ("used", "memory of models and answer; full context: with the longest chat they can read"),
)

_NAMES = 'Names for "keys" in settings.json (F9 says where)'
_IN_CHAT = "Commands, typed as a message or found with ctrl+p"


class HelpScreen(Dialog[None]):
    """Keys of the screen it is `of`, commands, and how to read the panel."""

    app: DflyApp

    BINDINGS: ClassVar[list[BindingType]] = [Binding("f1,q", "leave", "Close", id="help.close")]
    DEFAULT_CSS = """
    HelpScreen > .box { width: 84; scrollbar-gutter: stable; }
    HelpScreen Static { height: auto; }
    """

    def __init__(self, of: Screen[Any]) -> None:
        super().__init__()
        self._of = of

    def compose(self) -> ComposeResult:
        """The lists."""
        with VerticalScroll(classes="box"):
            yield Static()

    def on_resize(self) -> None:
        """The lists, fitted to the width."""
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        width = self.query_one(Static).size.width
        self.query_one(Static).update(Content("\n").join(self._lines(max(width, 20))))

    def _lines(self, width: int) -> list[Content]:
        here = self._of is self.app.chat_screen
        lines = [Content("Esc closes this, page down scrolls").stylize("$foreground 60%")]
        lines += [Content(""), _title("Keys" if here else "Keys of this page")]
        lines += [_pair(keys, words, width) for keys, words in self._keys()]
        if here:
            lines += [_pair(self._moves(), "Your earlier messages, in an empty draft", width)]
        lines += [Content(""), _title(_IN_CHAT if here else f"In the chat: {_IN_CHAT.lower()}")]
        lines += [_pair(c.usage, c.help, width) for c in COMMANDS]
        lines += [Content(""), _title("A row of the live panel is one step"), example(width)]
        lines += [_hung(coloured(mark), words, 3, width) for mark, words in READING]
        lines += [Content(""), _title("The live panel's figures")]
        lines += [_pair(name, words, width, 22) for name, words in FIGURES]
        if here:
            names = ", ".join(dict.fromkeys(b.id for b in self._bound() if b.id))
            lines += [Content(""), _title(_NAMES), *Content(names).wrap(width)]
        return lines

    def _moves(self) -> str:
        return " or ".join(self.app.get_key_display(Binding(key, "")) for key in ("up", "down"))

    def _keys(self) -> list[tuple[str, str]]:
        """Keys and what they do, as bound now; one entry per key."""
        found: dict[str, tuple[list[str], str]] = {}
        for binding in self._bound():
            keys = found.setdefault(binding.id or "", ([], binding.description))[0]
            shown = self.app.get_key_display(binding)
            keys += [shown] if shown not in keys else []
        rows: dict[str, str] = {}
        for keys, words in found.values():
            name = " or ".join(keys)
            # One key may mean one thing after another, such as Esc.
            rows[name] = f"{rows[name]}; {words[0].lower()}{words[1:]}" if name in rows else words
        return list(rows.items())

    def _bound(self) -> Iterator[Binding]:
        """The bindings that have a name, as the user's own keys have them."""
        chat = self.app.chat_screen
        here = self._of is chat
        for node in (chat.composer, chat, self.app) if here else (self._of, self.app):
            bindings = node._bindings.copy()
            bindings.apply_keymap(self.app.keymap)
            for _, binding in bindings:
                # Of the app's keys those that the footer shows work on every page.
                everywhere = binding.show and binding.action != "chats"
                if binding.id and (here or node is not self.app or everywhere):
                    yield binding


def example(width: int) -> Content:
    """A row as the panel has it, and what stands where."""
    shown = Content("9 ").stylize("$foreground 65%") + coloured("●○○○○○○◆") + Content(" 2 so on")
    words = (
        "its number, the fate of each draft, how many tokens it gave, as many as it has solid "
        "marks, and their text"
    )
    return _hung(shown, words, 21, width)


def _title(words: str) -> Content:
    return Content(words).stylize("bold $primary")


def _pair(left: str, right: str, width: int, indent: int = 17) -> Content:
    return _hung(Content(left).stylize("bold"), right, indent if width > 44 else 3, width)


def _hung(left: Content, right: str, indent: int, width: int) -> Content:
    """Words behind a head, wrapped under themselves; under the head where that is too long."""
    rows = Content(right).wrap(width - indent)
    lead = left + Content(" " * max(indent - left.cell_length, 1))
    if lead.cell_length + len(right) <= width:
        return lead + Content(right)
    if lead.cell_length > indent:
        return Content("\n").join([left, *(Content(" " * indent) + row for row in rows)])
    return Content("\n").join([lead + rows[0], *(Content(" " * indent) + r for r in rows[1:])])
