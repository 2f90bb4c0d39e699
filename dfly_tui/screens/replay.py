"""Step replay: what was drafted, what the target chose, where they part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from dfly_core.records.step import Step
from dfly_tui.screens.dialogs import Dialog
from dfly_tui.state.panel import NO_REASON
from dfly_tui.state.progress import plural
from dfly_tui.text import line
from dfly_tui.widgets.step_strip import coloured, fate, glyphs

_DIM = "$foreground 60%"


class ReplayScreen(Dialog[None]):
    """One step at a time, over a frozen list of steps."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up", "move(-1)", "Earlier", id="replay.earlier"),
        Binding("right,down", "move(1)", "Later", id="replay.later"),
        Binding("home", "move(-100000)", "First", id="replay.first"),
        Binding("end", "move(100000)", "Last", id="replay.last"),
    ]

    def __init__(self, steps: Sequence[Step], at: int) -> None:
        super().__init__()
        self._steps = list(steps)
        self._at = at

    def compose(self) -> ComposeResult:
        """Title, body, keys."""
        with Vertical(classes="box"):
            yield Static(id="step-title", classes="title")
            yield Static(id="step-body")
            yield Static("Left and right move, Home and End jump, Esc leaves", classes="hint")

    def on_mount(self) -> None:
        """Show the chosen step."""
        self._show()

    def action_move(self, by: int) -> None:
        """To another step."""
        self._at = min(max(self._at + by, 0), len(self._steps) - 1)
        self._show()

    def _show(self) -> None:
        step = self._steps[self._at]
        of = f"Step {step.index} of {self._steps[-1].index}"
        self.query_one("#step-title", Static).update(Content(of))
        self.query_one("#step-body", Static).update(Content("\n").join(page(step)))


def page(step: Step) -> list[Content]:
    """The lines about one step."""
    lines = [_what(step), Content("")]
    if step.proposals:
        lines.append(_row("", "drafted", "target's choice", _DIM))
    for slot, token in enumerate(step.proposals):
        choice = step.chosen[slot].piece if slot < len(step.chosen) else None
        parts = slot == step.accepted
        row = _row(fate(step, slot), quoted(token.piece), "" if choice is None else quoted(choice))
        if slot == step.kept < len(step.chosen):
            row += Content("  past the answer's end").stylize(_DIM)
        elif parts:
            row += Content("  they part").stylize("$warning")
        lines.append(row)
    if step.is_cycle and step.accepted == step.width and step.chosen:
        lines.append(_row(glyphs(step)[-1], "", quoted(step.chosen[-1].piece)))
    lines += [Content(""), Content("gave  ").stylize(_DIM) + line(quoted(step.text), limit=200)]
    if step.kept < len(step.chosen):
        past = plural(len(step.chosen) - step.kept, "token")
        lines.append(Content(f"{past} more lay past the answer's end"))
    lines.append(_times(step))
    return lines


def _what(step: Step) -> Content:
    if step.index == 0:
        return Content("The prompt was read; the target chose the first token.")
    if not step.chosen:
        return Content("The answer ended here, between two steps.")
    if not step.is_cycle:
        why = step.off or NO_REASON
        return line(f"Drafting was off in this step: {why}. The target chose one token.")
    return Content(
        f"{plural(step.width, 'token')} drafted and checked at position {step.position}, "
        f"{step.accepted} accepted; "
        f"{plural(step.kept, 'token')} came of it."
    )


def _row(mark: str, drafted: str, choice: str, style: str = "") -> Content:
    first = line(drafted, limit=16)
    pad = Content(" " * max(18 - first.cell_length, 1))
    row = coloured(mark or " ") + Content("  ") + first + pad + line(choice, limit=16)
    return row.stylize(style) if style else row


def _times(step: Step) -> Content:
    seconds = step.seconds
    words = f"{seconds.total * 1e3:.1f} ms"
    if seconds.sampled:
        parts = zip(
            ("draft", "verify", "commit"),
            (seconds.draft, seconds.verify, seconds.commit),
            strict=True,
        )
        told = ", ".join(f"{name} {value * 1e3:.1f}" for name, value in parts if value is not None)
        words += f": {told} (a timed step)"
    return Content("took  ").stylize(_DIM) + Content(words)


def quoted(piece: str) -> str:
    """A piece with its spaces and line ends in sight."""
    return "“" + piece.replace("\n", "⏎").replace(" ", "␣") + "”"
