"""Dialogs do what they say: what deletes, what overwrites, what stays typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, Static

from dfly_tui.screens.bench import BenchScreen
from dfly_tui.screens.chats import ChatsScreen
from dfly_tui.screens.convert import ConvertScreen, for_here, report_lines
from dfly_tui.screens.dialogs import AskLine, Confirm
from dfly_tui.state.export import export, free_name
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


async def name_it(d: Driver, name: Path) -> None:
    await d.wait(lambda: isinstance(d.app.screen, AskLine))
    d.app.screen.query_one(Input).value = str(name)
    await d.pilot.press("enter")
    await d.pilot.pause()


async def refused(d: Driver, name: Path, words: str) -> None:
    """The name is refused in these words, and stays typed."""
    await name_it(d, name)
    assert isinstance(d.app.screen, AskLine)
    fault = d.app.screen.query_one(".fault", Static)
    assert fault.display
    assert words in str(fault.content)  # on the screen a long path breaks them anywhere
    assert d.app.screen.query_one(Input).value == str(name)


async def test_an_export_overwrites_nothing_and_makes_no_folder(
    open_app: Opener, home: Path
) -> None:
    mine = home / "mine.md"
    mine.write_text("mine")
    async with open_app(size=(200, 40)) as d:
        await asked(d)
        await d.ask("/export")
        await refused(d, mine, "mine.md exists: choose another name")
        await refused(d, home / "deep/er/x.md", "there is no folder")
        await name_it(d, home / "x.md")
        assert d.app.screen is d.app.chat_screen
        await d.ask("/export")
        await d.wait(lambda: isinstance(d.app.screen, AskLine))
        await d.pilot.press("enter")  # our own folder is made
        await d.wait((home / "data/exports/chat-1.md").exists)
    assert mine.read_text() == "mine"
    assert not (home / "deep").exists()
    assert "hello" in (home / "x.md").read_text()


async def test_a_reports_export_overwrites_nothing_and_makes_no_folder(
    open_app: Opener, home: Path
) -> None:
    mine = home / "mine.md"
    mine.write_text("mine")
    async with open_app(size=(200, 40)) as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        await d.pilot.press("ctrl+s")
        await d.sees("Report:")
        await d.pilot.press("ctrl+e")
        await refused(d, mine, "mine.md exists: choose another name")
        await refused(d, home / "deep/er/x.md", "there is no folder")
        await name_it(d, home / "x.md")
        assert isinstance(d.app.screen, BenchScreen)
    assert mine.read_text() == "mine"
    assert not (home / "deep").exists()
    assert "code-0" in (home / "x.md").read_text()


def test_odd_names_are_refused_in_words_and_a_free_name_is_offered(tmp_path: Path) -> None:
    assert "not exported" in export("x", "~nobody-of-that-name/x", tmp_path)
    assert "not exported" in export("x", str(tmp_path / "a\0b"), tmp_path)
    assert "exists" in export("x", str(tmp_path), tmp_path)
    first, second = tmp_path / "a.md", tmp_path / "a-2.md"
    for free in (first, second):
        assert free_name(first) == free
        assert export("\ud800", str(free), tmp_path) == ""
    assert free_name(first) == tmp_path / "a-3.md"


async def test_broken_settings_are_kept_and_the_file_is_named(open_app: Opener, home: Path) -> None:
    data = home / "data"
    data.mkdir()
    (data / "settings.json").write_text("{ my own")
    async with open_app() as d:
        assert "settings.json.bad" in d.app.chat_screen.notice.words
        assert not (data / "settings.json.bad").exists()
        d.app.save_settings()
        await d.sees("Your broken settings are kept in settings.json.bad")
    assert (data / "settings.json.bad").read_text() == "{ my own"


async def test_the_list_shows_the_numbers_that_resume_takes(open_app: Opener) -> None:
    async with open_app("echo") as d:
        for text in ("about foxes", "about lanterns"):
            await d.ask(text)
            await d.answered()
            await d.pilot.press("ctrl+n")
        await d.pilot.press("ctrl+o")
        await d.sees("2  about lanterns")
        assert "1  about foxes" in d.shown
        assert "--resume" in d.shown


async def test_export_takes_a_file_and_says_why_it_cannot_be_written(
    open_app: Opener, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app() as d:
        await d.ask("hello")
        await d.answered()
        out = home / "my chat.md"
        await d.ask(f"/export {out}")
        await d.wait(out.exists)
        assert out.read_text().startswith("# hello")
        assert d.app.screen is d.app.chat_screen
        await d.ask(f"/export {out}")
        await d.wait(lambda: "exists: choose another name" in d.app.chat_screen.notice.words)
        monkeypatch.chdir(home)
        await d.ask("/export my chat.md")
        wanted = "my chat.md exists: choose another name"  # the name as it is, not "My chat.md"
        await d.wait(lambda: d.app.chat_screen.notice.words == wanted)


async def test_a_number_out_of_range_is_refused_plainly_and_stays_typed(open_app: Opener) -> None:
    async with open_app() as d:
        await d.pilot.press("f9", "down", "down", "down", "enter")
        await d.wait(lambda: isinstance(d.app.screen, AskLine))
        await refused(d, Path("99999999"), "max tokens is a number from 1 to 1000000")
        await name_it(d, Path("77"))
        assert d.app.settings.max_tokens == 77


async def test_a_width_that_the_pair_cannot_verify_is_refused_where_it_is_typed(
    open_app: Opener,
) -> None:
    async with open_app() as d:
        await d.pilot.press("f9", *["down"] * 4, "enter")
        await d.wait(lambda: isinstance(d.app.screen, AskLine))
        await refused(d, Path("8"), "width is a number from 0 to 7, or auto")
        await name_it(d, Path("7"))
        assert d.app.settings.width == 7
        await d.pilot.press("enter")
        await d.wait(lambda: isinstance(d.app.screen, AskLine))
        await name_it(d, Path("auto"))
        assert d.app.settings.width is None


async def test_an_error_goes_when_another_source_is_chosen(open_app: Opener) -> None:
    async with open_app("misfit") as d:
        await d.pilot.press("f7", "ctrl+s")
        await d.wait(lambda: isinstance(d.app.screen, ConvertScreen))
        await d.sees("use revision 5712926")
        await d.pilot.press(*"org/x")
        await d.wait(lambda: "use revision 5712926" not in d.shown)


def test_a_remedy_is_one_that_the_page_has() -> None:
    there = "/x is in the MLX format already: nothing to convert"
    words = f"can't convert: {there}: use it as it is (--draft /x (2)/y)\nmore"
    assert for_here(words) == f"can't convert: {there}: F6 in the chat chooses it\nmore"


def test_a_conversions_agreement_is_told_in_few_digits() -> None:
    lines = report_lines({"agreement": {"cosine_mean": 0.9992694854736328, "rows": 1234567}})
    assert "Against the unquantised drafter: cosine mean 0.999269, rows 1234567" in lines
