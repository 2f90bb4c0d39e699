"""Every screen at three sizes in three themes; the chat in four looks, as SVG.

A screen's file holds its text at each size once and, for each theme, a letter per style, so that
a change can be read in a diff. `--snapshot-update` accepts a change that was looked at.
"""

from __future__ import annotations

import shutil
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.pilot import Pilot

from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from dfly_tui.screens import bench, convert, models
from dfly_tui.state.examples import FALLBACK
from dfly_tui.widgets import welcome
from tests.app.app_driving import argv
from tests.app.showing import ASKED, CASES, colours, drive, looks, words

NAMES = [f"{screen}, {case}" for screen, cases in CASES.items() for case in cases]


class PageExtension(SingleFileSnapshotExtension):
    """One readable file per screen."""

    _write_mode = WriteMode.TEXT
    _file_extension = "txt"


@pytest.fixture(autouse=True)
def steady(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing on the screens may depend on this machine or its speed."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.chdir(home)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(9e11, 4e11, 5e11))
    for module in (convert, welcome):
        monkeypatch.setattr(module, "memory_size", lambda: 16 * 2**30)
        monkeypatch.setattr(module, "on_mac", lambda: True)
    monkeypatch.setattr(welcome, "examples", lambda: FALLBACK)
    for screen in (bench, models):
        monkeypatch.setattr(screen, "model_roots", lambda data: [])
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr(DflyApp, "NOTIFICATION_TIMEOUT", 600.0)  # a slow machine takes more than 5


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


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="one interpreter is enough")
@pytest.mark.parametrize("name", NAMES)
async def test_screens(name: str, make: Callable[..., DflyApp], snapshot: Any) -> None:
    screen, case = name.split(", ", 1)
    app = make(scenario=case.split(": ")[0] if ": " in case else "story")
    pages: dict[str, list[str]] = {}
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        d = await drive(pilot, CASES[screen][case])
        async for theme, size, rows in looks(d):
            page, text = pages.setdefault(f"== {size}", []), words(rows)
            if text not in page:
                page.append(text)
            page.append(f"-- {theme}\n{colours(rows)}")
    whole = "\n".join("\n".join([size, *page]) for size, page in pages.items())
    assert f"{whole}\n" == snapshot(extension_class=PageExtension)


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
