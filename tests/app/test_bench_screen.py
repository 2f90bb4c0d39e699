"""The benchmark tab compares a report with another one, or says why not."""

from __future__ import annotations

import json
from pathlib import Path

from textual.widgets import Input, OptionList

from dfly_tui.screens.bench import BenchScreen
from tests.app.app_driving import Driver, Opener


async def measured(d: Driver, number: int) -> None:
    """Run the benchmark; the report has that number."""
    await d.pilot.press("ctrl+s")
    await d.sees(f"bench-{number}.json")
    await d.wait(lambda: not d.app.desk.busy)
    await d.pilot.pause()


async def test_a_new_report_is_compared_with_the_one_before_it(open_app: Opener) -> None:
    async with open_app(size=(160, 40)) as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        await measured(d, 1)
        await d.pilot.press("ctrl+k")
        await d.sees("There is no report before bench-1 to compare it with")
        assert "of bench-1" not in d.shown
        await measured(d, 2)
        await d.pilot.press("ctrl+k")
        await d.sees("1.00x of bench-1")


async def test_reports_without_a_prompt_in_common_say_so(open_app: Opener, home: Path) -> None:
    async with open_app(size=(160, 40)) as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        await measured(d, 1)
        path = home / "data/reports/bench-1.json"
        report = json.loads(path.read_text())
        for row in report["results"]:
            row["id"] = f"other {row['id']}"
        path.write_text(json.dumps(report))
        await measured(d, 2)
        await d.pilot.press("ctrl+k")
        await d.sees("bench-2 and bench-1 have no prompt in common")
        for row in report["results"]:
            row["id"], row["dfly_tps_median"] = row["id"].removeprefix("other "), None
        path.write_text(json.dumps(report))
        await measured(d, 3)
        # Written to last, bench-1 comes right after the newest; it is chosen all the same.
        d.app.screen.query_one("#reports", OptionList).highlighted = 1
        await d.pilot.press("ctrl+k")
        await d.sees("bench-3 and bench-1 have no prompt that both published")


async def test_the_legend_says_what_a_categorys_speed_up_is(open_app: Opener) -> None:
    async with open_app(size=(160, 40)) as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        await measured(d, 1)
        await d.sees("Category speed-up: median of its rows' own")


async def test_rates_of_one_trial_are_marked_in_the_table_and_by_the_median(
    open_app: Opener,
) -> None:
    async with open_app(size=(160, 40)) as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        d.app.screen.query_one("#trials", Input).value = "1"
        await measured(d, 1)
        await d.sees("2.20x?")
        await d.sees("3 of 3 rows marked")
        await d.sees("code-0 [/]? 1 trial: no spread")
        d.app.screen.query_one("#trials", Input).value = "3"
        await measured(d, 2)
        await d.sees("2.20x ")
        assert "2.20x?" not in d.shown
        assert "no spread" not in d.shown
