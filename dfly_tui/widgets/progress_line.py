"""A stage, a bar, how much and how long still: two lines."""

from __future__ import annotations

import time
from dataclasses import replace

from textual.content import Content
from textual.widgets import Static

from dfly_core.records.events import Progress
from dfly_tui.state.progress import fraction, words
from dfly_tui.text import line


class ProgressLine(Static):
    """Shows the last `Progress`."""

    DEFAULT_CSS = "ProgressLine { height: 2; display: none; }"

    def __init__(self) -> None:
        super().__init__()
        self._stage = ""
        self._since = 0.0
        self._from = 0
        self._shown: Progress | None = None

    def show(self, progress: Progress) -> None:
        """Paint it; a stage that tells no rate is timed here."""
        self.display = True
        if progress.stage != self._stage:
            self._stage, self._from = progress.stage, progress.done
            self._since = time.monotonic()
        gained, passed = progress.done - self._from, time.monotonic() - self._since
        if progress.rate is None and gained > 0 and passed > 1:
            progress = replace(progress, rate=gained / passed)
        self._shown = progress
        self._paint()

    def on_resize(self) -> None:
        """Fit it to the width, which is not known before it is first displayed."""
        self._paint()

    def _paint(self) -> None:
        progress = self._shown
        if progress is None:
            return
        width = max(self.content_size.width, 20)
        share = fraction(progress)
        filled = round(width * share)
        bar = Content("━" * filled).stylize("$primary")
        bar += Content("─" * (width - filled)).stylize("$foreground 20%")
        percent = f" {share:.0%}" if progress.total else ""
        told = line(f"{progress.stage}{percent} · {words(progress)} · {progress.item}", limit=width)
        self.update(told + Content("\n") + bar)

    def hide(self) -> None:
        """Nothing runs."""
        self.display = False
