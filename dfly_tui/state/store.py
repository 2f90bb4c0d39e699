"""Conversations on disk: one append-only file of JSON lines each, whole after any crash.

A line says what happened: a chat began, a turn was said, an answer grew or ended, turns were
dropped, a title changed. Reading replays the lines. A crash can cut the last line only, and a
cut line is left out; an answer without an end was stopped.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dfly_tui.state.conversation import Conversation, Run, Turn
from dfly_tui.state.lock import Lock, lock

TAKEN = "it is open in another window"


@dataclass(frozen=True)
class Summary:
    """One line of the list of chats."""

    number: int
    title: str
    changed: float
    turns: int
    text: str


class Store:
    """The folder of chats. Every method that writes may raise OSError: the caller says so.

    One chat at a time is held: no other window writes to it meanwhile.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: tuple[int, Lock] | None = None

    def path(self, number: int) -> Path:
        """The file of one chat; names come from a counter, never from text."""
        return self.folder / f"{number:06d}.jsonl"

    def create(self, chat: Conversation) -> None:
        """Give the chat a number and a file, and write all it has."""
        self.folder.mkdir(parents=True, exist_ok=True)
        number = max(self.numbers(), default=0)
        while True:
            number += 1
            # Two windows may begin a chat at once: the file itself is the lock.
            with contextlib.suppress(FileExistsError):
                self.path(number).touch(exist_ok=False, mode=0o600)
                if self.hold(number):
                    break
        chat.number = number
        chat.created = datetime.now(timezone.utc).isoformat(timespec="seconds")
        for record in _whole(chat):
            self.add(chat, record)

    def rewrite(self, chat: Conversation) -> None:
        """Put the whole chat in the place of its file, which lacks what could not be written."""
        beside = self.path(chat.number).with_suffix(".new")
        try:
            beside.write_bytes(b"".join(map(_line, _whole(chat))))
            # The new file is held before it is there to be opened.
            held = lock(beside)
            beside.replace(self.path(chat.number))
            if held is not None:
                self._keep(chat.number, held)
        finally:
            beside.unlink(missing_ok=True)

    def hold(self, number: int) -> bool:
        """Hold that chat in place of the one held; False if another window has it."""
        if self._held is not None and self._held[0] == number:
            return True
        held = lock(self.path(number))
        if held is not None:
            self._keep(number, held)
        return held is not None

    def taken(self, number: int) -> bool:
        """Whether another window has that chat."""
        if self._held is not None and self._held[0] == number:
            return False
        try:
            held = lock(self.path(number))
        except OSError:
            return False
        if held is not None:
            held.release()
        return held is None

    def release(self) -> None:
        """Hold no chat."""
        if self._held is not None:
            self._held[1].release()
        self._held = None

    def _keep(self, number: int, held: Lock) -> None:
        self.release()
        self._held = (number, held)

    def add(self, chat: Conversation, record: dict[str, Any]) -> None:
        """Append one record; a file cut by a crash first gets its line ended."""
        line = _line(record)
        with self.path(chat.number).open("ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = b"\n" + line
            file.write(line)

    def say(self, chat: Conversation, turn: Turn) -> None:
        """Write a turn as it stands."""
        self.add(chat, _turn(turn))

    def grow(self, chat: Conversation, turn: Turn, runs: list[Run]) -> None:
        """Write what an answer gained since the last time."""
        self.add(chat, {"did": "grow", "n": turn.number, "runs": _pack(runs)})

    def end(self, chat: Conversation, turn: Turn) -> None:
        """Write how an answer ended."""
        self.add(chat, {"did": "end", "n": turn.number, **_ending(turn), "end": turn.end})

    def drop(self, chat: Conversation, first: int) -> None:
        """Write that the turns from number `first` on are gone."""
        self.add(chat, {"did": "drop", "n": first})

    def numbers(self) -> list[int]:
        """The numbers of the chats on disk."""
        if not self.folder.is_dir():
            return []
        return sorted(int(p.stem) for p in self.folder.glob("*.jsonl") if p.stem.isdigit())

    def load(self, number: int) -> Conversation:
        """The chat with that number."""
        chat = Conversation(number=number)
        for record in _records(self.path(number)):
            with contextlib.suppress(KeyError, TypeError, ValueError):
                _replay(chat, record)
        for turn in chat.turns:
            turn.end = turn.end or "stopped"
        return chat

    def delete(self, number: int) -> None:
        """Remove a chat for good; raises OSError if another window has it."""
        if self.taken(number):
            raise BlockingIOError(errno.EWOULDBLOCK, TAKEN)
        self.path(number).unlink(missing_ok=True)
        if self._held is not None and self._held[0] == number:
            self.release()

    def latest(self) -> int | None:
        """The chat that was written to last."""
        return max(self.numbers(), key=lambda n: self.path(n).stat().st_mtime, default=None)

    def summaries(self) -> list[Summary]:
        """All chats that can be read, newest first."""
        found = []
        for number in self.numbers():
            with contextlib.suppress(OSError):
                chat = self.load(number)
                text = "\n".join([chat.shown_title, *(turn.text for turn in chat.turns)])
                changed = self.path(number).stat().st_mtime
                found.append(Summary(number, chat.shown_title, changed, len(chat.turns), text))
        return sorted(found, key=lambda summary: -summary.changed)


def matches(summary: Summary, words: str) -> bool:
    """Whether title and text hold all the words."""
    text = summary.text.casefold()
    return all(word in text for word in words.casefold().split())


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().split(b"\n"):
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


def _replay(chat: Conversation, record: dict[str, Any]) -> None:
    did = record["did"]
    if did == "begin":
        chat.created, chat.system = str(record["created"]), str(record.get("system", ""))
    elif did == "title":
        chat.title = str(record["title"])
    elif did == "system":
        chat.system = str(record["system"])
    elif did == "drop":
        chat.turns = [turn for turn in chat.turns if turn.number < int(record["n"])]
    elif did == "turn":
        turn = Turn(int(record["n"]), record["who"], str(record["text"]), record["end"])
        _finish(turn, record)
        chat.turns.append(turn)
    else:
        number = int(record["n"])
        turn = next((turn for turn in chat.turns if turn.number == number), Turn(number, "user"))
        if did == "grow":
            for text, draft in record["runs"]:
                turn.grow(str(text), bool(draft))
        elif did == "end":
            turn.end = record["end"]
            _finish(turn, record)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=True).encode("ascii") + b"\n"


def _whole(chat: Conversation) -> Iterator[dict[str, Any]]:
    """The records that make the chat as it stands."""
    yield {"did": "begin", "created": chat.created, "system": chat.system}
    if chat.title:
        yield {"did": "title", "title": chat.title}
    for turn in chat.turns:
        if turn.runs:
            # The runs are the text, and say who wrote it.
            yield _turn(turn) | {"text": ""}
            yield {"did": "grow", "n": turn.number, "runs": _pack(turn.runs)}
        else:
            yield _turn(turn)


def _turn(turn: Turn) -> dict[str, Any]:
    record: dict[str, Any] = {"did": "turn", "n": turn.number, "who": turn.who}
    record |= {"text": turn.text, "end": turn.end}
    return record | _ending(turn) if turn.end is not None else record


def _ending(turn: Turn) -> dict[str, Any]:
    return {"note": turn.note, "figures": turn.figures} if turn.who == "assistant" else {}


def _finish(turn: Turn, record: dict[str, Any]) -> None:
    turn.note = str(record.get("note", ""))
    turn.figures = {str(k): float(v) for k, v in record.get("figures", {}).items()}


def _pack(runs: list[Run]) -> list[tuple[str, bool]]:
    return [(run.text, run.draft) for run in runs]
