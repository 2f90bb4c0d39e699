"""The desk between app and engine: one job at a time, its events handed to whoever asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dfly_core.records.commands import Job
from dfly_core.records.events import CLOSING, PROTOCOL, Costed, Event, Hello
from dfly_tui.engine import Engine, Gone


class Listener(Protocol):
    """Whoever asked for a job."""

    def hear(self, events: list[Event]) -> None:
        """Events of the job, in order; the last one ever is a closing event."""

    def lost(self, gone: Gone) -> None:
        """The engine died in the middle of the job."""


class Desk:
    """Sends jobs and routes what comes back; events of older jobs are dropped by number."""

    def __init__(self, engine: Engine, costed: Callable[[Costed], None]) -> None:
        self.engine = engine
        self._costed = costed  # told of this whatever runs; no job ends by it
        self.greeted = False
        self.gone: Gone | None = None
        self.fault = ""
        self._job = 0
        self._what = ""
        self._listener: Listener | None = None

    @property
    def busy(self) -> str:
        """What runs now ("answer", "benchmark"...), or nothing."""
        return self._what

    @property
    def busy_words(self) -> str:
        """Why nothing else can be asked for now."""
        if self.gone:
            return "The engine ended: ctrl+r in the chat starts it again"
        if self._what == "load":
            return "The pair is still loading: a moment"
        return f"One thing at a time: the {self._what} still runs"

    def start(self) -> None:
        """Start the engine, or start it again."""
        self.greeted, self.gone, self.fault = False, None, ""
        self._what, self._listener = "", None
        try:
            self.engine.start()
        except OSError as error:
            self.gone = Gone(127)
            self.fault = f"The engine could not be started: {error}"

    def ask(self, what: str, job: Job, listener: Listener) -> bool:
        """Send a job; False when another one runs or there is no engine."""
        if self._what or self.gone:
            return False
        self._what, self._listener = what, listener
        self._job = self.engine.send(job)
        return True

    def cancel(self) -> None:
        """Ask the running job to stop."""
        if self._what:
            self.engine.cancel(self._job)

    def drain(self) -> int:
        """Hand on what was heard; returns how many events there were."""
        heard = self.engine.heard()
        batch: list[Event] = []
        for job, event in heard:
            if isinstance(event, Gone):
                self._hand(batch)
                batch = []
                self._lose(event)
            elif isinstance(event, Hello):
                self.greeted = True
                if event.protocol != PROTOCOL:
                    self.fault = (
                        f"The engine speaks protocol {event.protocol}, this app {PROTOCOL}: "
                        "install both from one version"
                    )
            elif isinstance(event, Costed):
                self._costed(event)
            elif self._what and job == self._job:
                batch.append(event)
                if isinstance(event, CLOSING):
                    self._hand(batch)
                    batch = []
        self._hand(batch)
        return len(heard)

    def _hand(self, batch: list[Event]) -> None:
        listener = self._listener
        if not batch or listener is None:
            return
        if isinstance(batch[-1], CLOSING):
            # Free before the listener hears of it, so that it may ask for the next job at once.
            self._what, self._listener = "", None
        listener.hear(batch)

    def _lose(self, gone: Gone) -> None:
        listener, self.gone = self._listener, gone
        self._what, self._listener = "", None
        if listener is not None:
            listener.lost(gone)
