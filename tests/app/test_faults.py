"""Faults that any such app must survive; the numbers are those of the list they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events
from textual.geometry import Size

from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from dfly_tui.widgets.prose import Prose
from dfly_tui.widgets.transcript import Answer
from tests.app.app_driving import Opener, wait_until
from tests.app.terminal import slowness
from tests.tools.ui_latency import measure

CONTROLS = [chr(c) for c in [*range(32), 127, *range(128, 160)] if chr(c) != "\n"]


async def test_1_markup_is_shown_verbatim_everywhere(open_app: Opener) -> None:
    async with open_app("echo") as d:
        for foreign in ("[/]", "[/foo]", "[bold", "[bold]x[/bold]", "a|b"):
            await d.ask(foreign)
            await d.answered()
            d.app.chat_screen.trouble(f"trouble {foreign}")
            d.app.notify(foreign, title=foreign, markup=False)
            await d.wait(lambda f=foreign: d.shown.count(f) >= 4)
            await d.pilot.press("escape", "ctrl+n")


async def test_2_control_sequences_never_reach_the_terminal_and_the_store_keeps_them(
    open_app: Opener,
) -> None:
    async with open_app("controls") as d:
        await d.ask("x\x1b[2Jy")
        text = await d.answered()
        assert "\x1b]52;c;aGk=\x07" in text
        assert not any(c in d.shown for c in CONTROLS)
        assert "␛]52;c;aGk=␇" in d.shown


async def test_8_fast_streams_lose_nothing_and_the_screen_keeps_up() -> None:
    slow = slowness()
    found = await measure(4000, 500)
    assert found.lost == 0
    assert found.behind < 0.5 * 1.2 * max(slow, slowness())


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


async def test_13_newline_keys_break_the_line_and_enter_sends(open_app: Opener) -> None:
    async with open_app("echo") as d:
        composer = d.app.chat_screen.composer
        for letter, key in (("a", "ctrl+j"), ("b", "shift+enter"), ("c", "shift+\r")):
            await d.pilot.press(letter)
            composer.post_message(events.Key(key, None))
            await d.pilot.pause()
        await d.pilot.press("d", "enter")
        await d.answered()
        assert d.app.talk.chat.turns[0].text == "a\nb\nc\nd"


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


async def test_15_backspace_takes_whole_glyphs(open_app: Opener) -> None:
    async with open_app() as d:
        for draft, left in (
            ("a👨‍👩‍👧", "a"), ("ae\u0301", "a"), ("🇩🇪🇫🇷", "🇩🇪"), ("漢字", "漢"), ("👍🏽", ""),
            ("\u1100\u1161\u11a8", ""), ("x\n", "x"), ("xy", "x"),
        ):  # fmt: skip
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


async def test_18_a_resize_while_streaming_leaves_a_clean_frame(open_app: Opener) -> None:
    async with open_app("turns", rate=200, size=(80, 24)) as d:
        await d.ask("go")
        await d.wait(lambda: len(d.app.talk.chat.turns[-1].text) > 50)
        for width, height in ((30, 8), (10, 5), (120, 40)):
            await d.pilot.resize_terminal(width, height)
            await d.wait(lambda w=width: d.app.screen.size.width == w)
            await d.pilot.pause()
            assert len(d.shown.split("\n")) == height
            assert {cell_len(row) for row in d.shown.split("\n")} == {width}
            assert d.app.chat_screen.panel.display == (width >= 100)
            assert d.app.chat_screen.composer.region.bottom <= height
        await d.answered()


async def test_3_stop_before_the_answer_was_asked_for_is_nothing(open_app: Opener) -> None:
    async with open_app() as d:
        await d.pilot.press("escape", "escape")
        d.app.talk.stop()
        await d.ask("hello")
        assert "fox" in await d.answered()


async def test_5_an_answer_that_grew_equals_one_shown_at_once_also_after_a_theme_change(
    open_app: Opener,
) -> None:
    async with open_app("markdown", rate=200) as d:
        await d.ask("go")
        text = await d.answered()
        grown = d.app.query_one(Answer).prose
        whole = Prose(text)
        whole.get_content_height(grown.size, grown.size, grown.size.width)
        assert grown.rows == whole.rows
        assert "See a (http://x)." in grown.rows
        before = d.shown
        d.app.theme = "dfly-light"
        await d.pilot.pause()
        assert d.shown == before
        assert grown.rows == whole.rows


async def test_6_scrolled_up_the_view_stays_and_end_follows_again(open_app: Opener) -> None:
    async with open_app("long", rate=200, size=(100, 24)) as d:
        view = d.app.chat_screen.transcript
        d.app.settings.max_tokens = 100_000
        await d.ask("go")
        await d.wait(lambda: view.max_scroll_y > 30)
        await d.pilot.press("pageup", "pageup")
        await d.wait(lambda: not view.following)
        await d.pilot.pause()
        where, grown = view.scroll_y, view.max_scroll_y
        await d.sees("New text below")
        await d.wait(lambda: view.max_scroll_y > grown + 10)
        assert view.scroll_y == where
        await d.pilot.press("end")
        await d.wait(lambda: view.following)
        grown = view.max_scroll_y
        await d.wait(lambda: view.max_scroll_y > grown + 10)
        assert view.following
        await d.pilot.press("escape")
        await d.answered()


async def test_7_forty_turns_keep_keys_quick_and_widgets_few() -> None:
    found = await measure(400, 150, turns=40, gap=0.02)
    assert len(found.cpu) >= 5
    assert found.p95 < 0.1
    assert found.widgets < 120
    assert found.lost == 0


async def test_16_an_emoji_split_over_steps_shows_no_replacement_character(
    open_app: Opener,
) -> None:
    async with open_app("glyphs", rate=50) as d:
        await d.ask("go")
        await d.answered()
        assert "👨‍👩‍👧" in d.app.query_one(Answer).prose.source
        assert "\ufffd" not in d.shown


@given(st.text(alphabet="ab *`#>-|\n[]()1.~_", max_size=80), st.lists(st.integers(1, 9)))
def test_5_any_markdown_in_any_pieces_equals_the_whole(text: str, cuts: list[int]) -> None:
    grown, at = Prose(), 0
    grown.get_content_height(Size(40, 10), Size(40, 10), 40)
    for cut in [*cuts, len(text)]:
        grown.feed(text[at : at + cut])
        at += cut
    grown.settle()
    whole = Prose(text)
    whole.get_content_height(Size(40, 10), Size(40, 10), 40)
    assert grown.rows == whole.rows


async def test_17_an_engine_that_cannot_start_is_one_line(home: Path) -> None:
    app = DflyApp(Engine(home / "engine.log", (str(home / "nowhere"),)), Start(home))
    async with app.run_test(size=(100, 30)) as pilot:
        await wait_until(lambda: "could not be started" in app.chat_screen.notice.words)
        await pilot.pause()
        assert "ctrl+r" in app.chat_screen.notice.words
