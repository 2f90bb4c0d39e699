"""Every state of the app that ctrl+q must leave at once, and how to get there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.app.terminal import CHECKPOINTS, Terminal, real, scripted, slowness

ASKED = ("--prompt", "hello there")
LIMIT = 1.0  # seconds


@dataclass(frozen=True)
class State:
    """A command, what to do, and whether there is a chat that must be kept."""

    name: str
    command: list[str]
    reach: Callable[[Terminal], object]
    chat: bool = False


def _convert(terminal: Terminal) -> None:
    terminal.ready()
    terminal.press("F7")
    terminal.sees("Convert a drafter")
    terminal.type(str(CHECKPOINTS / "serving-bin"))
    terminal.press("C-s")
    terminal.sees("layers.")


def _bench(terminal: Terminal) -> None:
    terminal.ready()
    terminal.press("F8")
    terminal.sees("trials")
    terminal.press("C-s")
    terminal.sees("left")


def _race(terminal: Terminal) -> None:
    terminal.sees("% accepted ·")
    for attempt in range(5):  # the figures are shown a moment before the answer is over
        terminal.press("F5")
        try:
            terminal.sees("A/B on", "The target alone", "tok/s", seconds=12)
            return
        except AssertionError:
            if attempt == 4:
                raise


def _keys(*keys: str, sees: str) -> Callable[[Terminal], object]:
    def reach(terminal: Terminal) -> None:
        terminal.ready()
        terminal.press(*keys)
        terminal.sees(sees)

    return reach


STATES = (
    State("idle", scripted("story"), lambda t: t.ready()),
    State("no greeting yet", scripted("slowhello"), lambda t: t.sees("Quit")),
    State("loading", scripted("slowstart"), lambda t: t.sees("linear")),
    State("prompt reading", scripted("reading", *ASKED), lambda t: t.sees("reading"), True),
    State("streaming", scripted("long 60", *ASKED), lambda t: t.sees("Part"), True),
    State("an engine that hangs", scripted("hang", *ASKED), lambda t: t.sees("hello there"), True),
    State("A/B", scripted("echo 60", *ASKED), _race, True),
    State("converting", scripted("story 2"), _convert),
    State("benchmarking", scripted("story 2"), _bench),
    State("a dialog", scripted("story"), _keys("F6", sees="Models on this machine")),
    State("the palette", scripted("story"), _keys("C-p", sees="Search")),
    State("settings", scripted("story"), _keys("F9", sees="Settings")),
)
REAL = (
    State("real engine, loading", real(), lambda t: t.sees("dfly", "Quit")),
    State("real engine, idle", real(*ASKED), lambda t: t.sees("% accepted ·"), True),
    State("real engine, benchmarking", real(), _bench),
)


def quit_from(state: State, home: Path) -> tuple[float, float]:
    """Reach the state and leave it: seconds, and how many times slower the machine was."""
    terminal = Terminal(home, state.command)
    try:
        state.reach(terminal)
        slow = slowness()
        seconds = terminal.quit()
        if state.chat:
            (chat,) = (terminal.data / "chats").glob("*.jsonl")
            kept = [json.loads(line) for line in chat.read_text().splitlines()]
            assert kept[1]["text"] == "hello there"
            assert kept[-1]["did"] == "end"
        return seconds, slow
    finally:
        terminal.close()
