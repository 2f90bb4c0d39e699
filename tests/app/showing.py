"""Screens as they look: the keys that bring each about, and a compact picture as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import groupby
from string import ascii_letters
from typing import Any

from rich.color import Color
from rich.style import Style
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input, TextArea

from dfly_tui.app import DflyApp
from tests.app.app_driving import SCRIPT, Driver, wait_until

SIZES = ((120, 40), (80, 24), (50, 20))
THEMES = ("dfly-dark", "dfly-light", "ansi-dark")
MEASURED = ("f8", "ctrl+s", "?Report:")
ASKED = ("=hello", "enter", "!answered")

# Keys by screen. `=` types at once, `?` waits for words, `!` for a state; the scenario, where it
# is not "story", stands before a colon in the name of the case.
CASES: dict[str, dict[str, tuple[str, ...]]] = {
    "chat": {
        "first run": (),
        "answered": ASKED,
        "halfway: answer streaming": ("=hello", "enter", "!half"),
        "halfway: stopped answer": ("=hello", "enter", "!half", "escape", "!answered"),
        "parked: drafting off": ASKED,
        "panel hidden": (*ASKED, "f2"),
        "stopped engine": ("!gone",),
        "slash": ("/", "s"),
        "editing": (*ASKED, "ctrl+t"),
    },
    "chats": {"list": (*ASKED, "ctrl+o")},
    "steps": {"replay": (*ASKED, "f3"), "tokens": (*ASKED, "f4")},
    "race": {"same": (*ASKED, "f5", "?The same 44"), "drift: differs": (*ASKED, "f5", "?apart")},
    "models": {"none": ("f6",)},
    "convert": {
        "source": ("f7", "?Enter checks"),
        "checked": ("f7", "enter", "?serving folder"),
        "slowcheck: checking": ("f7", "enter", "?Checking"),
        "nonet: refused": ("f7", "enter", "?could not be fetched"),
        "halfway: running": ("f7", "ctrl+s", "?400 MB/s"),
        "done": ("f7", "ctrl+s", "?Converted to"),
    },
    "bench": {
        "form": ("f8",),
        "halfway: running": ("f8", "ctrl+s", "?2 rows"),
        "done": MEASURED,
        "compared": (*MEASURED, "ctrl+s", "?bench-2.json", "ctrl+k", "?1.00x"),
    },
    "settings": {"list": ("f9",), "number": ("f9", "down", "down", "down", "enter")},
    "dialogs": {
        "system prompt": ("=/system", "enter"),
        "rename": (*ASKED, "=/rename", "enter"),
        "delete": (*ASKED, "=/delete", "enter"),
        "export": (*ASKED, "=/export", "enter"),
    },
    "help": {"keys": ("f1",), "palette": ("ctrl+p", "!palette")},
}


async def drive(pilot: Pilot[Any], keys: tuple[str, ...]) -> Driver:
    """Bring a screen about."""
    app = pilot.app
    assert isinstance(app, DflyApp)
    d = Driver(app, pilot)
    app.chat_screen.composer.cursor_blink = False
    await wait_until(lambda: d.ready)
    for key in keys:
        if key.startswith("="):
            app.chat_screen.composer.set_draft(key[1:])
        elif key.startswith("?"):
            await d.sees(key[1:])
        elif key == "!answered":
            await d.answered()
        elif key == "!half":
            await wait_until(lambda: len(app.panel.steps) == 5)
        elif key == "!palette":
            await d.sees("New chat")
        elif key == "!gone":
            app.desk.engine._child.process.kill()  # type: ignore[union-attr]
            await d.sees("SIGKILL")
        else:
            await pilot.press(key)
            await pilot.pause()
    await pilot.pause()
    app.clear_notifications()  # they would be there or gone by the machine's speed
    return d


async def looks(d: Driver) -> AsyncIterator[tuple[str, str, list[Strip]]]:
    """Every theme at every size: theme, size, the rows of the settled screen."""
    for theme in THEMES:
        d.app.theme = theme
        if isinstance(d.app.screen, CommandPalette):
            # Textual's palette keeps the colours it was opened with.
            await d.pilot.press("escape", "ctrl+p")
            await d.sees("New chat")
        for width, height in SIZES:
            await d.pilot.resize_terminal(width, height)
            await wait_until(lambda w=width, h=height: d.app.screen.size == (w, h))  # type: ignore[misc]
            yield theme, f"{width}x{height}", await settled(d)


async def settled(d: Driver) -> list[Strip]:
    """Wait until nothing changes any more; the rows of the screen, with what it lies over."""
    for field in (*d.app.screen.query(Input), *d.app.screen.query(TextArea)):
        field.cursor_blink = False
    d.app.chat_screen.dirty()
    d.app.chat_screen.tick()
    before: list[Strip] = []
    while True:
        await d.pilot.pause()
        compositor = d.app.screen._compositor
        update = compositor.render_update(full=True, screen_stack=d.app._background_screens)
        now = [Strip.join(row).simplify() for row in update.strips]  # type: ignore[union-attr]
        if now == before:
            return now
        before = now


def words(rows: list[Strip]) -> str:
    """The screen's text."""
    return "\n".join(row.text.rstrip() for row in rows).replace(str(SCRIPT), "SCRIPT")


def colours(rows: list[Strip]) -> str:
    """The screen's styles: a letter for each, how many cells it goes on, and what it means."""
    names: dict[str, str] = {}
    told = []
    for row in rows:
        runs = [
            (names.setdefault(_style(s.style), _letter(len(names))), s.cell_length) for s in row
        ]
        told.append(
            "".join(
                f"{name}{sum(length for _, length in run)}"
                for name, run in groupby(runs, key=lambda pair: pair[0])
            )
        )
    lines = []
    for line, same in groupby(told):
        count = len(list(same))
        lines.append(line if count == 1 else f"{line} x{count}")
    return "\n".join([*lines, *(f"{letter} {style}" for style, letter in names.items())])


def _letter(number: int) -> str:
    return (ascii_letters + "".join(map(chr, range(0x3B1, 0x3C9))))[number]


def _style(style: Style | None) -> str:
    if style is None:
        return "-"
    marks = [
        name
        for name in ("bold", "dim", "italic", "underline", "reverse", "strike")
        if getattr(style, name)
    ]
    return " ".join([f"{_name(style.color)} on {_name(style.bgcolor)}", *marks])


def _name(colour: Color | None) -> str:
    return "default" if colour is None else colour.name
