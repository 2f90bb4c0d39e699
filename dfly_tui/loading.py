"""Which pair is loaded: asks for one, stops, and goes back to the one before when it fails."""

from __future__ import annotations

from typing import Protocol

from dfly_core.records.commands import Load
from dfly_core.records.events import Cancelled, Event, Failed, Loaded, Progress
from dfly_core.records.visible import one_line
from dfly_tui.desk import Desk
from dfly_tui.engine import Gone
from dfly_tui.state.models import pair_words
from dfly_tui.state.panel import PanelState
from dfly_tui.state.progress import doing


class View(Protocol):
    """Whoever shows the pair."""

    def loading_changed(self) -> None:
        """The words for the head, or what Esc does, changed."""

    def loaded_pair(self, loaded: Loaded) -> None:
        """A pair is there."""

    def load_failed(self, words: str, detail: str) -> None:
        """A load was stopped or failed, and what follows from it."""


class Loading:
    """Loads pairs, one at a time; two large ones do not fit, so the engine drops the old first.

    `wanted` was asked for last; `standing` is the pair that is there, or was when a load that
    is not over began. When that load ends without a pair, `standing` is loaded again.
    """

    def __init__(self, desk: Desk, panel: PanelState, view: View, wanted: Load) -> None:
        self._desk, self._panel, self._view = desk, panel, view
        self.wanted = wanted
        self.standing: Load | None = None
        self._had = ""
        self._doing = ""
        self._going_back = False

    @property
    def words(self) -> str:
        """The pair, or what is done to have one."""
        pair = self._panel.pair
        return pair_words(pair) if pair and not self._doing else self._doing or "starting"

    @property
    def stoppable(self) -> bool:
        """Whether a load runs that may be stopped: going back may not, it would leave nothing."""
        return self._desk.busy == "load" and not self._going_back

    def begin(self, load: Load) -> bool:
        """Ask for a pair; False when the engine is not free."""
        if not self._desk.ask("load", load, self):
            return False
        if self._panel.pair is not None:
            self._had = pair_words(self._panel.pair)
        self.wanted, self._doing = load, "loading"
        self._panel.pair = self._panel.verdict = None
        self._view.loading_changed()
        return True

    def restore(self) -> None:
        """A benchmark brought a pair of its own: load ours again."""
        if self.standing is not None:
            self._going_back = self.begin(self.standing)

    def stop(self) -> None:
        """Stop loading at the engine's next safe moment."""
        self._doing = "stopping"
        self._desk.cancel()
        self._view.loading_changed()

    def hear(self, events: list[Event]) -> None:
        """How a load goes, and its end."""
        for event in events:
            if isinstance(event, Progress) and self._doing != "stopping":
                self._doing = one_line(doing(event), 60)
            elif isinstance(event, Loaded):
                self._doing, self._going_back = "", False
                self.standing = self.wanted
                self._panel.pair, self._panel.verdict = event.pair, event.verdict
                self._view.loaded_pair(event)
            elif isinstance(event, Cancelled):
                self._failed(
                    "Loading was stopped", "", "ctrl+r loads it again", "F6 loads it again"
                )
            elif isinstance(event, Failed):
                words = f"{event.what}: {event.remedy}" if event.remedy else event.what
                self._failed(words, event.detail)
        self._view.loading_changed()

    def _failed(
        self, words: str, detail: str, again: str = "ctrl+r tries again", later: str = ""
    ) -> None:
        before = None if self._going_back else self.standing
        self._going_back = before is not None and self.begin(before)
        if self._going_back:
            words = f"{words}. {later}" if later else words
            self._view.load_failed(f"{words}. Back to what you had: {self._had}", detail)
            return
        self.standing, self._doing = None, "no pair loaded"
        self._view.load_failed(f"{words}. {again}, F6 chooses another pair", detail)

    def lost(self, gone: Gone) -> None:
        """The engine died: what it died of is not loaded again with it."""
        self._doing, self._going_back = "", False
        self.wanted = self.standing or self.wanted
