"""Faults that any such app must survive; the numbers are those of the list they come from.

All tests of fault N, here and elsewhere, are found by `pytest -k fault_NN`.
"""

from __future__ import annotations

import ast
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events
from textual.geometry import Size

import dfly_tui
from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from dfly_tui.screens.chats import ChatsScreen
from dfly_tui.widgets.answer import Answer
from dfly_tui.widgets.prose import Prose
from tests.app.app_driving import Opener, wait_until
from tests.app.terminal import slowness
from tests.tools.ui_latency import measure

TARGET = {"hidden_size": 64, "vocab_size": 100, "num_hidden_layers": 6}
DRAFTER = TARGET | {"target_layer_ids": [1, 3], "target_num_hidden_layers": 6}
CONTROLS = [chr(c) for c in [*range(32), 127, *range(128, 160)] if chr(c) != "\n"]


async def test_fault_01_markup_is_shown_verbatim_everywhere(open_app: Opener) -> None:
    async with open_app("echo") as d:
        for foreign in ("[/]", "[/foo]", "[bold", "[bold]x[/bold]", "a|b"):
            await d.ask(foreign)
            await d.answered()
            d.app.chat_screen.trouble(f"trouble {foreign}")
            d.app.notify(foreign, title=foreign, markup=False)
            await d.wait(lambda f=foreign: d.shown.count(f) >= 4)
            await d.pilot.press("escape", "ctrl+n")


async def test_fault_01_markup_in_options_tables_titles_and_dialogs_is_shown_verbatim(
    open_app: Opener, home: Path
) -> None:
    for name, config in (("[bold", TARGET), ("[foo]", DRAFTER)):
        folder = home / "data/models/x" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "model.safetensors").write_bytes(b"x")
    async with open_app("echo") as d:
        await d.ask("[/] title")
        await d.answered()
        await d.wait(lambda: d.shown.startswith("  [/] title"))
        await d.pilot.press("f6")
        await d.sees("x/[bold")
        await d.pilot.press("end", "up")
        await d.sees("x/[foo]")
        await d.pilot.press("escape", "ctrl+o")
        await d.wait(lambda: isinstance(d.app.screen, ChatsScreen) and "[/] title" in d.shown)
        await d.pilot.press("f2", *"[b]", "enter")
        await d.sees("[/] title[b]")
        await d.pilot.press("escape", "f8")
        await d.sees("Benchmark")
        await d.pilot.press("ctrl+s")
        await d.sees("code-3 [/]")
        assert all(f"code-{number} [/]" in d.shown for number in range(4))


async def test_fault_02_control_sequences_never_reach_the_terminal_and_the_store_keeps_them(
    open_app: Opener,
) -> None:
    async with open_app("controls") as d:
        await d.ask("x\x1b[2Jy")
        text = await d.answered()
        assert "\x1b]52;c;aGk=\x07" in text
        assert not any(c in d.shown for c in CONTROLS)
        assert "␛]52;c;aGk=␇" in d.shown


async def test_fault_08_fast_streams_lose_nothing_and_the_screen_keeps_up() -> None:
    slow = slowness()
    found = await measure(4000, 500)
    assert found.lost == 0
    assert found.behind < 0.5 * 1.2 * max(slow, slowness())


