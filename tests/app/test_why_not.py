"""Whatever is pressed or typed does something or says why not; a note leaves the text in place."""

from __future__ import annotations

import os
import signal

import pytest

from dfly_tui.screens.race import RaceScreen
from dfly_tui.widgets.answer import Answer
from tests.app.app_driving import Driver, Opener

# Before anything was said, after an answer, and where the engine is gone.
NOTHING = {
    "ctrl+n": "This chat is still empty",
    "ctrl+r": "Nothing was said in this chat yet",
    "ctrl+t": "Nothing was said in this chat yet",
    "ctrl+l": "Nothing was said in this chat yet",
    "ctrl+g": "There is no answer to copy",
    "ctrl+b": "There is no code block to copy",
    "f3": "There are no steps yet",
    "f4": "There is no answer whose tokens are known",
    "f5": "Ask something first",
    "enter": "Type a message first",
}
RUNNING = dict.fromkeys(("ctrl+n", "ctrl+o", "ctrl+r", "ctrl+t", "ctrl+l"), "the answer still runs")
GONE = {"ctrl+l": "The engine ended: ctrl+r", "f5": "The engine ended: ctrl+r"}


async def told(d: Driver, keys: dict[str, str]) -> None:
    """Each key says that line, and opens nothing."""
    for key, words in keys.items():
        d.app.clear_notifications()
        await d.pilot.press(key)
        await d.wait(lambda w=words: any(w in n.message for n in d.app._notifications))
        assert d.app.screen is d.app.chat_screen, key


async def test_a_key_that_can_do_nothing_now_says_why(open_app: Opener) -> None:
    async with open_app("fifty", size=(60, 20)) as d:
        await told(d, NOTHING)
        await d.ask("hello")
        await d.wait(lambda: len(d.app.panel.steps) == 5)
        await told(d, RUNNING)
        await d.pilot.press("escape")
        await d.answered()
        d.app.talk.chat.turns[-1].end = "stop"
        await told(d, {"ctrl+l": "The last answer is whole"})
        await told(d, {"f2": "The panel is off"})
        await d.pilot.press("f2")
        assert d.app.settings.panel
        assert not d.app._notifications
        pid = d.app.desk.engine.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await d.wait(lambda: d.app.desk.gone is not None)
        await told(d, GONE)


@pytest.mark.parametrize("keys", [("f7",), ("f8",), ("f9",), ("f1",), ("ctrl+o",), ("f9", "enter")])
async def test_a_key_of_the_chat_says_on_other_pages_that_it_works_there(
    open_app: Opener, keys: tuple[str, ...]
) -> None:
    async with open_app() as d:
        await d.pilot.press(*keys)
        await d.wait(lambda: d.app.screen is not d.app.chat_screen)
        screen = d.app.screen
        for key in ("f3", "f5", "ctrl+l", "ctrl+n"):
            d.app.clear_notifications()
            await d.pilot.press(key)
            await d.wait(
                lambda: any("works in the chat: Esc" in n.message for n in d.app._notifications)
            )
            assert d.app.screen is screen
        titles = {command.title for command in d.app.get_system_commands(screen)}
        assert titles == {"Theme", "Quit"}


async def test_a_box_keeps_keys_of_its_own_that_the_chat_has_too(open_app: Opener) -> None:
    async with open_app() as d:
        await d.ask("hello")
        await d.answered()
        await d.pilot.press("ctrl+o", "f2")
        await d.sees("Title")
        assert not d.app._notifications


@pytest.mark.parametrize("key", ["f7", "f8"])
async def test_help_on_another_page_lists_the_keys_of_that_page(open_app: Opener, key: str) -> None:
    async with open_app(size=(120, 60)) as d:
        await d.pilot.press(key)
        await d.sees("Help")
        await d.pilot.press("f1")
        await d.sees("Keys of this page")
        shown = d.shown
        assert "Stop or back" in shown
        assert "Step replay  " not in shown.split("Commands")[0]


async def test_f5_while_the_answer_grows_begins_when_it_has_ended_unless_it_was_stopped(
    open_app: Opener,
) -> None:
    async with open_app("long", rate=15) as d:
        d.app.settings.max_tokens = 40
        await d.ask("hello")
        await d.wait(lambda: d.app.talk.answering)
        await d.pilot.press("f5")
        await d.wait(lambda: any("begins when" in n.message for n in d.app._notifications))
        await d.wait(lambda: isinstance(d.app.screen, RaceScreen))
        assert not d.app.talk.answering
        await d.pilot.press("escape")
    async with open_app("halfway") as d:
        await d.ask("again")
        await d.wait(lambda: len(d.app.panel.steps) == 5)
        await d.pilot.press("f5", "escape")
        await d.answered()
        await d.pilot.pause(0.3)
        assert d.app.screen is d.app.chat_screen


async def test_a_note_changes_nothing_of_the_text_beneath(open_app: Opener) -> None:
    async with open_app(size=(60, 20)) as d:
        await d.ask("hello")
        await d.answered()
        transcript, notice = d.app.chat_screen.transcript, d.app.chat_screen.notice
        placed = (transcript.region, transcript.scroll_offset, transcript.virtual_size)
        before = d.shown.split("\n")
        d.app.chat_screen.trouble("What is wrong, in more words than one row has room for, and why")
        await d.sees("What is wrong")
        await d.sees("Close the warning")
        after = d.shown.split("\n")
        assert (transcript.region, transcript.scroll_offset, transcript.virtual_size) == placed
        over = range(notice.region.y, notice.region.bottom)
        assert len(over) == 2
        foot = len(before) - 1
        for row, (old, new) in enumerate(zip(before, after, strict=True)):
            assert row in over or row == foot or old == new
        await d.pilot.press("escape")
        await d.wait(lambda: d.shown.split("\n") == before)


async def test_the_text_does_not_wrap_anew_when_it_grows_longer_than_its_room(
    open_app: Opener,
) -> None:
    async with open_app(size=(60, 40)) as d:
        await d.ask("hello")
        await d.answered()
        prose = d.app.chat_screen.query_one(Answer).prose
        rows = list(prose.rows)
        await d.pilot.resize_terminal(60, 12)
        await d.wait(lambda: d.app.chat_screen.transcript.max_scroll_y > 0)
        assert prose.rows == rows
