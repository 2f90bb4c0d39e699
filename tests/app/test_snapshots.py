"""Every screen at three sizes, as text; the chat in four looks, as SVG.

Text keeps these readable in a diff, and one app serves three sizes. `--snapshot-update` accepts
a change that was looked at.
"""

from __future__ import annotations

import shutil
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from dfly_tui.screens import convert, models
from dfly_tui.state.examples import FALLBACK
from dfly_tui.widgets import welcome
from tests.app.app_driving import SCRIPT, Driver, argv, wait_until

SIZES = ((120, 40), (80, 24), (50, 20))
ASKED = ("=hello", "enter", "!answered")
CASES: dict[str, tuple[str, ...]] = {
    "empty": (),
    "answered": ASKED,
    "stopped engine": ("!gone",),
    "slash": ("/", "s"),
    "chats": (*ASKED, "ctrl+o"),
    "help": ("f1",),
    "replay": (*ASKED, "f3"),
    "tokens": (*ASKED, "f4"),
    "race": (*ASKED, "f5", "?The same 44"),
    "models": ("f6",),
    "convert": ("f7", "enter", "?serving folder", "ctrl+s", "?Converted to"),
    "bench": ("f8", "ctrl+s", "?Report:"),
    "settings": ("f9",),
    "system": ("=/system", "enter"),
}


@pytest.fixture(autouse=True)
def steady(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing on the screens may depend on this machine."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.chdir(home)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(9e11, 4e11, 5e11))
    monkeypatch.setattr(convert, "memory_size", lambda: 16_000_000_000)
    monkeypatch.setattr(welcome, "memory_size", lambda: 16_000_000_000)
    for module in (convert, welcome):
        monkeypatch.setattr(module, "on_mac", lambda: True)
    monkeypatch.setattr(welcome, "examples", lambda: FALLBACK)
    monkeypatch.setattr(models, "model_roots", lambda data: [])
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture
def make(engines: list[Engine]) -> Callable[..., DflyApp]:
    """The app in a relative data folder, so that paths are the same everywhere."""

    def made(theme: str = "dfly-dark", scenario: str = "story") -> DflyApp:
        engine = Engine(Path("data/engine.log"), argv(scenario))
        engines.append(engine)
        app = DflyApp(engine, Start(Path("data")))
        app.theme = theme
        app.cursor_blink = False  # type: ignore[attr-defined]
        return app

    return made


async def drive(pilot: Pilot[Any], keys: tuple[str, ...]) -> Driver:
    """Press keys; `=` types at once, `?` waits for words, `!` for a state."""
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
        elif key == "!gone":
            app.desk.engine._child.process.kill()  # type: ignore[union-attr]
            await d.sees("SIGKILL")
        else:
            await pilot.press(key)
            await pilot.pause()
    await pilot.pause()
    return d


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="one interpreter is enough")
@pytest.mark.parametrize("name", CASES)
async def test_screens(name: str, make: Callable[..., DflyApp], snapshot: Any) -> None:
    app = make()
    async with app.run_test(size=SIZES[0], notifications=True) as pilot:
        d = await drive(pilot, CASES[name])
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await wait_until(lambda w=width: app.screen.size.width == w)  # type: ignore[misc]
            await pilot.pause(0.15)
            text = "\n".join(row.rstrip() for row in d.shown.split("\n"))
            assert text.replace(str(SCRIPT), "SCRIPT") == snapshot(name=f"{name} {width}x{height}")


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="one interpreter is enough")
@pytest.mark.parametrize("theme", ["dfly-dark", "dfly-light", "ansi-dark", "no colour"])
def test_looks(
    theme: str, make: Callable[..., DflyApp], snap_compare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answered(pilot: Pilot[Any]) -> None:
        await drive(pilot, ASKED)
        await pilot.pause(0.2)

    if theme == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
    app = make("dfly-dark" if theme == "no colour" else theme)
    assert snap_compare(app, run_before=answered, terminal_size=(100, 30))
