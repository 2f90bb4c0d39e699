"""Drives the app over a scripted engine; waits without sleeping blindly."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from textual.pilot import Pilot

from dfly_tui.app import DflyApp

SCRIPT = Path(__file__).with_name("engine_script.py")


def argv(scenario: str, rate: float = 0) -> tuple[str, ...]:
    """The command of a scripted engine."""
    return (sys.executable, str(SCRIPT), scenario, str(rate))


async def wait_until(true: Callable[[], bool], seconds: float = 40.0) -> None:
    """Let the app run until something holds; fails with what it waited for."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {seconds} s: {true}")
        await asyncio.sleep(0.01)


def text_of(app: DflyApp) -> str:
    """The screen as text."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


class Driver:
    """The app under test and the keys to drive it."""

    def __init__(self, app: DflyApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot
        self.wait: Callable[..., Awaitable[None]] = wait_until

    @property
    def ready(self) -> bool:
        return self.app.panel.pair is not None and not self.app.desk.busy

    async def ask(self, text: str) -> None:
        """Type a message (at once) and send it."""
        self.app.chat_screen.composer.set_draft(text)
        await self.pilot.press("enter")

    async def answered(self, turns: int = 2, seconds: float = 40.0) -> str:
        """Wait for the end of the answer; its text."""
        chat = self.app.talk
        await wait_until(lambda: len(chat.chat.turns) >= turns and not chat.answering, seconds)
        await self.pilot.pause()
        return chat.chat.turns[-1].text

    async def sees(self, words: str) -> None:
        """Wait until the screen shows these words."""
        await wait_until(lambda: words in self.shown)

    @property
    def shown(self) -> str:
        """The screen as text."""
        return text_of(self.app)


class Opener(Protocol):
    def __call__(
        self,
        scenario: str = ...,
        rate: float = ...,
        size: tuple[int, int] = ...,
        load: bool = ...,
        **start: object,
    ) -> AbstractAsyncContextManager[Driver]: ...
