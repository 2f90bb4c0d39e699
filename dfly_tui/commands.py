"""Everything the user can ask for by name: one table for slash words, palette and help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

When = Callable[["DflyApp"], bool]


@dataclass(frozen=True)
class Command:
    """A slash word, its title in the palette, what it does, the app's action, when it applies."""

    word: str
    title: str
    help: str
    action: str
    when: When


def _always(app: DflyApp) -> bool:
    return True


def _idle(app: DflyApp) -> bool:
    return not app.desk.busy


def _can_stop(app: DflyApp) -> bool:
    return app.talk.answering or app.loading.stoppable


def _has_turns(app: DflyApp) -> bool:
    return bool(app.talk.chat.turns) and not app.desk.busy


def _has_answer(app: DflyApp) -> bool:
    return app.talk.chat.last("assistant") is not None


def _can_continue(app: DflyApp) -> bool:
    answer = app.talk.chat.last("assistant")
    return _idle(app) and answer is not None and answer.end in ("stopped", "length")


def _has_steps(app: DflyApp) -> bool:
    return bool(app.panel.steps)


COMMANDS: tuple[Command, ...] = (
    Command("new", "New chat", "Begin another conversation", "new_chat", _idle),
    Command("chats", "Chats", "List, search and open conversations", "chats", _idle),
    Command("stop", "Stop", "Stop the answer and keep it, or stop loading", "stop", _can_stop),
    Command("again", "Answer again", "Answer the last message again", "again", _has_turns),
    Command("edit", "Edit last message", "Change your last message", "edit_last", _has_turns),
    Command("continue", "Continue", "Go on with a stopped answer", "continue", _can_continue),
    Command("copy", "Copy answer", "Copy the last answer", "copy_answer", _has_answer),
    Command("code", "Copy code", "Copy the last code block", "copy_code", _has_answer),
    Command("rename", "Rename chat", "Give this chat a title", "rename", _has_turns),
    Command("export", "Export chat", "Write this chat as Markdown", "export", _has_turns),
    Command("delete", "Delete chat", "Delete this chat for good", "delete", _has_turns),
    Command("system", "System prompt", "What the model is told first", "system", _idle),
    Command("steps", "Step replay", "Look at one step after another", "replay", _has_steps),
    Command("tokens", "Tokens by origin", "Who wrote each token", "tokens", _has_answer),
    Command("race", "A/B", "Both decoders on the same prompt", "race", _has_turns),
    Command("panel", "Live panel", "Show or hide the panel", "panel", _always),
    Command("model", "Models", "Choose target and drafter", "models", _always),
    Command("convert", "Convert", "Convert a drafter checkpoint", "convert", _always),
    Command("bench", "Benchmark", "Measure parity and speed", "bench", _always),
    Command("settings", "Settings", "Change what is kept between sessions", "settings", _always),
    Command("theme", "Theme", "Choose colours", "change_theme", _always),
    Command("help", "Help", "Keys and commands", "help", _always),
    Command("quit", "Quit", "Leave; the chat is saved", "quit", _always),
)


def applying(app: DflyApp) -> Iterable[Command]:
    """The commands that do something now."""
    return (command for command in COMMANDS if command.when(app))


def slash(text: str) -> tuple[str, str] | None:
    """The word and the rest of a slash command; None for an ordinary message."""
    first, _, rest = text.strip().partition(" ")
    word = first[1:]
    if text.startswith("/") and word.isalpha() and word.isascii() and "\n" not in text:
        return word.lower(), rest.strip()
    return None


def by_word(word: str) -> Command | None:
    """The command with that word."""
    return next((command for command in COMMANDS if command.word == word), None)


def completions(text: str) -> list[Command]:
    """The commands whose words begin with what was typed after the slash."""
    found = slash(text + "x") if text == "/" else slash(text)
    if found is None or " " in text:
        return []
    return [command for command in COMMANDS if command.word.startswith(text[1:].lower())]
