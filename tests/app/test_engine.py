"""The engine's process: what it is started from."""

from __future__ import annotations

from pathlib import Path

import pytest

from dfly_core.records.commands import Load
from dfly_core.records.events import Failed, Hello, Loaded, Progress
from dfly_tui.engine import Engine, Gone
from tests.app.app_driving import wait_until

# Python's own that starting, the engine and its libraries import; and the engine's own name.
NAMES = ("random", "tokenize", "linecache", "json", "struct", "dfly_core", "mlx", "numpy")


@pytest.mark.parametrize("safe_path", ["", "1"])
async def test_the_files_of_the_users_folder_are_not_the_engines(
    safe_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"raise SystemExit('{name}.py of the folder ran')\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONSAFEPATH", safe_path)
    engine = Engine(tmp_path / "engine.log")
    engine.start()
    try:
        job = engine.send(Load(None, None, verify="fast"))
        heard: list[object] = []

        def loaded() -> bool:
            heard.extend(event for _, event in engine.heard())
            return any(isinstance(event, Loaded | Failed | Gone) for event in heard)

        await wait_until(loaded, 60)
    finally:
        engine.end()
    assert job == 1
    told = [event for event in heard if not isinstance(event, Progress)]
    assert [type(event) for event in told] == [Hello, Loaded], told
    assert "of the folder ran" not in engine.log.read_text()
