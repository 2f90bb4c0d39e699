"""Prompt files: a prompt a line, as plain text (.txt) or as JSON with more about it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfly_core.records.commands import Message
from dfly_core.records.errors import Missing, Refused
from dfly_core.records.files import contents, why_unread
from dfly_core.records.report import NO_CATEGORY

OWN = Path(__file__).with_name("prompts.jsonl")
FIELDS = ("id", "prompt", "category", "system")
REMEDY = (
    'each line is a JSON object like {"prompt": "Hello", "id": "a", "category": "chat"}; '
    "a file whose name ends in .txt holds a prompt a line as it is"
)


@dataclass(frozen=True)
class Prompt:
    """One question of a benchmark."""

    id: str
    prompt: str
    category: str = NO_CATEGORY
    system: str | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation it stands for."""
        system = (Message("system", self.system),) if self.system else ()
        return (*system, Message("user", self.prompt))


def read_prompts(path: Path | None = None) -> list[Prompt]:
    """The prompts of a file, ours by default; `~` is the home folder, as no shell reads a field.

    Raises Missing, or Refused naming the line: not JSON, not an object, a missing prompt, an empty,
    foreign or ill-typed field, an id used twice, or nothing at all.
    """
    path = path or OWN
    try:
        text = contents(path.expanduser()).decode("utf-8-sig")
    except (FileNotFoundError, RuntimeError):  # or `~` of no such user
        raise Missing(
            f"no prompt file {path}", "name a .txt file, a prompt a line, or a file of JSON lines"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            f"{path} can't be read ({why_unread(error)})", "name a UTF-8 file, a prompt a line"
        ) from error
    found: list[Prompt] = []
    seen: dict[str, int] = {}
    # Not splitlines: U+2028 may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        name = f"line-{number}"  # of a prompt that has none
        if path.suffix.lower() == ".txt":
            prompt = Prompt(name, line.strip())
        else:
            prompt = _prompt(line, f"{path.name}, line {number}", name)
        if prompt.id in seen:
            raise Refused(
                f"{path.name}, line {number}: id {prompt.id!r} was used in line {seen[prompt.id]}",
                "give every prompt an id of its own",
            )
        seen[prompt.id] = number
        found.append(prompt)
    if not found:
        raise Refused(f"{path.name} holds no prompt", REMEDY)
    return found


def _prompt(line: str, where: str, name: str) -> Prompt:
    try:
        record: Any = json.loads(line)
    except ValueError as error:
        raise Refused(f"{where}: not JSON", REMEDY) from error
    if not isinstance(record, dict):
        raise Refused(f"{where}: not a JSON object", REMEDY)
    for field, value in record.items():
        if field not in FIELDS:
            raise Refused(f"{where}: unknown field {field!r}", f"use {', '.join(FIELDS)}")
        if not isinstance(value, str) or not value.strip():
            raise Refused(f"{where}: {field} is {value!r}, not a text", REMEDY)
    if "prompt" not in record:
        raise Refused(f"{where}: no prompt", REMEDY)
    return Prompt(**{"id": name, **record})
