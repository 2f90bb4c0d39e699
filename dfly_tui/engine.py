"""The engine's process: started, spoken to over pipes, read by a thread, killed in time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from dfly_core import records
from dfly_core.records.commands import Cancel, Close, Command
from dfly_core.records.events import Event
from dfly_core.records.wire import WireError, decode, encode

# Not by -m, which would let the files of the user's folder stand in for Python's modules and
# for the engine: nothing is imported from there, and the engine is the one this app came with.
# From 3.11 on Python keeps that folder out itself (3.13 imports modules before the first line).
_STARTED = (
    "import sys; sys.path[:] = [sys.argv[1], *filter(None, sys.path)]; import dfly_core; "
    "del sys.path[0]; from dfly_core.worker import main; main()"
)
WORKER = (
    sys.executable,
    *(("-P",) if sys.version_info >= (3, 11) else ()),
    "-c",
    _STARTED,
    str(Path(records.__file__).absolute().parents[2]),
)
_PATIENCE = 0.4  # seconds between asking the process to end and ending it


@dataclass(frozen=True)
class Gone:
    """The process has ended."""

    code: int

    @property
    def words(self) -> str:
        """How it ended, for a person."""
        if self.code >= 0:
            return f"exit code {self.code}"
        with contextlib.suppress(ValueError):
            return f"signal {-self.code}, {signal.Signals(-self.code).name}"
        return f"signal {-self.code}"


class _Child:
    """One process and the thread that reads it."""

    def __init__(self, argv: Sequence[str], log: Path) -> None:
        self.heard: deque[tuple[int, Event | Gone]] = deque()
        log.parent.mkdir(parents=True, exist_ok=True)
        # A log file of its own: inside Textual there is no stderr to inherit. A session of its
        # own: ctrl+c in line mode is the parent's business.
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                bufsize=-1,
            )
        self._log = log
        self._said: SimpleQueue[bytes | None] = SimpleQueue()
        for target in (self._read, self._write):
            threading.Thread(target=target, name=f"engine {target.__name__}", daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, b""):
            try:
                envelope = decode(line)
            except WireError as error:
                with contextlib.suppress(OSError), self._log.open("a") as log:
                    log.write(f"app: {error}\n")
                continue
            self.heard.append((envelope.job, envelope.body))  # type: ignore[arg-type]
        self.heard.append((0, Gone(self.process.wait())))

    def _write(self) -> None:
        # A thread of its own: a process that does not read must not hold the screen.
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            while (line := self._said.get()) is not None:
                self.process.stdin.write(line)
                self.process.stdin.flush()
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.close()

    def write(self, line: bytes) -> None:
        self._said.put(line)

    def end(self) -> None:
        self._said.put(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_PATIENCE)
        # The whole group, also when the child itself is gone: it may have had children.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Engine:
    """The engine's process as the app sees it; job numbers rise over restarts."""

    def __init__(self, log: Path, argv: Sequence[str] = WORKER) -> None:
        self.log = log
        self._argv = tuple(argv)
        self._child: _Child | None = None
        self._job = 0

    @property
    def pid(self) -> int | None:
        """The process id, if it was started."""
        return self._child.process.pid if self._child else None

    def start(self) -> None:
        """Start the process; raises OSError if there is none to start."""
        self.end()
        self._child = _Child(self._argv, self.log)

    def send(self, command: Command) -> int:
        """Send a command; returns the number its events will carry."""
        self._job += 1
        if self._child:
            self._child.write(encode(self._job, command))
        return self._job

    def cancel(self, job: int) -> None:
        """Ask a job to stop at its next safe moment."""
        self.send(Cancel(job))

    def heard(self, most: int = 2000) -> list[tuple[int, Event | Gone]]:
        """What the process said since the last call, with job numbers; at most that many."""
        queue = self._child.heard if self._child else deque[tuple[int, Event | Gone]]()
        return [queue.popleft() for _ in range(min(most, len(queue)))]

    def end(self) -> None:
        """End the process and whatever it started, within a second."""
        if self._child:
            self._child.write(encode(0, Close()))
            self._child.end()
            self._child = None
