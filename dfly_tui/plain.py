"""Line mode, for screen readers and pipes: questions in, answers out, nothing drawn."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

from dfly_core.records.commands import GenerateOptions, Load
from dfly_core.records.events import Cancelled, Event, Failed, Loaded, Progress
from dfly_core.records.files import drained, why_unread
from dfly_core.records.visible import visible
from dfly_tui.desk import Desk
from dfly_tui.engine import Engine, Gone
from dfly_tui.line_commands import obey, tell_resumed
from dfly_tui.state.conversation import Conversation, foot_words
from dfly_tui.state.models import pair_words
from dfly_tui.state.panel import PanelState
from dfly_tui.state.progress import doing
from dfly_tui.state.store import Store
from dfly_tui.talk import Talk

_WELCOME = "/help lists the commands, /quit leaves; ctrl+c stops an answer"
_TELL_SECONDS = 10.0  # between two lines about a long load


class Plain:
    """The view and the loop. Answers go to stdout, everything else to stderr."""

    def __init__(
        self, engine: Engine, load: Load, options: GenerateOptions, data: Path, system: str
    ) -> None:
        self.panel = PanelState()
        self.desk = Desk(engine, self.panel.costed)
        self._piped = not sys.stdin.isatty()
        # A question from a pipe is no chat to come back to, unless it goes on with one.
        self.talk = Talk(self.desk, Store(data / "chats"), self.panel, self, not self._piped)
        self.talk.chat = Conversation(system=system)
        self.options, self.data, self.system = options, data, system
        self._load = load
        self._code = 0
        self._unread = False
        self._told_at = time.monotonic()

    def resume(self, number: int) -> None:
        """Go on with a chat from disk; raises OSError if it cannot be read."""
        tell_resumed(self, number)

    def run(self, prompt: str) -> int:
        """Load, then answer until there is nothing more to ask; returns the exit code."""
        if self._piped and not prompt:
            prompt, fault = _whole_input()
            if fault:
                self.note(f"dfly-tui: {fault}")
                return 2
        self.desk.start()
        if not self.desk.ask("load", self._load, self):
            self.trouble(self.desk.fault or "the engine could not be started")
            return 1
        self.wait()
        if self._code:
            return self._code
        if prompt:
            self._answer(prompt)
        if self._piped:
            return self._code
        self.note(_WELCOME)
        with suppress(EOFError):
            while (line := self._line()) is not None:
                if line.strip() and not obey(self, line):
                    self._answer(line)
        return self._code

    def _line(self) -> str | None:
        sys.stderr.write("> ")
        sys.stderr.flush()
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            return None
        return line.rstrip("\n") if line else None

    def _answer(self, text: str) -> int:
        self._code = int(self._unread)
        if self.talk.ask(text, self.options):
            self.wait()
        return self._code

    def wait(self) -> None:
        """Until what was asked for has ended; ctrl+c ends it sooner."""
        while self.desk.busy:
            try:
                if not self.desk.drain():
                    time.sleep(0.02)
            except KeyboardInterrupt:
                self.desk.cancel()
                self._code = 130
        if self.desk.gone:
            kept = "; the chat is saved" if self.talk.chat.number else ""
            self.trouble(f"the engine ended ({self.desk.gone.words}){kept}")

    # What the desk and the talk call.

    def hear(self, events: list[Event]) -> None:
        """The pair is loaded, or why not."""
        for event in events:
            if isinstance(event, Loaded):
                self.panel.pair, self.panel.verdict = event.pair, event.verdict
                self.note(pair_words(event.pair))
            elif isinstance(event, Failed):
                self.trouble(f"{event.what}: {event.remedy}" if event.remedy else event.what)
            elif isinstance(event, Cancelled):
                self.note("dfly-tui: interrupted")
            elif isinstance(event, Progress) and self._is_long():
                self.note(doing(event))

    def _is_long(self) -> bool:
        if time.monotonic() - self._told_at < _TELL_SECONDS:
            return False
        self._told_at = time.monotonic()
        return True

    def lost(self, gone: Gone) -> None:
        """The engine died; `_wait` says so."""

    def said(self) -> None:
        """A question was taken."""

    def replaced(self) -> None:
        """Another conversation."""

    def grew(self, text: str) -> None:
        """More of the answer."""
        self._print(visible(text) if sys.stdout.isatty() else text)

    def settled(self) -> None:
        """The answer ended."""
        self._print("\n")
        answer = self.talk.chat.last("assistant")
        if answer is not None:
            self.note(foot_words(answer))

    def progressed(self, progress: Progress) -> None:
        """Prompts are read quietly."""

    def trouble(self, words: str) -> None:
        """One clear line."""
        self._code = 1
        self.note(f"dfly-tui: {words}")

    def _print(self, text: str) -> None:
        if self._unread:
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            # The chat is kept all the same; nobody waits for the rest of the answer.
            self._unread, self._code = True, 1
            self.desk.cancel()
            if not isinstance(error, BrokenPipeError):
                self.trouble(f"stdout can't be written ({error.strerror})")

    def note(self, words: str) -> None:
        """A line that is no answer, to stderr."""
        sys.stderr.write(f"{visible(words)}\n")
        sys.stderr.flush()


def _whole_input() -> tuple[str, str]:
    """The one message that a pipe holds, or why there is none."""
    try:
        text = drained(sys.stdin.buffer.read).decode("utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        return "", f"stdin can't be read ({why_unread(error)}): give a pipe or a file of UTF-8 text"
    return text, "" if text.strip() else "stdin is empty: write a message to it, or use --prompt"
