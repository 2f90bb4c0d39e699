"""The engine as a child process: commands in on stdin, events out on the old stdout.

One thread owns MLX and runs one job at a time; a reader thread takes commands, sets the
cancel flag, and ends the process when its input ends, so that no orphan is left.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from dfly_core import __version__
from dfly_core.records.commands import Cancel, Close, Command, Job, Load
from dfly_core.records.errors import Busy, DflyError, import_fault
from dfly_core.records.events import CLOSING, PROTOCOL, Event, Failed, Hello
from dfly_core.records.visible import one_line
from dfly_core.records.wire import Envelope, WireError, decode, encode

if TYPE_CHECKING:
    from dfly_core.jobs import Program

CALM = 0.3  # seconds after a job: the app draws the screen then, which costs would be timed with


class Worker:
    """Reads, runs, answers."""

    def __init__(self, commands: BinaryIO, events: BinaryIO) -> None:
        self._commands = commands
        self._events = events
        self._writing = threading.Lock()
        self._jobs: queue.SimpleQueue[tuple[int, Job] | None] = queue.SimpleQueue()
        self._state = threading.Lock()
        self._running: int | None = None
        self._cancelled: set[int] = set()

    def serve(self) -> None:
        """Say Hello, then work until Close or the end of input."""
        self._say(0, Hello(PROTOCOL, __version__))
        threading.Thread(target=self._read, daemon=True, name="commands").start()
        imports = threading.Thread(target=_import_transformers, daemon=True, name="imports")
        imports.start()
        program: Program | None = None
        while (item := self._next(program)) is not None:
            number, job = item
            try:
                if program is None:
                    program = self._program(job, imports)
                for event in program.run(job, lambda n=number: n in self._cancelled):  # type: ignore[misc]
                    self._say(number, event)
            except DflyError as error:
                self._fail(number, error.kind, error.what, error.remedy)
            except ImportError as error:
                fault = import_fault(error)
                self._fail(number, fault.kind, fault.what, fault.remedy)
            except Exception as error:  # noqa: BLE001  a job's fault must not end the engine
                self._fail(
                    number,
                    "unexpected",
                    f"{type(error).__name__}: {one_line(str(error))}",
                    "please report it with the log",
                )

    def _program(self, job: Job, imports: threading.Thread) -> Program:
        seen = None
        if isinstance(job, Load):
            from dfly_core.exact.ahead import attention_ahead

            seen = attention_ahead(job)
        imports.join()  # transformers puts another module in its place when it is all there
        from dfly_core import jobs

        return jobs.Program(seen)

    def _next(self, program: Program | None) -> tuple[int, Job] | None:
        """The next job; while there is none, what a load left to be measured is measured."""
        if program is not None and program.unsettled:
            with suppress(queue.Empty):
                return self._jobs.get(timeout=CALM)
            try:
                for event in program.settle(lambda: not self._jobs.empty()):
                    self._say(0, event)
            except Exception:  # noqa: BLE001  a job that needs it meets the fault and tells it
                print(traceback.format_exc(), file=sys.stderr, flush=True)  # noqa: T201
        return self._jobs.get()

    def _read(self) -> None:
        while line := self._commands.readline():
            try:
                self._take(decode(line))
            except WireError as error:
                # Not under the number of the job that runs: that would tell of its end.
                job = 0 if error.job == self._running else error.job
                self._write(job, Failed(error.kind, error.what, error.remedy))
        # The parent is gone or has closed us; whatever runs now has no one to tell.
        os._exit(0)

    def _take(self, envelope: Envelope) -> None:
        body: Command | Event = envelope.body
        if isinstance(body, Cancel):
            self._cancel(body.target)
        elif isinstance(body, Close):
            self._cancel(self._running)
            self._jobs.put(None)
        elif isinstance(body, Job):
            with self._state:
                busy = self._running
                if busy is None:
                    self._running = envelope.job
            if busy is None:
                self._jobs.put((envelope.job, body))
            else:
                error = Busy(f"job {busy} is running", "wait for it or stop it")
                self._write(envelope.job, Failed(error.kind, error.what, error.remedy))
        else:
            raise WireError(f"{type(body).__name__} is no command", envelope.job)

    def _cancel(self, job: int | None) -> None:
        with self._state:
            # Of another job's number nothing is kept: it is over, or was never sent.
            if job is not None and job == self._running:
                self._cancelled.add(job)

    def _fail(self, number: int, kind: str, what: str, remedy: str) -> None:
        detail = traceback.format_exc()
        print(detail, file=sys.stderr, flush=True)  # noqa: T201  the log is this process's stderr
        self._say(number, Failed(kind, what, remedy, detail))

    def _say(self, job: int, event: Event) -> None:
        if isinstance(event, CLOSING):
            with self._state:
                # Before the news goes out, or whoever hears it and asks at once meets "busy".
                if self._running == job:
                    self._running = None
                self._cancelled.discard(job)
        self._write(job, event)

    def _write(self, job: int, event: Event) -> None:
        try:
            with self._writing:
                self._events.write(encode(job, event))
                self._events.flush()
        except BrokenPipeError:
            os._exit(0)


def _import_transformers() -> None:
    """Import what mlx-lm takes from transformers, which looks through its own files for a second.

    It uses no MLX, whose thread probes attention meanwhile, or waits for the app to paint.
    """
    with suppress(Exception):  # whoever needs it meets the fault and tells it
        from transformers import AutoTokenizer, PreTrainedTokenizerFast  # noqa: F401


def main() -> None:
    """Serve on this process's pipes; anything else that prints lands in the log, not the stream."""
    private = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(private, "wb") as events:
        Worker(sys.stdin.buffer, events).serve()
    # The reader thread still waits inside stdin; a tidy interpreter exit would abort on its lock.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
