"""Line mode, for screen readers and pipes: questions in, answers out, nothing drawn."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from dfly_core.records.commands import GenerateOptions, Load
from dfly_core.records.events import Event, Failed, Loaded, Progress
from dfly_core.records.visible import visible
from dfly_tui.desk import Desk
from dfly_tui.engine import Engine, Gone
from dfly_tui.state.conversation import Conversation, foot_words
from dfly_tui.state.models import pair_words
from dfly_tui.state.panel import PanelState
from dfly_tui.state.store import Store
from dfly_tui.talk import COPY, Talk

_WORDS = "/again answers again, /new begins another chat, /quit leaves; ctrl+c stops an answer"


class Plain:
    """The view and the loop. Answers go to stdout, everything else to stderr."""

    def __init__(
        self, engine: Engine, load: Load, options: GenerateOptions, chats: Path, chat: Conversation
    ) -> None:
        self.desk = Desk(engine)
        self.panel = PanelState()
        self.talk = Talk(self.desk, Store(chats), self.panel, self)
        self.talk.chat = chat
        self._load, self._options = load, options
        self._code = 0
        self._unread = False

    def resume(self, number: int) -> None:
        """Go on with a chat from disk; raises OSError if it cannot be read."""
        if self.talk.resume(number):
            self._note(f"dfly-tui: {COPY}")

    def run(self, prompt: str) -> int:
        """Load, then answer until there is nothing more to ask; returns the exit code."""
        self.desk.start()
        if not self.desk.ask("load", self._load, self):
            self.trouble(self.desk.fault or "the engine could not be started")
            return 1
        self._wait()
        if self._code:
            return self._code
        if prompt:
            self._answer(prompt)
        if not sys.stdin.isatty():
            text = "" if prompt else sys.stdin.read().rstrip("\n")
            return self._answer(text) if text.strip() else self._code
        self._note(_WORDS)
        while (line := self._line()) is not None:
            if line == "/quit":
                break
            self._command(line)
        return self._code

    def _command(self, line: str) -> None:
        if line == "/new":
            self.talk.open(Conversation())
            self._note("A new chat")
        elif line == "/again":
            if self.talk.again(self._options):
                self._wait()
        elif line.startswith("/") and line[1:].isalpha():
            self._note(_WORDS)
        elif line.strip():
            self._answer(line)

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
        if self.talk.ask(text, self._options):
            self._wait()
        return self._code

    def _wait(self) -> None:
        while self.desk.busy:
            try:
                if not self.desk.drain():
                    time.sleep(0.02)
            except KeyboardInterrupt:
                self.desk.cancel()
                self._code = 130
        if self.desk.gone:
            self.trouble(f"the engine ended ({self.desk.gone.words}); the chat is saved")

    # What the desk and the talk call.

    def hear(self, events: list[Event]) -> None:
        """The pair is loaded, or why not."""
        for event in events:
            if isinstance(event, Loaded):
                self.panel.pair, self.panel.verdict = event.pair, event.verdict
                self._note(pair_words(event.pair))
            elif isinstance(event, Failed):
                self.trouble(f"{event.what}: {event.remedy}" if event.remedy else event.what)

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
            self._note(foot_words(answer))

    def progressed(self, progress: Progress) -> None:
        """Prompts are read quietly."""

    def trouble(self, words: str) -> None:
        """One clear line."""
        self._code = 1
        self._note(f"dfly-tui: {words}")

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
                self.trouble(f"dfly-tui: stdout can't be written ({error.strerror})")

    def _note(self, words: str) -> None:
        sys.stderr.write(f"{visible(words)}\n")
        sys.stderr.flush()
