"""Prompts that the embedded pair does well, offered on the empty chat."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dfly_tui.state.models import embedded


@dataclass(frozen=True)
class Example:
    """A prompt and the few words that stand for it."""

    title: str
    prompt: str


FALLBACK = (
    Example("A short function", "Write a Python function that reverses a string."),
    Example("Arithmetic", "What is 17 plus 25?"),
    Example("A little story", "Tell me a short story about a fox and a lantern."),
    Example("A fact", "What is the capital of France?"),
)


def examples() -> tuple[Example, ...]:
    """The prompts beside the embedded pair, or a few of our own; found without importing it."""
    for folder in embedded():
        path = folder / "examples.json"
        try:
            plain = json.loads(path.read_text("utf-8"))
            found = tuple(Example(str(e["title"]), str(e["prompt"])) for e in plain)
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if found:
            return found[:6]
    return FALLBACK
