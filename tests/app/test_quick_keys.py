"""Keys faster than the app, through a real terminal: none is lost, each comes where it is meant."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.app.terminal import Terminal, needs_tmux, scripted
from tests.tools.flows import wait

pytestmark = needs_tmux
QUESTION = "What is 38 plus 45, and what is half of that?"

Open = Callable[..., Terminal]


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Open]:
    """The app over a scripted engine, in a terminal with an empty home."""
    opened: list[Terminal] = []

    def start(scenario: str = "story") -> Terminal:
        opened.append(Terminal(tmp_path, scripted(scenario), (100, 30)))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def app_of(terminal: Terminal) -> int:
    """The app's process."""
    wait(lambda: bool(terminal.family()), "a process")
    return terminal.family()[0]


def burst(terminal: Terminal, keys: str) -> None:
    """These keys while the app can't read: it meets them all at once."""
    pid = app_of(terminal)
    os.kill(pid, signal.SIGSTOP)
    try:
        terminal.type(keys)
    finally:
        os.kill(pid, signal.SIGCONT)


def records(terminal: Terminal) -> list[dict[str, Any]]:
    """What is in the chats on disk."""
    chats = sorted((terminal.data / "chats").glob("*.jsonl"))
    return [json.loads(line) for chat in chats for line in chat.read_text().splitlines()]


def answers(terminal: Terminal, count: int) -> bool:
    """Whether so many answers have ended."""
    return sum(record["did"] == "end" for record in records(terminal)) == count


def test_what_is_typed_before_the_first_paint_is_in_the_composer(open_terminal: Open) -> None:
    t = open_terminal()
    t.type(QUESTION)
    t.sees("Send", f"│ {QUESTION}")


def test_a_question_typed_at_once_is_sent_whole_also_after_a_freeze(open_terminal: Open) -> None:
    t = open_terminal()
    t.sees("Ask something")
    for number in range(1, 6):
        burst(t, QUESTION + "\r")
        wait(partial(answers, t, number), f"{number} answers on disk")
        t.sees("Ask something")
    asked = [r["text"] for r in records(t) if r["did"] == "turn" and r["who"] == "user"]
    assert asked == [QUESTION] * 5


def test_each_field_of_a_page_that_just_opens_gets_its_own(open_terminal: Open) -> None:
    t = open_terminal()
    t.sees("Ask something")
    burst(t, "\x1b[19~5\t7\tmine.jsonl")  # F8, trials, tokens, prompts
    shown = t.sees("Benchmark", "mine.jsonl")
    (fields,) = (line.split() for line in shown.splitlines() if "trials" in line)
    assert fields == ["trials", "5", "tokens", "7", "prompts", "mine.jsonl"]


def test_tab_completes_the_command_typed_just_before(open_terminal: Open) -> None:
    t = open_terminal()
    t.sees("Ask something")
    burst(t, "/ren\t")
    t.sees("│ /rename")


def test_text_behind_the_key_that_closes_a_page_is_for_the_chat(open_terminal: Open) -> None:
    t = open_terminal()
    t.sees("Ask something")
    burst(t, QUESTION + "\r")
    t.sees("went home")
    burst(t, "\x0f\rand now?")  # ctrl+o lists the chats, Enter opens the first
    t.sees("│ and now?")


def test_text_is_for_the_composer_whatever_has_the_focus(open_terminal: Open) -> None:
    t = open_terminal()
    t.sees("Ask something")
    burst(t, QUESTION + "\r")
    t.sees("went home")
    wait(partial(answers, t, 1), "an answer on disk")
    t.press("BTab")  # away from the composer, as a click on the answer
    t.until(lambda shown: "Send" not in shown.splitlines()[-1], "another focus")
    t.type("and now?")
    t.sees("│ and now?")


def test_stopped_and_continued_it_leaves_the_terminal_as_it_was(open_terminal: Open) -> None:
    t = open_terminal()
    t.sees("Ask something")
    burst(t, "some")
    t.sees("│ some")
    t.quit()
    assert re.search(r"(?<!-)icanon", t.modes)
    assert re.search(r"(?<!-)echo\b", t.modes)
