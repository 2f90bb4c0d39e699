"""The conversion wizard: source, check, options, progress, report, use it now."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, RadioButton, RadioSet, Static

from dfly_core.records.checked import Checked, check_lines, sizing_words
from dfly_core.records.commands import Convert
from dfly_core.records.events import Cancelled, Converted, Event, Failed, Progress
from dfly_core.records.sizes import size_words
from dfly_tui.engine import Gone
from dfly_tui.state.checking import OFFICIAL, first_run_words
from dfly_tui.state.models import Found, find_models, memory_size, model_roots, on_mac
from dfly_tui.state.use import Use, fit_words, use_of
from dfly_tui.text import content, middle
from dfly_tui.widgets.keys import Keys
from dfly_tui.widgets.line_input import LineInput
from dfly_tui.widgets.progress_line import ProgressLine

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

_BITS = (None, 8, 4)
_LABELS = ("as published", "8 bit: half the size", "4 bit: a quarter of the size")
_CHECK = "Enter checks: layout, gates, sizes, room, speed. Nothing large is fetched."


class _Choice(RadioButton):
    """A radio button that shows by its glyph, not by colour alone, whether it is the chosen one."""

    BUTTON_INNER: str = "○"
    BUTTON_LEFT = BUTTON_RIGHT = " "  # half blocks, which sixteen colours paint white

    def render(self) -> Content:
        """The button and its label."""
        self.BUTTON_INNER = "●" if self.value else "○"
        return super().render()


class ConvertScreen(Screen[None]):
    """One page from top to bottom; Enter checks, ctrl+s starts, Esc stops or leaves."""

    app: DflyApp

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "start", "Convert", id="convert.start"),
        Binding("ctrl+s", "busy", show=False),
        # No field edits its line with this key.
        Binding("ctrl+y", "use", "Use it now", id="convert.use"),
        Binding("ctrl+y", "cannot_use", show=False),
        Binding("escape", "leave", "Stop or back", id="convert.back"),
    ]
    DEFAULT_CSS = """
    ConvertScreen {
        & > #convert-head {
            height: 1; padding: 0 2; background: $foreground 6%; text-style: bold;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        & > VerticalScroll { padding: 1 2; scrollbar-size-vertical: 1; }
        & .name { color: $primary; text-style: bold; margin: 1 0 0 0; height: 1; }
        & VerticalScroll > Static { height: auto; max-width: 100; }
        & Input {
            border: none; height: 1; padding: 0 1; background: $foreground 8%; max-width: 100;
        }
        & Input:focus { border: none; background: $primary 20%; }
        & RadioSet, & RadioSet:focus {
            border: none; background: $background; padding: 0; height: auto; width: 1fr;
        }
        & RadioButton { width: 1fr; height: auto; text-wrap: wrap; }
        & RadioSet > RadioButton > .toggle--button {
            color: $foreground 60%; background: $background;
        }
        & RadioSet > RadioButton.-on > .toggle--button {
            color: $success; background: $background;
        }
        & ProgressLine { margin: 1 0 0 0; max-width: 100; }
        & #outcome { margin: 1 0 0 0; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._report: dict[str, Any] | None = None
        self._busy = ""  # or "check", "conversion"
        self._checked: Checked | None = None
        self._asked: Convert | None = None
        self._said: Convert | None = None  # what the words under the form are about
        self._use: Use | None = None  # how the result can be used
        self._fit = ""  # whether it fits the target that is named
        self._told = ""  # what stands under Check

    def compose(self) -> ComposeResult:
        """The page."""
        yield Static("Convert a drafter", id="convert-head")
        with VerticalScroll():
            yield Static(content(first_run_words(memory_size(), on_mac())))
            yield Static("Source", classes="name")
            yield LineInput(placeholder="empty: official; or folder, file, hub id", id="source")
            yield Static("Target", classes="name")
            yield LineInput(placeholder="empty: one that fits; or folder, hub id", id="target")
            yield Static("Check", classes="name")
            yield Static(_CHECK, id="check")
            yield Static("Weights", classes="name")
            with RadioSet(id="bits"):
                for number, label in enumerate(_LABELS):
                    yield _Choice(Content(label), value=number == 0)
            yield Static(id="rests")
            yield Static("Output", classes="name")
            yield LineInput(id="output")
            yield ProgressLine()
            yield Static(id="outcome", classes="outcome")
        yield Keys()

    def on_mount(self) -> None:
        """Begin at the source."""
        self.query_one("#source", Input).focus()
        self._changed()
        self._show_check()

    @property
    def _source(self) -> str | None:
        return self.query_one("#source", Input).value.strip() or None

    @property
    def _target(self) -> str:
        return self.query_one("#target", Input).value.strip()

    @property
    def _models(self) -> list[Found]:
        return find_models(model_roots(self.app.start.data))

    @property
    def _bits(self) -> int | None:
        return _BITS[max(self.query_one(RadioSet).pressed_index, 0)]

    @property
    def _output(self) -> Path:
        typed = self.query_one("#output", Input).value.strip()
        return Path(typed).expanduser() if typed else self._default_output()

    def _default_output(self) -> Path:
        name = Path((self._source or OFFICIAL).rstrip("/")).name or "drafter"
        bits = f"-{self._bits}bit" if self._bits else ""
        return self.app.start.data / "models" / f"{name}{bits}-MLX"

    @property
    def _command(self) -> Convert:
        return Convert(
            str(self._output), self._source, quantize=self._bits, target=self._target or None
        )

    @on(Input.Changed)
    def _changed(self) -> None:
        """What was found, or went wrong, belongs to other inputs now."""
        self._show_output()
        if self._report is not None:
            self._tell_use()
        if self._said is not None and self._command != self._said:
            self._say("", "")
        if self._checked is not None and self._command != self._asked:
            self._checked = None
            self._show_check()

    def on_resize(self) -> None:
        """The path is fitted to the width."""
        self.call_after_refresh(self._show_output)

    def _show_output(self) -> None:
        output = self.query_one("#output", Input)
        output.placeholder = middle(str(self._default_output()), max(output.content_size.width, 20))

    @on(RadioSet.Changed)
    def _chosen(self) -> None:
        """Other weights need other room: what was checked is checked again."""
        again = self._checked is not None
        self._changed()
        if again:
            self._ask_check()

    @on(Input.Submitted)
    def _ask_check(self) -> None:
        if self._busy:
            self.action_busy()
            return
        self._asked = self._command
        models = self._models
        self._fit = fit_words(self._source, self._target, models) if self._target else ""
        here = tuple(str(m.path) for m in models if m.kind == "target")
        ask = replace(self._asked, check=True, targets=here)
        if not self.app.desk.ask("check", ask, self):
            self._show_check(self.app.desk.busy_words)
            return
        self._busy, self._checked = "check", None
        self._show_check("Checking")
        self.refresh_bindings()

    def _show_check(self, words: str = _CHECK) -> None:
        found, rests = self._checked, ""
        labels = list(_LABELS)
        if found is not None:
            told = [*check_lines(found, self._bits), *([self._fit] if self._fit else [])]
            words = for_here("\n".join(told))
            known = {sizing.bits: sizing_words(sizing) for sizing in found.sizes}
            rests = found.rests_on if known else ""
            labels = [known.get(bits, label) for bits, label in zip(_BITS, _LABELS, strict=True)]
        self._told = words
        self.query_one("#check", Static).update(content(words))
        under = self.query_one("#rests", Static)
        under.update(content(rests))
        under.display = bool(rests)
        for label, button in zip(labels, self.query(RadioButton), strict=True):
            button.label = Content(label)

    def action_start(self) -> None:
        """Start the conversion."""
        if not self.app.desk.ask("conversion", self._command, self):
            self._say(self.app.desk.busy_words, "$error")
            return
        self._busy, self._report, self._use = "conversion", None, None
        self._say("The converter checks the source before it reads anything large.", "")

    def hear(self, events: list[Event]) -> None:
        """Progress, then one end: of a check, or of the conversion."""
        for event in events:
            if not self.is_attached:
                return
            line = self.query_one(ProgressLine)
            if isinstance(event, Progress):
                line.show(event)
                continue
            busy, self._busy = self._busy, ""
            line.hide()
            if isinstance(event, Checked):
                self._checked = event if self._command == self._asked else None
                self._show_check()
            elif busy == "check":
                why = event.what if isinstance(event, Failed) else "Stopped: " + _CHECK
                self._show_check(why)
            elif isinstance(event, Converted):
                self._report = event.report
                self._tell_use()
            elif isinstance(event, Cancelled):
                self._say("Stopped: nothing was left behind.", "")
            elif isinstance(event, Failed):
                self._say_failed(event)
        self.refresh_bindings()

    def lost(self, gone: Gone) -> None:
        """The engine died."""
        self._busy = ""
        if self.is_attached:
            self._say(f"The engine ended ({gone.words}); the output was not touched.", "$error")

    def _say_failed(self, event: Failed) -> None:
        """Why nothing was converted; not once more where it stands under Check."""
        words = f"{event.what}: {event.remedy}" if event.remedy else event.what
        known = for_here(event.what) in self._told
        self._say(
            "Not converted: the reason stands under Check" if known else for_here(words), "$error"
        )

    def _say(self, words: str, style: str) -> None:
        self._said = None if style == "$success" else self._command
        outcome = self.query_one("#outcome", Static)
        outcome.update(content(words, style))
        self.call_after_refresh(outcome.scroll_visible, animate=False)

    def _tell_use(self) -> None:
        """The report, and with which target the result can be used now."""
        report = self._report or {}
        folder = Path(str(report.get("output", self._output)))
        self._use = use_of(folder, self._target, self._models, self.app.verify)
        last = f"ctrl+y uses it now, {self._use.words}; Esc goes back"
        if self._use.load is None:
            last = f"It can't be used now: {self._use.words}. Name another target above, or Esc"
        self._say("\n".join([*report_lines(report), last]), "$success")
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only the keys that do something now."""
        if action == "use":
            return self._use is not None and self._use.load is not None
        return not self._busy if action == "start" else True

    def action_busy(self) -> None:
        """Another thing was asked for while one runs."""
        self.app.say_line(f"The {self._busy} still runs; Esc stops it")

    def action_cannot_use(self) -> None:
        """There is nothing that could be used."""
        if self._busy:
            self.action_busy()
        elif self._use is None:
            self.app.say_line("There is no result yet: ctrl+s converts")
        else:
            self.app.say_line(f"It can't be used now: {self._use.words}")

    def action_leave(self) -> None:
        """Stop what runs; else go back."""
        if self._busy:
            self.app.desk.cancel()
        else:
            self.dismiss(None)

    def action_use(self) -> None:
        """Load the new drafter with a target that fits."""
        if self._use is not None and self._use.load is not None:
            self.dismiss(None)
            self.app.load(self._use.load)


def for_here(words: str) -> str:
    """The page has no options: it never replaces what is there, and F6 names a drafter."""
    words = words.replace(", or replace it with --force", "")
    return re.sub(r"use it as it is \(--draft .*?\)(?=$|\n)", "F6 in the chat chooses it", words)


def report_lines(report: dict[str, Any]) -> list[str]:
    """The report as lines; fields it lacks are left out."""
    lines = [f"Converted to {report.get('output', '?')}"]
    size, tensors = report.get("output_bytes"), report.get("tensors")
    if isinstance(size, (int, float)):
        seconds = report.get("seconds")
        took = f" in {seconds:.1f} s" if isinstance(seconds, (int, float)) else ""
        lines.append(f"{size_words(size)}, {tensors} tensors, {report.get('dtype', '')}{took}")
    lines += [str(note) for note in report.get("notes") or []]
    agreement = report.get("agreement")
    if isinstance(agreement, dict):
        told = ", ".join(
            f"{k.replace('_', ' ')} {f'{v:.6g}' if isinstance(v, float) else v}"
            for k, v in agreement.items()
            if v is not None
        )
        lines.append(f"Against the unquantised drafter: {told}")
    return lines
