"""Pictures for the README from the app over the real engine.

`python -m tests.tools.screenshots docs`
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from tests.app.app_driving import Driver, wait_until

PROMPT = "Write a Python function that adds two numbers."


async def pictures(folder: Path) -> None:
    """A first chat, the same chat on a narrow terminal, A/B, a step."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        engine = Engine(Path(home) / "engine.log")
        app = DflyApp(engine, Start(Path(home)))
        async with app.run_test(size=(120, 36), notifications=True) as pilot:
            d = Driver(app, pilot)
            await wait_until(lambda: d.ready, 300)
            for number, words in enumerate((PROMPT, "Now subtract them."), 1):
                await d.ask(words)
                await d.answered(2 * number, 300)
            await pilot.pause(0.5)
            app.save_screenshot(str(folder / "chat.svg"))
            await pilot.press("f3", "left", "left")
            await pilot.pause(0.5)
            app.save_screenshot(str(folder / "step.svg"))
            await pilot.press("escape", "f5")
            await wait_until(lambda: "= The same" in d.shown or "≠" in d.shown, 300)
            await pilot.pause(0.5)
            app.save_screenshot(str(folder / "race.svg"))
            await pilot.press("escape")
            await pilot.resize_terminal(80, 24)
            await pilot.pause(0.5)
            app.save_screenshot(str(folder / "narrow.svg"))
        engine.end()


if __name__ == "__main__":
    asyncio.run(pictures(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")))
