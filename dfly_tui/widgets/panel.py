"""The live panel: figures, step strip, position bars, standing, from one state."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from dfly_tui.state.panel import PanelState
from dfly_tui.widgets import figures
from dfly_tui.widgets.step_strip import StepStrip


class Panel(Vertical):
    """Shows a `PanelState`; `show` is called on the app's tick, not per step."""

    DEFAULT_CSS = """
    Panel {
        width: 45; padding: 0 1 0 2; border-left: vkey $foreground 15%;
        & > Static { height: auto; }
        & > #guide { margin: 0 0 1 0; }
        & > #headline { margin: 0 0 1 0; }
        & > #bars { margin: 1 0 0 0; }
        & > #standing { margin: 1 0; }
        & > #legend { margin: 0 0 1 0; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="panel")
        self.strip = StepStrip()

    def compose(self) -> ComposeResult:
        """Top to bottom, the strip takes what is left."""
        yield Static(figures.guide(), id="guide")
        yield Static(id="headline")
        yield Static(figures.legend(), id="legend")
        yield self.strip
        yield Static(id="bars")
        yield Static(id="standing")

    def show(self, state: PanelState) -> None:
        """Paint the state."""
        if not self.display:
            return
        width = max(self.content_size.width, 20)
        begun = state.asked
        self.query_one("#guide").display = not begun
        for name in ("#headline", "#legend", "#standing", "#strip"):
            self.query_one(name).display = begun
        self.query_one("#headline", Static).update(figures.headline(state))
        tall = self.size.height > 32
        bars = self.query_one("#bars", Static)
        bars.update(figures.positions(state, width))
        bars.display = bool(state.stats.positions) and self.size.height > 24
        self.query_one("#standing", Static).update(figures.standing(state, width, tall))
        self.strip.show(state.steps, state.slots)


class Meter(Static):
    """The panel in one line."""

    DEFAULT_CSS = "Meter { height: 1; padding: 0 2; margin: 1 0 0 0; display: none; }"

    def show(self, state: PanelState) -> None:
        """Paint the state."""
        if self.display:
            self.update(figures.one_line(state, max(self.screen.size.width - 4, 1)))
