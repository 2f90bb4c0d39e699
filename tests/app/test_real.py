"""The app over the real worker and the embedded pair."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from dfly_tui.state.conversation import Conversation
from dfly_tui.state.models import embedded
from dfly_tui.state.store import Store
from tests.app.app_driving import Driver, wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not any((folder / "target" / "config.json").is_file() for folder in embedded()),
    reason="the embedded pair is not in this checkout yet",
)


async def test_a_first_chat_with_the_embedded_pair(home: Path, engines: list[Engine]) -> None:
    engine = Engine(home / "engine.log")
    engines.append(engine)
    app = DflyApp(engine, Start(home))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        d = Driver(app, pilot)
        await wait_until(lambda: d.ready, 90)
        await pilot.press("tab", "enter")
        await wait_until(lambda: len(app.talk.chat.turns) == 2 and not app.talk.answering, 90)
        turn = app.talk.chat.turns[1]
        assert turn.end == "stop"
        assert turn.text.strip()
        await d.ask("Thank you.")
        await wait_until(lambda: len(app.talk.chat.turns) == 4 and not app.talk.answering, 90)
        assert app.panel.stats.reused_tokens > 0
        assert app.panel.stats.emitted == sum(step.kept for step in app.panel.steps)


def test_line_mode_answers_from_a_pipe_and_a_chat_can_be_resumed(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path)}
    env.pop("XDG_DATA_HOME", None)

    def run(*args: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dfly_tui", "--plain", *args],
            input=text, capture_output=True, text=True, cwd=ROOT, env=env, timeout=100, check=False,
        )  # fmt: skip

    store = Store(tmp_path / ".local/share/dfly-tui/chats")
    store.create(Conversation())
    store.release()
    first = run("--resume", text="What is 17 plus 25?\n")
    assert first.returncode == 0, first.stderr
    assert first.stdout.strip()
    second = run("--resume", "--prompt", "And minus 2?")
    assert second.returncode == 0, second.stderr
    saved = (tmp_path / ".local/share/dfly-tui/chats/000001.jsonl").read_text()
    assert saved.count('"who": "user"') == 2
    assert run("--resume", "9").returncode == 2
