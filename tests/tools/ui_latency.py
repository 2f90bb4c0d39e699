"""The app's figures, each with its limit: `python -m tests.tools.ui_latency`; exit 1 if one fails.

The engine is a scripted one in a process of its own. Between key and paint the seconds are CPU
seconds of this process, so that a busy machine does not count; wall seconds elsewhere are
divided by how much slower than a free one the processor was. `--quick` leaves the states of
ctrl+q out.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pexpect
from textual import events

from dfly_core.records.commands import Load
from dfly_core.records.events import Loaded, Progress
from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from dfly_tui.state.conversation import Conversation, Turn
from dfly_tui.widgets.answer import Answer
from tests.app.app_driving import argv, text_of, wait_until
from tests.app.engine_script import mixed
from tests.app.quitting import LIMIT, REAL, STATES, quit_from
from tests.app.terminal import ROOT, SCRIPT, slowness

STARTS = 5  # of the real engine, each with a home of its own; the first may read from the disk
FIRST_PAINT = """
import json, os, sys, time
from dfly_tui.app import DflyApp
display = DflyApp._display
def painted(self, *args, **kwargs):
    display(self, *args, **kwargs)
    if not os.path.exists(sys.argv[1]):
        found = [time.process_time(), sorted({name.split(".")[0] for name in sys.modules})]
        open(sys.argv[1], "w").write(json.dumps(found))
        self.exit()
