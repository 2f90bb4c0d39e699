"""The app over a scripted engine, in a home of its own."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from tests.app.app_driving import Driver, Opener, argv, wait_until


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; nothing may be written anywhere else."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path


@pytest.fixture
def engines() -> Iterator[list[Engine]]:
    """Engines started by a test; none outlives it."""
    started: list[Engine] = []
    yield started
    for engine in started:
        engine.end()


@pytest.fixture
def open_app(home: Path, engines: list[Engine]) -> Opener:
    """Open the app over a scripted engine and wait for the pair."""

    @contextlib.asynccontextmanager
    async def opened(
        scenario: str = "story",
        rate: float = 0,
        size: tuple[int, int] = (120, 40),
        load: bool = True,
        **start: object,
    ) -> AsyncIterator[Driver]:
        engine = Engine(home / "data" / "engine.log", argv(scenario, rate))
        engines.append(engine)
        app = DflyApp(engine, Start(home / "data", **start))  # type: ignore[arg-type]
        async with app.run_test(size=size, notifications=True) as pilot:
            driver = Driver(app, pilot)
            if load:
                await wait_until(lambda: driver.ready)
            yield driver

    return opened
