"""Pictures for the README from the app over the real engine.

`python -m tests.tools.screenshots .docs`
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from tests.app.app_driving import Driver, wait_until

PROMPT = "Write a Python function that counts the vowels in a word."


async def pictures(folder: Path) -> None:
    """A chat of two turns, and A/B on the second."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        engine = Engine(Path(home) / "engine.log")
        app = DflyApp(engine, Start(Path(home)))
        async with app.run_test(size=(120, 36), notifications=True) as pilot:
            d = Driver(app, pilot)
            await wait_until(lambda: d.ready, 300)
            for number, words in enumerate(
                (PROMPT, "Tell me a story about a brave fox named Leo who lives in the forest."), 1
            ):
                await d.ask(words)
                await d.answered(2 * number, 300)
            await pilot.pause(0.5)
            app.save_screenshot(str(folder / "chat.svg"))
            await pilot.press("f5")
            await wait_until(lambda: "= The same" in d.shown or "≠" in d.shown, 300)
            await pilot.pause(0.5)
            app.save_screenshot(str(folder / "race.svg"))
        engine.end()


if __name__ == "__main__":
    asyncio.run(pictures(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")))