DflyApp._display = painted
from dfly_tui.cli import main
sys.exit(main([], (sys.executable, sys.argv[2], "story")))
"""


class Probed(DflyApp):
    """Notes when it paints."""

    paints: int = 0
    painted: float = 0.0

    def _display(self, *args: Any, **kwargs: Any) -> None:
        super()._display(*args, **kwargs)
        self.paints += 1
        self.painted = time.monotonic()


@dataclass
class Measured:
    """Key to paint, CPU and wall seconds; how far the finished answer was behind the engine's end.

    `lost` is what of the engine's text is not on the screen's side, in characters.
    """

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    behind: float = 0.0
    widgets: int = 0
    lost: int = 0

    @property
    def p95(self) -> float:
        """The 95th percentile of key to paint, CPU seconds."""
        return sorted(self.cpu)[int(0.95 * (len(self.cpu) - 1))]


def history(turns: int) -> Conversation:
    """A conversation of that many turns, answers of 400 tokens."""
    chat = Conversation()
    for number in range(1, turns + 1):
        who = "user" if number % 2 else "assistant"
        text = f"question {number}" if who == "user" else mixed(400)
        chat.turns.append(Turn(number, who, text, "stop"))  # type: ignore[arg-type]
    return chat


async def measure(tokens: int, rate: float, turns: int = 0, gap: float = 0.2) -> Measured:
    """Stream an answer of 400 or 4,000 tokens while a key is pressed now and then."""
    found = Measured()
    with tempfile.TemporaryDirectory() as home:
        scenario = "long" if tokens == 4000 else "turns"
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
                await _press(app, composer, found)
                end = time.monotonic() + gap
                while app.talk.answering and time.monotonic() < end:
                    await asyncio.sleep(0.01)
            # The screen shows the end once all that the last events changed is painted.
            await pilot.pause()
            said = [line for line in engine.log.read_text().split("\n") if "generated" in line]
            found.behind = app.painted - float(said[-1].split()[1])
            found.widgets = len(app.screen.query("*"))
            shown = list(app.query(Answer))[-1].prose.source
            assert shown == app.talk.chat.turns[-1].text
            assert "print(i)" in text_of(app)
            found.lost = sum(a != b for a, b in zip_longest(mixed(tokens), shown))
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


def first_paint() -> tuple[float, list[str]]:
    """CPU seconds of the process up to the first paint in a real terminal; top modules then."""
    with tempfile.TemporaryDirectory() as home:
        note = Path(home) / "painted"
        child = pexpect.spawn(
            sys.executable, ["-c", FIRST_PAINT, str(note), str(SCRIPT)], cwd=str(ROOT),
            env={"HOME": home, "TERM": "xterm-256color", "PATH": "/usr/bin:/bin"},
            dimensions=(40, 120), timeout=60,
        )  # fmt: skip
        child.expect(pexpect.EOF)
        child.close()
        seconds, modules = json.loads(note.read_text())
        return float(seconds), modules


def engine_ready(home: Path) -> tuple[float, float]:
    """From starting the real engine to its having the embedded pair loaded: seconds, slowness.

    The first time in a `home` it tests itself.
    """
    kept, slow = dict(os.environ), slowness()
    os.environ |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    engine = Engine(home / "engine.log")
    begun = time.monotonic()
    try:
        engine.start()
        job = engine.send(Load())
        while True:
            for number, event in engine.heard():
                if number == job and not isinstance(event, Progress):
                    assert isinstance(event, Loaded), event
                    return time.monotonic() - begun, slow
            time.sleep(0.01)
    finally:
        engine.end()
        os.environ.clear()
        os.environ.update(kept)


class Figures:
    """Prints each figure with its limit; remembers whether all held."""

    def __init__(self) -> None:
        self.held = True

    def tell(self, name: str, value: float, limit: float, unit: str, more: str = "") -> None:
        """One line."""
        good = value <= limit
        self.held &= good
        mark = "ok  " if good else "FAIL"
        print(f"{mark} {name}: {value:.3g} {unit} (limit {limit:g}){more}", flush=True)


async def streaming(figures: Figures) -> None:
    """Latency, lag and loss while answers stream."""
    cases = ((4000, 200, 0, 1.0), (4000, 500, 0, 0.5), (400, 200, 0, 1.0), (400, 200, 40, 1.0))
    for tokens, rate, turns, behind in cases:
        slow = slowness()
        m = await measure(tokens, rate, turns, 0.2 if tokens == 4000 else 0.05)
        slow = min(slow, slowness())
        name = f"{tokens} tokens at {rate} tok/s" + (f" after {turns} turns" if turns else "")
        wall = sorted(m.wall)[int(0.95 * (len(m.wall) - 1))]
        more = f"; {len(m.cpu)} keys, {1000 * wall:.0f} ms wall, {m.widgets} widgets"
        figures.tell(f"{name}, key to paint p95", 1000 * m.p95, 100, "ms CPU", more)
        more = f"; {m.behind:.2f} s wall, machine {slow:.1f}x slow"
        figures.tell(f"{name}, screen behind the engine", m.behind / slow, behind, "s", more)
        figures.tell(f"{name}, lost", m.lost, 0, "characters")


def main() -> int:
    """Print every figure; 1 when one does not hold."""
    figures = Figures()
    asyncio.run(streaming(figures))
    seconds, modules = min(first_paint() for _ in range(3))
    figures.tell("first paint", seconds, 0.5, "s CPU")
    heavy = {"mlx", "mlx_lm", "numpy", "torch", "transformers"} & set(modules)
    figures.tell("engine modules imported by then", len(heavy), 0, "modules")
    starts: dict[str, list[tuple[float, float]]] = {"first start": [], "next start": []}
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as home:
            for found in starts.values():
                found.append(engine_ready(Path(home)))
    for words, found in starts.items():
        seconds = statistics.median(wall / slow for wall, slow in found)
        walls = ", ".join(f"{wall:.2f}" for wall, _ in found)
        more = f"; wall {walls} s, machine {min(slow for _, slow in found):.1f}x slow or more"
        figures.tell(f"engine ready, {words}, median", seconds, 3.0, "s", more)
    for state in () if "--quick" in sys.argv else (*STATES, *REAL):
        with tempfile.TemporaryDirectory() as home:
            # Reaching the state fails loudly, and so does a process that is left behind.
            seconds, slow = quit_from(state, Path(home))
        more = f"; {seconds:.2f} s wall, machine {slow:.1f}x slow"
        figures.tell(f"ctrl+q, {state.name}", seconds / slow, LIMIT, "s", more)
    return 0 if figures.held else 1


if __name__ == "__main__":
    sys.exit(main())
