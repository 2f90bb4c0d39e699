"""Settings that explain themselves."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_type_hints

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dfly_tui.screens.dialogs import AskLine, AskText, Dialog
from dfly_tui.state.settings import EXPLAINED, Settings
from dfly_tui.text import content, line, middle

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

_LABELS = {"system": "system prompt"}
# Values with which a setting does nothing.
_OFF = {"top_p": 1.0, "top_k": 0}
_CHOICES = {"verify": ("exact", "auto", "fast")}
# The pair has a screen of its own; keys are a table for an editor.
_NAMES = [f.name for f in fields(Settings) if f.name not in ("model", "draft", "no_draft", "keys")]


class SettingsScreen(Dialog[None]):
    """Enter changes the setting under the cursor."""

    app: DflyApp

    DEFAULT_CSS = """
    SettingsScreen {
        & OptionList { height: auto; background: $surface; border: none; padding: 0; }
        & OptionList { scrollbar-size-vertical: 1; }
        &.-low OptionList { max-height: 50vh; }
        &.-tiny OptionList { height: 1fr; max-height: 100%; }
        &.-tiny #keys { display: none; }
    }
    """

    def compose(self) -> ComposeResult:
        """The settings, what the chosen one means, where keys are."""
        with Vertical(classes="box"):
            yield Static("Settings", classes="title")
            yield OptionList(markup=False)
            yield Static(id="explained", classes="hint")
            yield Static(
                content(
                    "Enter changes, Esc leaves. Pair: F6. Your own keys go into "
                    f"{middle(str(self.app.settings_path), 44)}, such as "
                    '"keys": {"app.new_chat": "f12"}; F1 has the names'
                ),
                id="keys",
                classes="hint",
            )

    def on_mount(self) -> None:
        """Show them."""
        self._show(0)

    def _show(self, at: int) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(_row(name, self.app.settings)) for name in _NAMES])
        options.highlighted = at

    @on(OptionList.OptionHighlighted)
    def _explain(self, event: OptionList.OptionHighlighted) -> None:
        self.query_one("#explained", Static).update(content(EXPLAINED[_NAMES[event.option_index]]))

    @on(OptionList.OptionSelected)
    def _change(self, event: OptionList.OptionSelected) -> None:
        at = event.option_index
        name = _NAMES[at]
        value = getattr(self.app.settings, name)
        if name == "theme":
            self.dismiss(None)
            self.app.action_change_theme()
        elif isinstance(value, bool):
            self._set(at, not value)
        elif name in _CHOICES:
            choices = _CHOICES[name]
            now = choices.index(value) if value in choices else -1
            self._set(at, choices[(now + 1) % len(choices)])
        elif name == "system":
            self.app.push_screen(
                AskText(EXPLAINED[name], value),
                lambda text: self._set(at, text) if text is not None else None,
            )
        else:
            self.app.push_screen(
                AskLine(
                    EXPLAINED[name],
                    "" if value is None else str(value),
                    fault=lambda text: _fault(name, text, self._most(name)),
                ),
                lambda text: self._set(at, parse(name, text)) if text is not None else None,
            )

    def _most(self, name: str) -> float:
        pair = self.app.panel.pair
        if name == "width" and pair is not None and pair.draft is not None:
            return pair.block_size - 1
        return _LIMITS[name][1]

    def _set(self, at: int, value: Any) -> None:
        setattr(self.app.settings, _NAMES[at], value)
        self.app.save_settings()
        self.app.apply_settings()
        self._show(at)


_LIMITS: dict[str, tuple[float, float]] = {
    "max_tokens": (1, 1_000_000),
    "width": (0, 64),
    "temperature": (0, 2),
    "top_p": (0.01, 1),
    "top_k": (0, 1_000_000),
    "seed": (0, 2**31 - 1),
}

_AUTO = ("auto", "automatic")


def parse(name: str, text: str, most: float | None = None) -> int | float | None:
    """The value of a number setting, at most `most`; raises ValueError with the limits."""
    kind = get_type_hints(Settings)[name]
    text = text.strip()
    if (not text and kind == (int | None)) or (name == "width" and text in _AUTO):
        return None
    low, high = _LIMITS[name]
    high = high if most is None else most
    try:
        value: int | float = float(text) if kind is float else int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        auto = ", or auto" if name == "width" else ""
        raise ValueError(f"{name.replace('_', ' ')} is a number from {low} to {high}{auto}")
    return value


def _fault(name: str, text: str, most: float) -> str:
    try:
        parse(name, text, most)
    except ValueError as error:
        return str(error)
    return ""


def _row(name: str, settings: Settings) -> Content:
    value = getattr(settings, name)
    shown = str(value)
    if name in _OFF and value == _OFF[name]:
        shown += " (off)"
    elif isinstance(value, bool):
        shown = "on" if value else "off"
    elif value is None:
        shown = "new each time" if name == "seed" else "automatic"
    elif value == "":
        shown = "none"
    label = Content(f"{_LABELS.get(name, name.replace('_', ' ')):<18}")
    return label + line(shown, limit=44).stylize("bold")
