"""Faults that any such app must survive; the numbers are those of the list they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual import events

from dfly_tui.widgets.transcript import Answer
from tests.app.app_driving import Opener

CONTROLS = [chr(c) for c in [*range(32), 127, *range(128, 160)] if chr(c) != "\n"]


@pytest.mark.parametrize("foreign", ["[/]", "[/foo]", "[bold", "[bold]x[/bold]", "a|b"])
async def test_1_markup_is_shown_verbatim_everywhere(open_app: Opener, foreign: str) -> None:
    async with open_app("echo") as d:
        await d.ask(foreign)
        await d.answered()
        d.app.chat_screen.trouble(f"trouble {foreign}")
        d.app.notify(foreign, title=foreign, markup=False)
        await d.pilot.pause()
        assert d.shown.count(foreign) >= 3  # title, question, answer or notice


async def test_2_control_sequences_never_reach_the_terminal_and_the_store_keeps_them(
    open_app: Opener,
) -> None:
    async with open_app("controls") as d:
        await d.ask("x\x1b[2Jy")
        text = await d.answered()
        assert "\x1b]52;c;aGk=\x07" in text
        assert not any(c in d.shown for c in CONTROLS)
        assert "␛]52;c;aGk=␇" in d.shown


async def test_8_fast_streams_lose_nothing(open_app: Opener) -> None:
    async with open_app("turns", rate=500) as d:
        await d.ask("go")
        text = await d.answered()
        assert text.count("## Part") == text.count("\nfor i in range(10):")
        numbers = [int(p.split("\n")[0]) for p in text.split("## Part ")[1:]]
        assert numbers == list(range(1, len(numbers) + 1))
        whole = d.app.query_one(Answer).prose
        assert whole.source == text


@pytest.mark.parametrize("scenario", ["abort", "aborthalf"])
async def test_10_an_engine_that_aborts_leaves_the_chat_and_can_be_restarted(
    open_app: Opener, scenario: str
) -> None:
    async with open_app(scenario) as d:
        await d.ask("hello")
        await d.answered()
        await d.wait(lambda: "ctrl+r" in d.app.chat_screen.notice.words)
        assert "SIGABRT" in d.app.chat_screen.notice.words
        assert d.app.talk.chat.turns[-1].end == "stopped"
        await d.pilot.press("ctrl+r")
        await d.wait(lambda: d.ready)
        assert not d.app.chat_screen.notice.words


async def test_11_noise_on_descriptor_two_lands_in_the_log(open_app: Opener, home: Path) -> None:
    async with open_app("noise") as d:
        await d.ask("hello")
        await d.answered()
        assert "noise" not in d.shown
    assert b"native noise" in (home / "data" / "engine.log").read_bytes()


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "shift+\r"])
async def test_13_newline_keys_break_the_line_and_enter_sends(open_app: Opener, key: str) -> None:
    async with open_app("echo") as d:
        composer = d.app.chat_screen.composer
        await d.pilot.press("a")
        composer.post_message(events.Key(key, None))
        await d.pilot.pause()
        await d.pilot.press("b")
        assert composer.draft == "a\nb"
        await d.pilot.press("enter")
        await d.answered()
        assert d.app.talk.chat.turns[0].text == "a\nb"


async def test_14_a_paste_of_lines_is_one_draft(open_app: Opener) -> None:
    async with open_app() as d:
        d.app.chat_screen.composer.post_message(events.Paste("one\r\ntwo\nthree"))
        await d.pilot.pause()
        assert d.app.chat_screen.composer.draft == "one\ntwo\nthree"
        assert not d.app.talk.chat.turns


async def test_14_a_paste_of_a_megabyte_is_folded_and_sent_whole(open_app: Opener) -> None:
    async with open_app("story") as d:
        big = "x" * 1_000_000
        d.app.chat_screen.composer.post_message(events.Paste(big))
        await d.pilot.pause()
        assert "1,000,000 characters" in d.shown
        assert d.app.chat_screen.composer.draft == big
        await d.pilot.press("enter")
        await d.answered()
        assert d.app.talk.chat.turns[0].text == big


@pytest.mark.parametrize(
    ("draft", "left"),
    [
        ("a👨‍👩‍👧", "a"), ("ae\u0301", "a"), ("🇩🇪🇫🇷", "🇩🇪"), ("漢字", "漢"),
        ("👍🏽", ""), ("각", ""),
    ],
)  # fmt: skip
async def test_15_backspace_takes_whole_glyphs(open_app: Opener, draft: str, left: str) -> None:
    async with open_app() as d:
        d.app.chat_screen.composer.set_draft(draft)
        await d.pilot.press("backspace")
        assert d.app.chat_screen.composer.draft == left


async def test_15_borders_stay_straight_around_wide_glyphs(open_app: Opener) -> None:
    async with open_app("glyphs") as d:
        await d.ask("漢字 e\u0301 👨‍👩‍👧 🇩🇪")
        await d.answered()
        widths = {cell_len(row) for row in d.shown.split("\n")}
        assert widths == {120}
        assert "\ufffd" not in d.shown


@pytest.mark.parametrize("size", [(80, 24), (30, 8), (10, 5), (120, 40)])
async def test_18_a_resize_while_streaming_leaves_a_clean_frame(
    open_app: Opener, size: tuple[int, int]
) -> None:
    async with open_app("turns", rate=400, size=(80, 24)) as d:
        await d.ask("go")
        await d.wait(lambda: len(d.app.talk.chat.turns[-1].text) > 50)
        await d.pilot.resize_terminal(*size)
        await d.answered()
        rows = d.shown.split("\n")
        assert len(rows) == size[1]
        assert d.app.chat_screen.panel.display == (size[0] >= 100)
        assert d.app.chat_screen.composer.region.bottom <= size[1]
