"""Small terminals, no colours, little motion: what one needs to go on is in sight."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from rich.color_triplet import ColorTriplet
from textual.widgets import RadioButton
from textual.widgets._footer import FooterKey

from dfly_tui.screens.settings import _NAMES
from dfly_tui.widgets.keys import Keys
from tests.app.app_driving import Driver, Opener


@pytest.mark.parametrize(
    ("width", "there", "gone"),
    [
        (120, "Commands", ""),
        (60, "Commands", "line"),
        (50, "Commands", "Chats"),
        (30, "Help", "line"),
    ],
)
async def test_keys_that_have_no_room_are_left_out_the_least_needed_first(
    open_app: Opener, width: int, there: str, gone: str
) -> None:
    async with open_app(size=(120, 20)) as d:
        await d.pilot.resize_terminal(width, 20)
        await d.wait(lambda: d.app.screen.size.width == width)
        keys = d.app.screen.query_one(Keys)
        await d.wait(
            lambda: (
                all(key.region.right <= width for key in keys.query(FooterKey))
                and len(keys.query(FooterKey)) > 0
            )
        )
        await d.wait(lambda: there in d.shown.split("\n")[-1])
        shown = d.shown.split("\n")[-1]
        assert not gone or gone not in shown


def contrast(one: ColorTriplet, other: ColorTriplet) -> float:
    """How far two colours lie apart: 1 for the same, 21 for black and white (WCAG 2)."""

    def light(colour: ColorTriplet) -> float:
        parts = (part / 255 for part in colour)
        red, green, blue = (
            p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["dfly-dark", "dfly-light"])
async def test_in_our_themes_every_word_stands_out_from_its_ground(
    open_app: Opener, theme: str
) -> None:
    async def look(d: Driver) -> None:
        await d.pilot.pause()
        for segment in chain.from_iterable(d.app.screen._compositor.render_strips()):
            style = segment.style
            if not style or not re.search(r"\w", segment.text):
                continue
            assert style.color is not None
            assert style.bgcolor is not None
            colours = style.color.get_truecolor(), style.bgcolor.get_truecolor()
            assert contrast(*colours) >= 4, (segment.text, colours)

    async with open_app() as d:
        d.app.theme = theme
        await d.sees("Tab for an example")
        await look(d)
        await d.ask("hello")
        await d.answered()
        await look(d)
        await d.pilot.press("f7")
        await d.sees("empty: official; or folder")
        await look(d)
        await d.pilot.press("escape", "f8")
        await d.sees("empty: our 24")
        d.app.screen.query_one("#prompts").focus()  # the trials are selected: no placeholder
        await look(d)


async def test_behind_a_box_no_keys_are_shown_that_do_nothing_there(open_app: Opener) -> None:
    def foot(d: Driver) -> str:
        return d.shown.split("\n")[-1]

    async with open_app() as d:
        await d.wait(lambda: "Send" in foot(d) and "Example" in foot(d))
        await d.pilot.press("f9")
        await d.wait(lambda: not {"Send", "New", "Example", "Help"} & set(foot(d).split()))
        assert "Quit" in foot(d)
        await d.pilot.press("escape")
        await d.wait(lambda: "Send" in foot(d) and "Example" in foot(d))


async def test_only_other_keys_are_put_there_anew(open_app: Opener) -> None:
    async with open_app("halfway") as d:
        keys = d.app.screen.query_one(Keys)

        async def after_a_look() -> list[FooterKey]:
            d.app.screen.refresh_bindings()
            await d.pilot.pause()
            return list(keys.query(FooterKey))

        seen = [await after_a_look()]
        while not seen[-1] or seen[-1] not in seen[:-1]:  # the pair may just have been loaded
            assert len(seen) < 20
            seen.append(await after_a_look())
        await d.ask("hello")
        await d.wait(lambda: "Stop" in [key.description for key in keys.query(FooterKey)])
        await d.pilot.press("escape")
        await d.answered()
        await d.wait(lambda: "Stop" not in [key.description for key in keys.query(FooterKey)])
        await d.pilot.press("f7")
        left = d.app.screen.query_one(Keys)
        await d.pilot.press("escape")
        await d.wait(lambda: not left.is_attached)
        await left.recompose()  # its turn comes when the screen is gone


BOXES = {
    "ctrl+o": "Esc leaves",
    "f3": "drafted",
    "f4": "Esc leaves",
    "f6": "Esc leaves",
    "f9": "exact: the answer",
    "=/rename": "Esc leaves",
    "f1": "Send",
}


@pytest.mark.parametrize("size", [(60, 20), (50, 20), (30, 8)])
async def test_a_box_shows_its_text_and_the_way_out(
    open_app: Opener, size: tuple[int, int]
) -> None:
    async with open_app(size=size) as d:
        await d.ask("hello")
        await d.answered()
        for key, words in BOXES.items():
            if key.startswith("="):
                await d.ask(key[1:])
            else:
                await d.pilot.press(key)
            # Words may be wrapped, with the frame between them.
            await d.wait(lambda w=words: w in " ".join(re.findall(r"[\w:]+", d.shown)))
            await d.pilot.press("escape")
            await d.wait(lambda: d.app.screen is d.app.chat_screen)


async def test_reduced_motion_stops_animation_at_once_and_is_kept(open_app: Opener) -> None:
    async with open_app() as d:
        level: str = d.app.animation_level
        assert level == "full"
        await d.pilot.press("f9", *["down"] * (len(_NAMES) - 1), "enter")
        await d.wait(lambda: d.app.animation_level == "none")
    async with open_app() as d:
        assert d.app.settings.reduced_motion
        assert d.app.animation_level == "none"


async def test_a_step_can_be_read_without_colour(
    open_app: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_app() as d:
        await d.ask("hello")
        await d.answered()
        # Two accepted, four refused, the target's own: a glyph for each, as no more was drafted.
        await d.sees("●●○○○○◆")
        assert d.app.no_color


@pytest.mark.parametrize("size", [(120, 40), (50, 20), (30, 8), (10, 5)])
async def test_without_colour_the_app_opens_at_every_size(
    open_app: Opener, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_app(size=size) as d:
        await d.ask("hello")
        assert "fox" in await d.answered()


@pytest.mark.parametrize("theme", ["dfly-dark", "dfly-light", "ansi-dark", "ansi-light"])
async def test_a_choice_that_is_not_taken_can_be_seen(open_app: Opener, theme: str) -> None:
    async with open_app() as d:
        d.app.theme = theme
        await d.pilot.press("f7")
        await d.sees("8 bit")
        style = d.app.screen.query(RadioButton)[1].get_component_styles("toggle--button")
        color, ground = style.color, style.background
        # Of sixteen colours the terminal's own can be read on its ground.
        ansi = theme.startswith("ansi")
        assert ansi == (color.ansi == ground.ansi == -1)
        assert ansi or abs(color.brightness - ground.brightness) > 0.3
