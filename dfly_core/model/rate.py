"""Counts what a stage has done and makes its progress events."""

from __future__ import annotations

import time

from dfly_core.records.events import Progress


class Meter:
    """One stage of a job: how much of `total` is done, and how fast. `total` 0 is unknown."""

    def __init__(self, stage: str, total: int, unit: str = "bytes", done: int = 0) -> None:
        self.stage, self.total, self.unit, self.done = stage, total, unit, done
        # What was there before (a resumed download) does not count for the rate.
        self._first, self._start = done, time.monotonic()

    def advance(self, item: str, amount: int) -> Progress:
        """`amount` more is done, of `item`."""
        self.done += amount
        seconds = time.monotonic() - self._start
        rate = (self.done - self._first) / seconds if seconds > 0.05 else None
        return Progress(self.stage, item, self.done, self.total, self.unit, rate)
