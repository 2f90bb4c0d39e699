"""How long a key waits for its paint while an answer streams: `python -m tests.tools.ui_latency`.

Seconds are CPU seconds of this process between key and paint, so that a busy machine does not
count; wall seconds are printed beside them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual import events

from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from dfly_tui.state.conversation import Conversation, Turn
from tests.app.app_driving import argv, wait_until
from tests.app.engine_script import mixed


class Probed(DflyApp):
    """Notes when it paints."""

    paints: int = 0

    def _display(self, *args: Any, **kwargs: Any) -> None:
        super()._display(*args, **kwargs)
        self.paints += 1


@dataclass
class Measured:
    """Key to paint, CPU and wall seconds; how far the screen ended behind the engine."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    behind: float = 0.0
    behind_cpu: float = 0.0
    widgets: int = 0

    def p95(self, values: list[float]) -> float:
        """The 95th percentile."""
        return sorted(values)[int(0.95 * (len(values) - 1))]


def history(turns: int) -> Conversation:
    """A conversation of that many turns, answers of 400 tokens."""
    chat = Conversation()
    for number in range(1, turns + 1):
        who = "user" if number % 2 else "assistant"
        text = f"question {number}" if who == "user" else mixed(400)
        chat.turns.append(Turn(number, who, text, "stop"))  # type: ignore[arg-type]
    return chat


async def measure(scenario: str, rate: float, turns: int = 0, gap: float = 0.2) -> Measured:
    """Stream an answer while a key is pressed now and then."""
    found = Measured()
    with tempfile.TemporaryDirectory() as home:
        engine = Engine(Path(home) / "engine.log", argv(scenario, rate))
        app = Probed(engine, Start(Path(home)))
        async with app.run_test(size=(120, 40)) as pilot:
            await wait_until(lambda: app.panel.pair is not None and not app.desk.busy)
            if turns:
                app.talk.open(history(turns))
                await pilot.pause()
            composer = app.chat_screen.composer
            app.settings.max_tokens = 100_000
            app.say("go")
            await wait_until(lambda: app.talk.answer is not None and bool(app.talk.answer.text))
            while app.talk.answering:
                await asyncio.sleep(gap)
                await _press(app, composer, found)
            # The engine is done when its closing event was read; the screen when it has settled.
            began, cpu = time.perf_counter(), time.process_time()
            await pilot.pause()
            found.behind = time.perf_counter() - began
            found.behind_cpu = time.process_time() - cpu
            found.widgets = len(app.screen.query("*"))
        engine.end()
    return found


async def _press(app: Probed, composer: Any, found: Measured) -> None:
    wall, cpu, length = time.perf_counter(), time.process_time(), len(composer.text)
    app.post_message(events.Key("a", "a"))
    while len(composer.text) == length:
        await asyncio.sleep(0)
    paints = app.paints
    while app.paints == paints and time.perf_counter() - wall < 2:
        await asyncio.sleep(0)
    found.cpu.append(time.process_time() - cpu)
    found.wall.append(time.perf_counter() - wall)


async def main() -> None:
    """Print a line per case."""
    for scenario, rate, turns in (("long", 200, 0), ("long", 500, 0), ("turns", 200, 40)):
        m = await measure(scenario, rate, turns)
        print(
            f"{scenario} at {rate} tok/s after {turns} turns: {len(m.cpu)} keys, "
            f"p95 {m.p95(m.cpu) * 1e3:.0f} ms CPU, {m.p95(m.wall) * 1e3:.0f} ms wall; "
            f"screen {m.behind:.2f} s behind; {m.widgets} widgets"
        )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
