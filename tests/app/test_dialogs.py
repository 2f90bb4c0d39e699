"""Dialogs do what they say: what deletes, what overwrites, what stays typed."""

from __future__ import annotations

from pathlib import Path

from dfly_tui.screens.chats import ChatsScreen
from dfly_tui.screens.dialogs import Confirm
from dfly_tui.state.store import Store
from tests.app.app_driving import Driver, Opener


async def asked(d: Driver) -> None:
    await d.ask("hello")
    await d.answered()


async def test_enter_deletes_no_chat(open_app: Opener, home: Path) -> None:
    async with open_app() as d:
        await asked(d)
        for keys in (("ctrl+o", "f8"), ("/", *"delete", "enter")):
            await d.pilot.press(*keys)
            await d.wait(lambda: isinstance(d.app.screen, Confirm))
            await d.pilot.press("enter")
            await d.pilot.pause()
            assert isinstance(d.app.screen, Confirm)
            await d.pilot.press("escape")
            await d.pilot.pause()
            if isinstance(d.app.screen, ChatsScreen):
                await d.pilot.press("escape")
        assert Store(home / "data/chats").numbers() == [1]
