"""The wizard's target: what is checked against it, and what the result can be used with."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from dfly_core.records.commands import Load
from dfly_tui.screens.convert import ConvertScreen
from dfly_tui.screens.dialogs import AskLine
from dfly_tui.screens.models import ModelsScreen
from dfly_tui.state.models import find_models
from dfly_tui.state.use import fit_words, use_of
from dfly_tui.text import middle
from dfly_tui.widgets.line_input import LineInput
from tests.app.app_driving import Driver, Opener
from tests.app.test_screens import DRAFTER, TARGET, model

QWEN_DRAFTER = {"hidden_size": 4096, "target_num_hidden_layers": 36, "vocab_size": 151936}
QWEN_DRAFTER |= {"target_layer_ids": [1, 33]}  # type: ignore[dict-item]


async def begin(d: Driver, source: Path, target: str = "") -> None:
    """Open the wizard with these."""
    await d.pilot.press("f7")
    await d.wait(lambda: isinstance(d.app.screen, ConvertScreen))
    d.app.screen.query_one("#source", Input).value = str(source)
    d.app.screen.query_one("#target", Input).value = target


async def test_a_result_that_fits_nothing_is_not_offered_until_a_target_is_named_that_it_fits(
    open_app: Opener, home: Path
) -> None:
    source = model(home / "source", **(DRAFTER | {"target_num_hidden_layers": 80}))
    model(home / "data/models/small", **TARGET)
    large = model(home / "elsewhere/large", **(TARGET | {"num_hidden_layers": 80}))
    async with open_app("converts") as d:
        await begin(d, source)
        await d.pilot.press("ctrl+s")
        await d.sees("It can't be used now: no target on this machine fits it: it was made for 80")
        assert "Use it now" not in d.shown
        await d.pilot.press("ctrl+y")
        await d.wait(lambda: any("can't be used now" in n.message for n in d.app._notifications))
        d.app.screen.query_one("#target", Input).value = str(large)
        await d.sees("ctrl+y uses it now, with large")
        await d.sees("Use it now")
        # What empties a field is no key to leave the page with.
        target = d.app.screen.query_one("#target", LineInput)
        target.focus()
        await d.pilot.press("ctrl+u")
        await d.sees("It can't be used now")
        assert target.value == ""
        target.value = str(large)
        await d.sees("Use it now")
        await d.pilot.press("ctrl+y")
        await d.wait(lambda: d.app.screen is d.app.chat_screen and d.ready)
        assert d.app.loaded == Load(str(large), str(home / "data/models/source-MLX"))
        # F6 says which pair that is.
        await d.pilot.press("f6")
        await d.sees("In use: large + source-MLX")


async def test_the_check_is_against_the_target_that_is_named(open_app: Opener, home: Path) -> None:
    source = model(home / "source", **DRAFTER)
    model(home / "data/models/good", **TARGET)
    bad = model(home / "data/models/bad", **(TARGET | {"vocab_size": 7}))
    async with open_app() as d:
        await begin(d, source, str(bad))
        await d.pilot.press("enter")
        await d.sees("target bad: does not fit, made for a vocabulary of 100, this target has 7")
        await d.sees("speed: from bad")
        # Another target: what was found is void.
        d.app.screen.query_one("#target", Input).value = "models/good"
        await d.sees("Enter checks: layout, gates")
        await d.pilot.press("enter")
        await d.sees("target good: fits")


def test_how_a_drafter_can_be_used(tmp_path: Path) -> None:
    qwen = model(tmp_path / "qwen", **QWEN_DRAFTER)
    drafter = model(tmp_path / "drafter", **DRAFTER)
    target = model(tmp_path / "target", **TARGET)
    wide = model(tmp_path / "wide", **(TARGET | {"hidden_size": 128}))
    found = find_models([("folder", tmp_path)])
    assert use_of(drafter, "", found, "auto").load == Load(str(target), str(drafter), verify="auto")
    refused = use_of(drafter, str(wide), found, "exact")
    assert refused.load is None
    assert (
        refused.words == "it does not fit wide: made for a hidden size of 64, this target has 128"
    )
    assert use_of(drafter, "", [], "exact").load is None
    # Made for the official target: that is fetched.
    assert use_of(qwen, "", found, "exact").load == Load(None, str(qwen))
    assert use_of(qwen, "org/name", found, "exact").load == Load("org/name", str(qwen))
    assert fit_words(None, str(target), found).endswith(
        "does not fit, made for a hidden size of 4,096, this target has 64"
    )
    assert "this is a drafter" in fit_words(str(drafter), str(drafter), found)
    assert "not on this machine" in fit_words(str(drafter), "org/name", found)
    assert fit_words(str(drafter), str(target), found) == "target target: fits"


async def test_one_thing_at_a_time_is_said_and_so_is_that_there_is_no_result(
    open_app: Opener,
) -> None:
    async with open_app("halfway") as d:
        await d.pilot.press("f7")
        d.app.screen.query_one("#bits").focus()
        for keys, words in (
            (("ctrl+y",), "There is no result yet: ctrl+s converts"),
            (("ctrl+s", "ctrl+s"), "The conversion still runs; Esc stops it"),
        ):
            await d.pilot.press(*keys)
            await d.wait(lambda w=words: any(w in n.message for n in d.app._notifications))


async def test_a_reason_that_stands_under_check_is_not_said_again_under_output(
    open_app: Opener,
) -> None:
    why = "x/y could not be fetched from the hub: check the network"
    async with open_app("nonet", size=(120, 40)) as d:
        await d.pilot.press("f7", "ctrl+s")
        await d.sees(why)  # without a check it is said where it belongs
        await d.pilot.press("enter")
        await d.sees(f"can't convert: {why}")
        await d.pilot.press("ctrl+s")
        await d.sees("Not converted: the reason stands under Check")
        assert d.shown.count(why) == 1


@pytest.mark.parametrize("screen", ["export", "output"])
async def test_at_60_columns_a_path_shows_the_end_that_names_the_file(
    open_app: Opener, home: Path, screen: str
) -> None:
    async with open_app(size=(60, 20)) as d:
        if screen == "export":
            await d.ask("hello")
            await d.answered()
            await d.ask("/export")
            await d.sees("chat-1.md")
        else:
            await d.pilot.press("f7")
            d.app.screen.query_one("#output").scroll_visible(animate=False)
            await d.sees("Qwen3-8B-DFly-Block8-MLX")


def test_a_path_is_cut_in_its_middle() -> None:
    assert middle("/a/long/way/to/file.md", 40) == "/a/long/way/to/file.md"
    assert middle("/a/long/way/to/file.md", 14) == "/a/lo…/file.md"
    assert len(middle("/a/long/way/to/file.md", 13)) == 13


async def test_f6_marks_the_pair_in_use(open_app: Opener, home: Path) -> None:
    target = model(home / "data/models/target", **TARGET)
    model(home / "data/models/other", **DRAFTER)
    good = model(home / "data/models/good", **DRAFTER)
    async with open_app() as d:
        await d.pilot.press("f6")
        await d.sees("In use: embedded pair")
        await d.sees("in use · comes with this program")
        await d.pilot.press("escape")
        d.app.load(Load(str(target), str(good)))
        await d.wait(lambda: d.ready)
        await d.pilot.press("f6")
        await d.wait(lambda: isinstance(d.app.screen, ModelsScreen))
        await d.sees("In use: target + good")
        # The cursor begins on both; no other is marked.
        await d.wait(lambda: d.shown.count("in use · ") == 2)
        await d.pilot.press("enter", "enter")
        await d.wait(lambda: d.app.screen is d.app.chat_screen and d.ready)
        assert d.app.loaded == Load(str(target), str(good))


async def test_a_typed_model_that_is_none_is_refused_where_it_is_typed(
    open_app: Opener, home: Path
) -> None:
    target = model(home / "target", **TARGET)
    drafter = model(home / "drafter", **DRAFTER)
    (home / "empty").mkdir()

    async def type_it(d: Driver, name: str) -> str:
        await d.wait(lambda: isinstance(d.app.screen, AskLine))
        d.app.screen.query_one(Input).value = name
        await d.pilot.press("enter")
        await d.pilot.pause()
        return " ".join(d.shown.split())

    async with open_app() as d:
        await d.pilot.press("f6", "end", "enter")
        assert "there is no folder nowhere: name one" in await type_it(d, "nowhere")
        assert "there is no model in" in await type_it(d, str(home / "empty"))
        assert "~nouser-here/x can't be read" in await type_it(d, "~nouser-here/x")
        assert "is a drafter, not a target" in await type_it(d, str(drafter))
        await type_it(d, "owner/model")  # the engine finds out
        assert "Empty means none" in d.shown
        assert "is a target, not a drafter" in await type_it(d, str(target))
        await type_it(d, str(drafter))
        await d.wait(lambda: d.app.screen is d.app.chat_screen)
        assert d.app.loading.wanted == Load("owner/model", str(drafter))
