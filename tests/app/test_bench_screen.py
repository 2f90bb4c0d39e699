"""The benchmark tab compares a report with another one, or says why not."""

from __future__ import annotations

import json
from pathlib import Path

from textual.widgets import Input, OptionList

from dfly_tui.screens.bench import BenchScreen
from dfly_tui.state.reports import compared_categories, read_reports
from tests.app.app_driving import Driver, Opener
from tests.app.engine_script import bench_row


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
        # Three rows that both published, their category, and nothing else.
        assert d.shown.count("1.00x of bench-1") == 4
        await d.sees("3 of 4 · 1.00x of bench-1")


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
        path.with_name("stopped.json").write_text(json.dumps(report | {"results": []}))
        assert [r.path.stem for r in read_reports(path.parent)] == ["bench-2", "bench-1"]
        for row in report["results"]:
            row["id"], row["dfly_tps_median"] = row["id"].removeprefix("other "), None
        path.write_text(json.dumps(report))
        await measured(d, 3)
        # Written to last, bench-1 comes right after the newest; it is chosen all the same.
        d.app.screen.query_one("#reports", OptionList).highlighted = 1
        await d.pilot.press("ctrl+k")
        await d.sees("bench-3 and bench-1 have no prompt that both published")


async def test_where_the_change_stands_in_place_of_parity_the_heading_says_so(
    open_app: Opener,
) -> None:
    async with open_app(size=(80, 24)) as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        await measured(d, 1)
        await d.sees("parity")
        await measured(d, 2)
        await d.pilot.press("ctrl+k")
        await d.sees("rate vs")
        assert "parity" not in d.shown
        await d.pilot.resize_terminal(120, 40)
        await d.sees("equal · 1.00x of bench-1")
        await d.sees("parity")


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
        await d.sees("3 of 3 rows doubtful (?)")
        await d.sees("code-0 [/]? 1 trial: no spread")
        d.app.screen.query_one("#trials", Input).value = "3"
        await measured(d, 2)
        await d.sees("2.20x ")
        assert "2.20x?" not in d.shown
        assert "no spread" not in d.shown


def test_a_category_changed_as_its_rows_middle_did() -> None:
    rows = [bench_row(number) | {"category": "ab"[number // 2]} for number in (0, 1, 2, 3)]
    rates = {"code-0 [/]": 55.0, "code-1 [/]": 111.0, "code-3 [/]": 113.0 * 4}
    before = [row | {"dfly_tps_median": rates.get(str(row["id"]))} for row in rows]
    # Of a: 2.00 and 1.00; of b: only 0.25, the other is withheld; of all: the middle of three.
    assert compared_categories(rows, before) == [1.5, 0.25, 1.0]
    assert compared_categories(rows, []) == [None, None, None]


async def test_below_76_columns_too_it_is_said_that_a_categorys_figures_are_medians(
    open_app: Opener,
) -> None:
    async with open_app(size=(60, 40)) as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        await measured(d, 1)
        # The line wraps.
        await d.wait(lambda: "Categories: medians of their rows" in " ".join(d.shown.split()))


async def test_progress_says_what_its_numbers_are(open_app: Opener) -> None:
    async with open_app("halfway") as d:
        await d.pilot.press("f8", "ctrl+s")
        await d.sees("bench 50% · 6 of 12 trials · 0.5 trials/s · 12 s left · prompt code-2")


async def test_at_30_by_8_the_form_is_there_first_then_rows_and_progress(open_app: Opener) -> None:
    async with open_app("halfway", size=(30, 8)) as d:
        await d.pilot.press("f8")
        await d.sees("trials")
        await d.sees("prompts")
        await d.pilot.press("ctrl+s")
        await d.sees("6 of 12")
        await d.sees("code-0")
        await d.sees("code-1")
        await d.sees("2 rows")
        await d.sees("Stop")
        assert "prompts" not in d.shown
        await d.pilot.press("escape")
        await d.wait(lambda: not d.app.desk.busy)
        await d.sees("code-1")


async def test_a_run_stopped_before_its_first_row_says_that_nothing_was_kept(
    open_app: Opener, home: Path
) -> None:
    async with open_app("slowrow") as d:
        await d.pilot.press("f8", "ctrl+s")
        await d.sees("0 of 12")
        await d.pilot.press("escape")
        await d.sees("Stopped before a row was finished: nothing was kept")
        assert "Report" not in d.shown
        assert list((home / "data/reports").iterdir()) == []


async def test_keys_that_can_do_nothing_say_why(open_app: Opener) -> None:
    async with open_app("halfway") as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        none, running = "There are no rows yet: ctrl+s measures", "The benchmark still runs"
        for key, words in (("ctrl+e", none), ("ctrl+k", none), ("ctrl+s", "")):
            await d.pilot.press(key)
            await d.wait(lambda w=words: any(w in n.message for n in d.app._notifications) or not w)
        await d.sees("6 of 12")
        for key in ("ctrl+e", "ctrl+k", "ctrl+s"):
            d.app.clear_notifications()
            await d.pilot.press(key)
            await d.wait(lambda: any(running in n.message for n in d.app._notifications))
