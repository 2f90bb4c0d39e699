"""Everything the user can ask for by name: one table for slash words, palette and help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

WhyNot = Callable[["DflyApp"], str]

QUIET = (
    ("ctrl+n", "new_chat", "New chat"),
    ("ctrl+r", "again", "Answer again, or start the engine again"),
    ("ctrl+t", "edit_last", "Edit your last message"),
    ("ctrl+l", "continue", "Go on with a stopped answer"),
    ("ctrl+g", "copy_answer", "Copy the answer"),
    ("ctrl+b", "copy_code", "Copy the last code block"),
    ("f2", "panel", "Show or hide the live panel"),
    ("f3", "replay", "Step replay"),
    ("f4", "tokens", "Tokens by origin"),
    ("f5", "race", "A/B: both decoders on the last prompt"),
    ("f6", "models", "Choose target and drafter"),
    ("f7", "convert", "Convert a drafter checkpoint"),
    ("f8", "bench", "Benchmark"),
    ("f9", "settings", "Settings"),
)  # keys that the footer has no room for; F1 lists them


@dataclass(frozen=True)
class Command:
    """A slash word, its title in the palette, what it does, the app's action.

    `why_not` says in a line why it can't be done now, nothing where it can; `takes` is what may
    follow the word, nothing where nothing may.
    """

    word: str
    title: str
    help: str
    action: str
    why_not: WhyNot
    takes: str = ""

    @property
    def usage(self) -> str:
        """The word with what may follow it."""
        return f"/{self.word} [{self.takes}]" if self.takes else f"/{self.word}"


def _never(app: DflyApp) -> str:
    return ""


def _busy(app: DflyApp) -> str:
    return app.desk.busy_words if app.desk.busy else ""


def _cannot_stop(app: DflyApp) -> str:
    return "" if app.talk.answering or app.loading.stoppable else "Nothing runs that can be stopped"


def _nothing_new(app: DflyApp) -> str:
    chat = app.talk.chat
    begun = chat.turns or chat.number or chat.system != app.settings.system
    return _busy(app) or ("" if begun else "This chat is still empty: type your message")


def _no_turns(app: DflyApp) -> str:
    empty = "" if app.talk.chat.turns else "Nothing was said in this chat yet"
    return _busy(app) or empty


def _no_engine(app: DflyApp) -> str:
    if app.desk.gone:
        return "The engine ended: ctrl+r starts it again"
    return "" if app.panel.pair else "No pair is loaded: F6 chooses one, ctrl+r tries again"


def _cannot_repeat(app: DflyApp) -> str:
    # Where there is no engine or no pair, the same key brings them back.
    return _busy(app) or ("" if _no_engine(app) else _no_turns(app))


def _no_answer(app: DflyApp) -> str:
    return "" if app.talk.chat.last("assistant") else "There is no answer in this chat yet"


def _cannot_continue(app: DflyApp) -> str:
    if why := _busy(app) or _no_turns(app) or _no_engine(app):
        return why
    last = app.talk.chat.turns[-1]
    if last.who == "assistant" and last.end in ("stopped", "length"):
        return ""
    return "The last answer is whole: only one that Esc stopped or that was too long can go on"


def _no_steps(app: DflyApp) -> str:
    return "" if app.panel.steps else "There are no steps yet: they come with the next answer"


def _no_origins(app: DflyApp) -> str:
    answer = app.talk.chat.last("assistant")
    return "" if answer and answer.runs else "There is no answer whose tokens are known"


def _cannot_race(app: DflyApp) -> str:
    if app.talk.chat.last("user") is None:
        return "Ask something first: A/B repeats your last message"
    if why := _no_engine(app):
        return why if app.desk.busy != "load" else app.desk.busy_words
    if app.panel.pair and app.panel.pair.draft is None:
        return "No drafter is loaded: there is nothing to compare. F6 chooses one"
    # While an answer grows, A/B waits for its end.
    return "" if app.desk.busy == "answer" else _busy(app)


COMMANDS: tuple[Command, ...] = (
    Command("new", "New chat", "Begin another conversation", "new_chat", _nothing_new),
    Command("chats", "Chats", "List, search and open conversations", "chats", _busy),
    Command("stop", "Stop", "Stop the answer and keep it, or stop loading", "stop", _cannot_stop),
    Command("again", "Answer again", "Answer the last message again", "again", _cannot_repeat),
    Command("edit", "Edit last message", "Change your last message", "edit_last", _no_turns),
    Command("continue", "Continue", "Go on with a stopped answer", "continue", _cannot_continue),
    Command("copy", "Copy answer", "Copy the last answer", "copy_answer", _no_answer),
    Command("code", "Copy code", "Copy the last code block", "copy_code", _no_answer),
    Command("rename", "Rename chat", "Give this chat a title", "rename", _no_turns, "title"),
    Command("export", "Export chat", "Write this chat as Markdown", "export", _no_turns, "file"),
    Command("delete", "Delete chat", "Delete this chat for good", "delete", _no_turns),
    Command("system", "System prompt", "What the model is told first", "system", _busy, "text"),
    Command("steps", "Step replay", "Look at one step after another", "replay", _no_steps),
    Command("tokens", "Tokens by origin", "Who wrote each token", "tokens", _no_origins),
    Command("race", "A/B", "Both decoders on the same prompt", "race", _cannot_race),
    Command("panel", "Live panel", "Show or hide the panel", "panel", _never),
    Command("model", "Models", "Choose target and drafter", "models", _never),
    Command("convert", "Convert", "Convert a drafter checkpoint", "convert", _never),
    Command("bench", "Benchmark", "Measure parity and speed", "bench", _never),
    Command("settings", "Settings", "Change what is kept between sessions", "settings", _never),
    Command("theme", "Theme", "Choose colours", "theme", _never, "name"),
    Command("help", "Help", "Keys and commands", "help", _never),
    Command("quit", "Quit", "Leave; the chat is saved", "quit", _never),
)


def applying(app: DflyApp) -> Iterable[Command]:
    """The commands that do something now."""
    return (command for command in COMMANDS if not command.why_not(app))


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


def by_action(action: str) -> Command | None:
    """The command with that action."""
    return next((command for command in COMMANDS if command.action == action), None)


def completions(text: str) -> list[Command]:
    """The commands whose words begin with what was typed after the slash."""
    found = slash(text + "x") if text == "/" else slash(text)
    if found is None or " " in text:
        return []
    return [command for command in COMMANDS if command.word.startswith(text[1:].lower())]


def completed(text: str) -> str:
    """What was typed after the slash, as far as only one way leads on."""
    fitting = completions(text)
    if not fitting:
        return text
    words = [command.word for command in fitting]
    tail = " " if len(words) == 1 and fitting[0].takes else ""
    shared = takewhile(lambda letters: len(set(letters)) == 1, zip(*words, strict=False))
    return "/" + "".join(letters[0] for letters in shared) + tail


def candidates(text: str, app: DflyApp) -> str:
    """The line about what was typed after a slash: what it may become, or what it is."""
    found = slash(text)
    typed = by_word(found[0]) if found and " " in text else None
    fitting = [typed] if typed else completions(text)
    if len(fitting) == 1:
        (one,) = fitting
        return f"{one.usage}: {one.why_not(app) or one.help}"
    if not fitting and " " not in text and "/" not in text[1:]:
        return "No command begins like this: /help lists them"
    return " · ".join(f"/{command.word}" for command in fitting if not command.why_not(app))