@pytest.mark.parametrize("scenario", ["abort", "aborthalf"])
async def test_fault_10_an_engine_that_aborts_leaves_the_chat_and_can_be_restarted(
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


async def test_fault_11_noise_on_descriptor_two_lands_in_the_log(
    open_app: Opener, home: Path
) -> None:
    async with open_app("noise") as d:
        await d.ask("hello")
        await d.answered()
        assert "noise" not in d.shown
    assert b"native noise" in (home / "data" / "engine.log").read_bytes()


async def test_fault_13_newline_keys_break_the_line_and_enter_sends(open_app: Opener) -> None:
    async with open_app("echo") as d:
        composer = d.app.chat_screen.composer
        for letter, key in (("a", "ctrl+j"), ("b", "shift+enter"), ("c", "shift+\r")):
            await d.pilot.press(letter)
            composer.post_message(events.Key(key, None))
            await d.pilot.pause()
        await d.pilot.press("d", "enter")
        await d.answered()
        assert d.app.talk.chat.turns[0].text == "a\nb\nc\nd"


async def test_fault_14_a_paste_of_lines_is_one_draft(open_app: Opener) -> None:
    async with open_app() as d:
        d.app.chat_screen.composer.post_message(events.Paste("one\r\ntwo\nthree"))
        await d.pilot.pause()
        assert d.app.chat_screen.composer.draft == "one\ntwo\nthree"
        assert not d.app.talk.chat.turns


async def test_fault_14_a_paste_of_a_megabyte_is_folded_and_sent_whole(open_app: Opener) -> None:
    async with open_app("story") as d:
        big = "x" * 1_000_000
        began = time.process_time()
        d.app.chat_screen.composer.post_message(events.Paste(big))
        await d.pilot.pause()
        assert "1,000,000 characters" in d.shown
        await d.pilot.press("x", "backspace")
        assert time.process_time() - began < 1.0
        assert d.app.chat_screen.composer.draft == big
        await d.pilot.press("enter")
        await d.answered()
        assert d.app.talk.chat.turns[0].text == big


async def test_fault_15_backspace_takes_whole_glyphs(open_app: Opener) -> None:
    async with open_app() as d:
        for draft, left in (
            ("a👨‍👩‍👧", "a"), ("ae\u0301", "a"), ("🇩🇪🇫🇷", "🇩🇪"), ("漢字", "漢"), ("👍🏽", ""),
            ("\u1100\u1161\u11a8", ""), ("x\n", "x"), ("xy", "x"),
        ):  # fmt: skip
            d.app.chat_screen.composer.set_draft(draft)
            await d.pilot.press("backspace")
            assert d.app.chat_screen.composer.draft == left


async def test_fault_15_borders_stay_straight_around_wide_glyphs(open_app: Opener) -> None:
    async with open_app("glyphs") as d:
        await d.ask("漢字 e\u0301 👨‍👩‍👧 🇩🇪")
        await d.answered()
        widths = {cell_len(row) for row in d.shown.split("\n")}
        assert widths == {120}
        assert "\ufffd" not in d.shown


async def test_fault_18_a_resize_while_streaming_leaves_a_clean_frame(open_app: Opener) -> None:
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


async def test_fault_03_stop_before_the_answer_was_asked_for_is_nothing(open_app: Opener) -> None:
    async with open_app() as d:
        await d.pilot.press("escape", "escape")
        d.app.talk.stop()
        await d.ask("hello")
        assert "fox" in await d.answered()


async def test_fault_04_five_of_fifty_tokens_are_kept_marked_and_used_as_history(
    open_app: Opener, home: Path
) -> None:
    async with open_app("fifty") as d:
        await d.ask("count")
        await d.wait(lambda: d.app.talk.chat.turns[-1].text == "t1 t2 t3 t4 t5")
        await d.pilot.press("escape")
        await d.answered()
        await d.pilot.press("ctrl+q")
        await d.wait(lambda: not d.app.is_running)
    async with open_app("told", resume=1) as d:
        await d.sees("t1 t2 t3 t4 t5")
        await d.sees("stopped")
        await d.ask("and then?")
        assert json.loads(await d.answered(4)) == [
            ["user", "count"], ["assistant", "t1 t2 t3 t4 t5"], ["user", "and then?"],
        ]  # fmt: skip
    stored = (home / "data/chats/000001.jsonl").read_text()
    assert "t6" not in stored


async def test_fault_05_an_answer_that_grew_equals_one_shown_at_once_also_after_a_theme_change(
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
        # The answer's own columns: the panel beside it may still count.
        before = [row[:70] for row in d.shown.split("\n")]
        d.app.theme = "dfly-light"
        await d.pilot.pause()
        assert [row[:70] for row in d.shown.split("\n")] == before
        assert grown.rows == whole.rows


async def test_fault_06_scrolled_up_the_view_stays_and_end_follows_again(open_app: Opener) -> None:
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


async def test_fault_07_forty_turns_keep_keys_quick_and_widgets_few() -> None:
    found = await measure(400, 150, turns=40, gap=0.02)
    assert len(found.cpu) >= 5
    assert found.p95 < 0.1
    assert found.widgets < 120
    assert found.lost == 0


def test_fault_15_our_own_chrome_has_no_wide_glyphs() -> None:
    sources = [*Path(dfly_tui.__file__).parent.rglob("*.py")]
    drawn = {c for source in sources for c in source.read_text("utf-8") if ord(c) > 127}
    assert len(drawn) > 5
    assert [c for c in sorted(drawn) if cell_len(c) != 1 or c == "\ufe0f"] == []


async def test_fault_20_text_is_never_used_as_an_id(open_app: Opener) -> None:
    async with open_app("fences") as d:
        for title in ("a|b", "[/] 1", "1 2#.x"):
            await d.ask(title)
            text = await d.answered()
            assert "```a|b" in text
            await d.sees("[/] 1 = 2")
            await d.pilot.press("ctrl+n")
        await d.pilot.press("ctrl+o")
        for title in ("a|b", "[/] 1", "1 2#.x"):
            await d.sees(title)
        await d.pilot.press("enter")
        await d.sees("[/] 1 = 2")


async def test_fault_16_an_emoji_split_over_steps_shows_no_replacement_character(
    open_app: Opener,
) -> None:
    async with open_app("glyphs", rate=50) as d:
        await d.ask("go")
        await d.answered()
        assert "👨‍👩‍👧" in d.app.query_one(Answer).prose.source
        assert "\ufffd" not in d.shown


@given(st.text(alphabet="ab *`#>-|\n[]()1.~_", max_size=80), st.lists(st.integers(1, 9)))
def test_fault_05_any_markdown_in_any_pieces_equals_the_whole(text: str, cuts: list[int]) -> None:
    grown, at = Prose(), 0
    grown.get_content_height(Size(40, 10), Size(40, 10), 40)
    for cut in [*cuts, len(text)]:
        grown.feed(text[at : at + cut])
        at += cut
    grown.settle()
    whole = Prose(text)
    whole.get_content_height(Size(40, 10), Size(40, 10), 40)
    assert grown.rows == whole.rows


async def test_fault_17_an_engine_that_cannot_start_is_one_line(home: Path) -> None:
    app = DflyApp(Engine(home / "engine.log", (str(home / "nowhere"),)), Start(home))
    async with app.run_test(size=(100, 30)) as pilot:
        await wait_until(lambda: "could not be started" in app.chat_screen.notice.words)
        await pilot.pause()
        assert "ctrl+r" in app.chat_screen.notice.words


def test_every_fault_of_the_list_has_a_test() -> None:
    names = [
        node.name
        for path in Path(__file__).parents[1].rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    faults = {name[:13] for name in names if name.startswith("test_fault_")}
    assert faults == {f"test_fault_{number:02d}" for number in range(1, 23)}
