"""One chat with the engine: asks, grows the answer, keeps it on disk; knows no screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from dfly_core.records.commands import Generate, GenerateOptions
from dfly_core.records.events import Event, Failed, Generated, Progress, Stepped
from dfly_core.records.stats import Stats
from dfly_core.records.step import Step
from dfly_tui.desk import Desk
from dfly_tui.engine import Gone
from dfly_tui.state.conversation import Conversation, Run, Turn
from dfly_tui.state.panel import PanelState
from dfly_tui.state.store import Store

COPY = "this chat is open in another window: this is a copy"
_SAVE_EVERY = 1.0  # seconds: at most this much of an answer is lost in a crash


class View(Protocol):
    """Whoever shows the chat."""

    def said(self) -> None:
        """Turns were added at the end."""

    def replaced(self) -> None:
        """The conversation is another one, or lost turns."""

    def grew(self, text: str) -> None:
        """The answer grew."""

    def settled(self) -> None:
        """The answer ended."""

    def progressed(self, progress: Progress) -> None:
        """The prompt is being read."""

    def trouble(self, words: str) -> None:
        """Something the user has to know."""


class Talk:
    """The conversation that is open."""

    def __init__(
        self, desk: Desk, store: Store, panel: PanelState, view: View, keeps: bool = True
    ) -> None:
        """Without `keeps` a new chat is never written; one from disk is, as ever."""
        self.desk, self.store, self.panel, self.view = desk, store, panel, view
        self._keeps = keeps
        self.chat = Conversation()
        self.answer: Turn | None = None
        self._unsaved: list[Run] = []
        self._saved_at = 0.0
        self._stored = True  # whether all of the chat that can be is on disk

    @property
    def answering(self) -> bool:
        """Whether an answer grows now."""
        return self.answer is not None

    def open(self, chat: Conversation) -> None:
        """Show another conversation."""
        if not chat.number:
            self.store.release()
        self.chat, self._stored = chat, True
        self.panel.clear()
        self.view.replaced()

    def resume(self, number: int) -> bool:
        """Show a chat from disk, or a copy of it if another window has it; whether it is a copy.

        Raises OSError if it cannot be read.
        """
        mine = self.store.hold(number)
        chat = self.store.load(number)
        if not mine:
            chat.number, chat.title = 0, f"{chat.shown_title} (copy)"
        self.open(chat)
        if not mine:
            self.write(lambda: self.store.create(chat))
        return not mine

    def ask(self, text: str, options: GenerateOptions) -> bool:
        """Say `text` and have it answered; False when the engine is not free."""
        if self.desk.busy or self.desk.gone:
            return False
        question = Turn(self.chat.next_number, "user", text, "stop")
        self.chat.turns.append(question)
        if self.chat.number:
            self.keep(lambda: self.store.say(self.chat, question))
        elif self._keeps:
            self.write(lambda: self.store.create(self.chat))
        return self._answer(options)

    def again(self, options: GenerateOptions, text: str | None = None) -> bool:
        """Answer the last question again, or an edited one in its place."""
        question = self.chat.last("user")
        if question is None or self.desk.busy or self.desk.gone:
            return False
        return self.edit(question.number, question.text if text is None else text, options)

    def edit(self, number: int, text: str, options: GenerateOptions) -> bool:
        """Replace question `number`; what came after it is dropped."""
        if self.desk.busy or self.desk.gone:
            return False
        self.chat.turns = [turn for turn in self.chat.turns if turn.number < number]
        self.keep(lambda: self.store.drop(self.chat, number))
        self.view.replaced()
        return self.ask(text, options)

    def go_on(self, options: GenerateOptions) -> bool:
        """Go on with the last answer if it was cut; the engine is given what there is of it."""
        answer = self.chat.turns[-1] if self.chat.turns else None
        if answer is None or answer.who != "assistant" or answer.end not in ("stopped", "length"):
            return False
        begun = bool(answer.text)  # else the question is asked anew: it has not been answered
        messages = self.chat.messages() if begun else self.chat.messages(upto=answer.number)
        if not self.desk.ask("answer", Generate(messages, options), self):
            return False
        answer.end, answer.note, answer.figures = None, "", {}
        self._begin(answer, options, went_on=begun)
        self.view.replaced()
        return True

    def set_system(self, text: str) -> None:
        """What the model is told first, from the next answer on."""
        self.chat.system = text
        self.keep(lambda: self.store.add(self.chat, {"did": "system", "system": text}))

    def _begin(self, answer: Turn, options: GenerateOptions, went_on: bool = False) -> None:
        self.answer = answer
        self._unsaved = []
        self._saved_at = time.monotonic()
        self.panel.begin(options.temperature > 0, went_on, options.width is not None)

    def _answer(self, options: GenerateOptions) -> bool:
        messages = self.chat.messages()
        answer = Turn(self.chat.next_number, "assistant")
        if not self.desk.ask("answer", Generate(messages, options), self):
            return False
        self.chat.turns.append(answer)
        self._begin(answer, options)
        self.keep(lambda: self.store.say(self.chat, answer))
        self.view.said()
        return True

    def stop(self) -> None:
        """Stop the answer at the engine's next safe moment; what there is stays."""
        if self.answer is not None:
            self.desk.cancel()

    def hear(self, events: list[Event]) -> None:
        """Fold a batch of events into the answer: one repaint for many steps."""
        steps = [event.step for event in events if isinstance(event, Stepped)]
        if steps:
            self._grow(steps)
        for event in events:
            if isinstance(event, Progress) and not steps:  # else the prompt has been read
                self.view.progressed(event)
            elif isinstance(event, Generated):
                self.panel.end(event)
                self._end("stopped" if event.finish == "cancelled" else event.finish, event.stats)
            elif isinstance(event, Failed):
                self._end("failed", self.panel.stats, _words(event))
                self.view.trouble(_words(event))

    def lost(self, gone: Gone) -> None:
        """The engine died: what there is of the answer stays."""
        self._end("stopped", self.panel.stats, f"the engine ended: {gone.words}")

    def close(self) -> None:
        """Keep what there is; the app ends."""
        if self.answer is not None:
            self._end("stopped", self.panel.stats)
        self.store.release()

    def _grow(self, steps: list[Step]) -> None:
        answer, before = self.answer, len(self.answer.text) if self.answer else 0
        if answer is None:
            return
        for step in steps:
            self.panel.add(step)
            for slot, text in enumerate(step.texts):
                draft = step.origin(slot) == "draft"
                answer.grow(text, draft)
                self._unsaved.append(Run(text, draft))
        self.view.grew(answer.text[before:])
        if time.monotonic() - self._saved_at > _SAVE_EVERY:
            self._save_growth()

    def _save_growth(self) -> None:
        runs, self._unsaved = self._unsaved, []
        self._saved_at = time.monotonic()
        answer = self.answer
        if runs and answer is not None:
            self.keep(lambda: self.store.grow(self.chat, answer, _merged(runs)))

    def _end(self, end: str, stats: Stats, note: str = "") -> None:
        answer = self.answer
        if answer is None:
            return
        self._save_growth()
        note = note or ("since it went on" if self.panel.went_on else "")
        answer.end, answer.note = end, note  # type: ignore[assignment]
        answer.figures = figures(stats)
        self.keep(lambda: self.store.end(self.chat, answer))
        self.answer = None
        self.view.settled()

    def keep(self, write: Callable[[], None]) -> None:
        """Write to the store if the chat is in it; all of it, if something is missing there."""
        if self.chat.number:
            self.write(write if self._stored else lambda: self.store.rewrite(self.chat))

    def write(self, write: Callable[[], None]) -> None:
        """Write, or say once that it could not be done."""
        try:
            write()
            self._stored = True
        except OSError as error:
            warned, self._stored = not self._stored, False
            if not warned:
                reason = error.strerror or str(error)
                self.view.trouble(
                    f"This chat is not being saved ({reason}): free some space, or export it"
                )


def figures(stats: Stats) -> dict[str, float]:
    """The figures kept with an answer; what cannot be told is left out."""
    rate = stats.acceptance_rate
    found = {
        "mean": stats.mean_accepted_length,
        "rate": None if rate is None else rate * 100,
        "tps": stats.tokens_per_second,
        "tokens": float(stats.emitted),
    }
    return {name: value for name, value in found.items() if value is not None}


def _merged(runs: list[Run]) -> list[Run]:
    merged: list[Run] = []
    for run in runs:
        if merged and merged[-1].draft == run.draft:
            merged[-1].text += run.text
        else:
            merged.append(Run(run.text, run.draft))
    return merged


def _words(failed: Failed) -> str:
    return f"{failed.what}: {failed.remedy}" if failed.remedy else failed.what
