"""Short-lived lines lie where nobody reads just then."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from dfly_tui.widgets.keys import Keys
from dfly_tui.widgets.rows_table import RowsTable
from tests.app.app_driving import Driver, Opener

SIZES = [(120, 40), (80, 24), (60, 20)]


def rows(d: Driver, words: str) -> list[int]:
    return [at for at, row in enumerate(d.shown.splitlines()) if words in row]


@pytest.mark.parametrize("size", SIZES)
async def test_a_line_lies_over_the_keys_and_hides_no_hint(
    open_app: Opener, size: tuple[int, int]
) -> None:
    async with open_app(size=size) as d:
        d.app.chat_screen.composer.set_draft("/co")
        await d.sees("/convert")
        d.app.say_line("A line that tells something")
        await d.sees("A line that tells something")
        assert rows(d, "A line that tells something") == [size[1] - 1]
        assert d.app.chat_screen.query_one(Keys).region.y == size[1] - 1
        assert len(rows(d, "/convert")) == 1
        assert len(rows(d, "/co ")) == 1


async def test_a_long_line_leaves_what_is_typed_in_sight(open_app: Opener, home: Path) -> None:
    async with open_app(size=(60, 20)) as d:
        d.app.chat_screen.composer.set_draft("my words")
        d.app.say_line("Some words and then " + "/a/long/path" * 16)
        await d.sees("Some words")
        assert rows(d, "my words")
        assert rows(d, "/a/long/path")
        d.app.action_export()
        await d.sees("Export as Markdown to")
        d.app.screen.query_one(Input).value = f"{home}/{'long-' * 12}name.md"
        await d.pilot.press("enter")
        await d.sees("name.md")
        assert rows(d, "Exported to /") == [19]


@pytest.mark.parametrize("size", SIZES)
async def test_a_line_hides_no_column_of_the_parity_table(
    open_app: Opener, size: tuple[int, int]
) -> None:
    async with open_app(size=size) as d:
        await d.pilot.press("f8", "ctrl+s")
        await d.sees("Report: ")
        d.app.say_line("A line that tells something")
        await d.sees("A line that tells something")
        (at,) = rows(d, "A line that tells something")
        table = d.app.screen.query_one(RowsTable).region
        assert at >= table.bottom
        assert at == size[1] - 1


async def test_in_a_low_terminal_a_line_lies_above_what_is_typed(open_app: Opener) -> None:
    async with open_app(size=(60, 8)) as d:
        d.app.chat_screen.composer.set_draft("my words")
        d.app.say_line("A line that tells something")
        await d.sees("A line that tells something")
        assert rows(d, "my words")
