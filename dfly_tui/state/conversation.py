"""A conversation: its turns as they were written, and what the engine is told of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dfly_core.records.commands import Message

Who = Literal["user", "assistant"]
End = Literal["stop", "length", "context", "stopped", "failed"]


@dataclass
class Run:
    """A run of text that one origin wrote: `draft` accepted from the drafter, else the target's."""

    text: str
    draft: bool


@dataclass
class Turn:
    """One turn. `text` is the original, never the sanitised form; `end` is None while it grows."""

    number: int
    who: Who
    text: str = ""
    end: End | None = None
    note: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    def grow(self, text: str, draft: bool) -> None:
        """Add text with its origin."""
        self.text += text
        if self.runs and self.runs[-1].draft == draft:
            self.runs[-1].text += text
        elif text:
            self.runs.append(Run(text, draft))


@dataclass
class Conversation:
    """Turns in order, an optional system prompt, a title."""

    number: int = 0
    title: str = ""
    system: str = ""
    created: str = ""
    turns: list[Turn] = field(default_factory=list)

    @property
    def shown_title(self) -> str:
        """The title, or one made from the first question."""
        if self.title:
            return self.title
        first = next((turn.text for turn in self.turns if turn.who == "user"), "")
        words = " ".join(first.split())
        return (words[:47] + "…" if len(words) > 48 else words) or "New chat"

    @property
    def next_number(self) -> int:
        """The number of the turn to come."""
        return self.turns[-1].number + 1 if self.turns else 1

    def messages(self, upto: int | None = None) -> tuple[Message, ...]:
        """What the engine is told: the turns numbered below `upto`.

        A question that never got a word of answer is left out with its answer, unless it is
        the last thing said.
        """
        said = [Message("system", self.system)] if self.system.strip() else []
        turns = [turn for turn in self.turns if upto is None or turn.number < upto]
        for turn, after in zip(turns, [*turns[1:], None], strict=True):
            unanswered = after is not None and after.who == "assistant" and not after.text
            if turn.text and not (turn.who == "user" and unanswered):
                said.append(Message(turn.who, turn.text))
        return tuple(said)

    def last(self, who: Who) -> Turn | None:
        """The newest turn by `who`."""
        return next((turn for turn in reversed(self.turns) if turn.who == who), None)


def as_markdown(chat: Conversation) -> str:
    """The whole conversation as one Markdown document."""
    parts = [f"# {chat.shown_title}"]
    if chat.system:
        parts.append("## System\n\n" + chat.system)
    names = {"user": "You", "assistant": "Answer"}
    for turn in chat.turns:
        mark = " (stopped)" if turn.end in ("stopped", "failed") else ""
        parts.append(f"## {names[turn.who]}{mark}\n\n{turn.text}")
    return "\n\n".join(parts) + "\n"


def foot_words(turn: Turn) -> str:
    """The line under an answer: how it ended, if not by itself, and its figures."""
    ends = {
        "stopped": "stopped",
        "length": "ended at the longest answer allowed",
        "context": "ended at the context limit",
        "failed": "not answered",
    }
    parts = [ends[turn.end]] if turn.end in ends else []
    if turn.note:
        parts.append(turn.note)
    figures = turn.figures
    if "mean" in figures:
        parts.append(f"{figures['mean']:.2f} mean accepted length")
    if "rate" in figures:
        parts.append(f"{figures['rate']:.0f}% accepted")
    if "tps" in figures:
        parts.append(f"{figures['tps']:.0f} tok/s")
    return " · ".join(parts)


def code_blocks(text: str) -> list[str]:
    """The bodies of fenced code blocks, the last one even if it was never closed."""
    blocks: list[str] = []
    fence, body = "", list[str]()
    for line in text.split("\n"):
        bare = line.strip()
        if not fence and bare[:3] in ("```", "~~~"):
            fence, body = bare[: len(bare) - len(bare.lstrip(bare[0]))], []
        elif fence and bare.startswith(fence) and not bare.strip(fence[0]):
            blocks.append("\n".join(body))
            fence = ""
        elif fence:
            body.append(line)
    if fence and body:
        blocks.append("\n".join(body))
    return blocks
