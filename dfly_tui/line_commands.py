"""The slash commands of line mode: what makes sense without a screen, named as in the app."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dfly_core.records.commands import GenerateOptions
from dfly_core.records.stats import summary_words
from dfly_core.records.visible import one_line
from dfly_tui.commands import slash
from dfly_tui.state.conversation import Conversation, as_markdown, foot_words
from dfly_tui.state.export import export, free_name
from dfly_tui.state.models import pair_words
from dfly_tui.state.progress import ago, plural
from dfly_tui.talk import COPY, Talk

LISTED = 20  # chats: more than that is long to listen to


class Lines(Protocol):
    """Who reads lines: the open chat, and a way to say something that is no answer."""

    talk: Talk
    options: GenerateOptions
    data: Path
    system: str

    def note(self, words: str) -> None:
        """Say a line."""

    def wait(self) -> None:
        """Until the answer that was asked for has ended."""


@dataclass(frozen=True)
class LineCommand:
    """A slash word, what may follow it, what it does."""

    word: str
    takes: str
    help: str
    run: Callable[[Lines, str], None]


def obey(lines: Lines, text: str) -> bool:
    """Do what a slash command says; False for an ordinary message."""
    found = slash(text)
    if found is None:
        return False
    word, rest = found
    command = next((command for command in COMMANDS if command.word == word), None)
    if command is None:
        lines.note(f"There is no /{word}: {WORDS}")
    elif rest and not command.takes:
        lines.note(f"/{word} takes nothing after it")
    else:
        command.run(lines, rest)
    return True


def _help(lines: Lines, rest: str) -> None:
    for command in COMMANDS:
        lines.note(f"/{command.word} {command.takes}".rstrip() + f": {command.help}")
    lines.note("A space before a slash makes it a message. ctrl+c stops an answer.")


def _new(lines: Lines, rest: str) -> None:
    lines.talk.open(Conversation(system=lines.system))
    lines.note("A new chat")


def _chats(lines: Lines, rest: str) -> None:
    found = lines.talk.store.summaries()
    for chat in found[:LISTED]:
        mark = ", open here" if chat.number == lines.talk.chat.number else ""
        when = ago(time.time() - chat.changed)
        count = plural(chat.turns, "message")
        lines.note(f"{chat.number}: {one_line(chat.title, 60)} ({count}, {when}{mark})")
    if not found:
        lines.note("There is no chat yet")
    elif len(found) > LISTED:
        lines.note(f"and {len(found) - LISTED} older ones")


def _resume(lines: Lines, rest: str) -> None:
    store = lines.talk.store
    number = int(rest) if rest.isdecimal() else None if rest else store.latest()
    if number is None or number not in store.numbers():
        none = f"There is no chat {one_line(rest, 40)}: /chats lists them"
        lines.note(none if rest else "There is no chat yet")
        return
    try:
        tell_resumed(lines, number)
    except OSError as error:
        lines.note(f"Chat {number} cannot be opened: {error.strerror or error}")


def tell_resumed(lines: Lines, number: int) -> None:
    """Open a chat from disk and say which it is; raises OSError if it cannot be read."""
    if lines.talk.resume(number):
        lines.note(f"dfly-tui: {COPY}")
    chat = lines.talk.chat
    count = plural(len(chat.turns), "message")
    lines.note(f"Chat {chat.number}: {chat.shown_title} ({count})")


def _again(lines: Lines, rest: str) -> None:
    if lines.talk.again(lines.options):
        lines.wait()
    else:
        lines.note("Nothing was asked yet")


def _continue(lines: Lines, rest: str) -> None:
    if lines.talk.go_on(lines.options):
        lines.wait()
    else:
        lines.note("There is no stopped answer to go on with")


def _system(lines: Lines, rest: str) -> None:
    if rest:
        lines.talk.set_system("" if rest == "-" else rest)
        lines.note("No system prompt" if rest == "-" else "System prompt set")
        return
    lines.note(lines.talk.chat.system or "No system prompt")


def _export(lines: Lines, rest: str) -> None:
    chat, own = lines.talk.chat, lines.data / "exports"
    if not chat.turns:
        lines.note("There is nothing to export yet")
        return
    name = rest or str(free_name(own / f"chat-{chat.number}.md"))
    fault = export(as_markdown(chat), name, own)
    lines.note(fault or f"Exported to {Path(name).expanduser()}")


def _model(lines: Lines, rest: str) -> None:
    pair = lines.talk.panel.pair
    lines.note(f"{pair_words(pair) if pair else 'none'}; --model and --draft choose another")


def _stats(lines: Lines, rest: str) -> None:
    answer, stats = lines.talk.chat.last("assistant"), lines.talk.panel.stats
    if answer is None:
        lines.note("There is no answer yet")
    elif stats.emitted:
        lines.note(summary_words(stats, answer.end or "stopped"))
    else:
        lines.note(foot_words(answer) or "Nothing is known of that answer")


def _quit(lines: Lines, rest: str) -> None:
    raise EOFError


COMMANDS: tuple[LineCommand, ...] = (
    LineCommand("help", "", "these lines", _help),
    LineCommand("new", "", "begin another chat", _new),
    LineCommand("chats", "", "list the chats, newest first", _chats),
    LineCommand("resume", "[N]", "go on with the last chat, or number N", _resume),
    LineCommand("again", "", "answer the last message again", _again),
    LineCommand("continue", "", "go on with a stopped answer", _continue),
    LineCommand("system", "[TEXT]", "say or set what the model is told first; - for none", _system),
    LineCommand("export", "[FILE]", "write this chat as Markdown", _export),
    LineCommand("model", "", "say which models answer", _model),
    LineCommand("stats", "", "the figures of the last answer", _stats),
    LineCommand("quit", "", "leave; the chat is saved", _quit),
)
WORDS = "there are " + " ".join(f"/{command.word}" for command in COMMANDS)
