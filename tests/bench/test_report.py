"""Rows, withheld rows, and the tables both front ends show."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from dfly_core.records.marks import Company, mark_lines, marks
from dfly_core.records.report import (
    HEADINGS,
    NO_CATEGORY,
    Trial,
    Withheld,
    by_category,
    cells,
    make_row,
    markdown,
    why_withheld,
)

BASE = [Trial(10, True, rate, 0.1, 0.05, 900) for rate in (19.0, 21.0, 20.0)]
FAST = [Trial(10, True, rate, 0.2, 0.05, 1000, 4.0, 0.5, 3) for rate in (48.0, 52.0, 50.0)]
REASON = Withheld(0, 3, 5, 6, "a", "b", (1.5, 1.25), 0.25, 2, 1, "a block", "token 3 is off")

HARDWARE = dict.fromkeys(("chip", "os", "mlx", "mlx_lm", "python"), "X1") | {"memory_gb": 16}


def row(id: str, category: str, withheld: Withheld | None = None) -> dict[str, Any]:
    return asdict(make_row(id, category, BASE, FAST, withheld))


def test_a_row_holds_medians_and_their_spread() -> None:
    found = row("a", "code")
    assert found["baseline_tps_median"] == 20.0
    assert found["dfly_tps_median"] == 50.0
    assert found["speedup"] == pytest.approx(2.5)
    assert found["baseline_tps_spread"] == (19.0, 21.0)
    assert found["mean_accepted_length_median"] == 4.0
    assert found["acceptance_rate_median"] == 0.5
    assert found["dfly_ttft_median"] == 0.2
    assert (found["baseline_peak_memory_bytes"], found["dfly_peak_memory_bytes"]) == (900, 1000)
    assert found["parity"] is True
    assert found["withheld"] is None


def test_a_withheld_row_shows_no_number_that_could_be_quoted() -> None:
    found = row("a", "code", REASON)
    assert found["parity"] is False
    medians = [v for k, v in found.items() if k.endswith(("_median", "_spread")) or k == "speedup"]
    assert medians
    assert set(medians) == {None}
    assert all(trial["tokens_per_second"] is None for trial in found["dfly_trials"])
    assert cells(found) == ("a", "-", "-", "-", "-", "-", "WITHHELD")
    assert why_withheld(found) == "a withheld: token 3 is off"


def test_a_row_as_cells_fits_the_headings() -> None:
    assert cells(row("a", "code")) == ("a", "20.0", "50.0", "2.50x", "4.00", "50%", "equal")
    assert len(HEADINGS) == 7
    assert why_withheld(row("a", "code")) is None


def test_categories_count_what_stands_and_take_medians_of_it() -> None:
    rows = [row("a", "code"), row("b", "chat", REASON), row("c", "code", REASON)]
    found = by_category(rows)
    assert [(f["id"], f["parity_words"]) for f in found] == [
        ("code", "1 of 2"),
        ("chat", "0 of 1"),
        ("all", "1 of 3"),
    ]
    assert cells(found[0]) == ("code", "20.0", "50.0", "2.50x", "4.00", "50%", "1 of 2")
    assert cells(found[1])[1:6] == ("-",) * 5


def test_rows_without_a_category_are_summed_up_among_all_only() -> None:
    bare = [row("a", NO_CATEGORY), row("b", NO_CATEGORY)]
    assert [(f["id"], f["parity_words"]) for f in by_category(bare)] == [("all", "2 of 2")]
    mixed = by_category([*bare, row("c", "code")])
    assert [(f["id"], f["parity_words"]) for f in mixed] == [("code", "1 of 1"), ("all", "3 of 3")]


def test_a_page_names_machine_verification_and_withheld_rows() -> None:
    report = {
        "model": "m", "draft": "d", "trials": 3, "max_tokens": 128,
        "hardware": HARDWARE,
        "verify": {"words": "exact: so and so"},
        "results": [row("a|b", "code"), row("c", "code", REASON)],
    }  # fmt: skip
    page = markdown(report)
    assert "X1" in page
    assert page.startswith("# Target m, drafter d\n")
    assert "\nVerify exact: so and so.\n" in page
    assert "| category | target tok/s |" in page
    assert "| a\\|b | 20.0 | 50.0 | 2.50x | 4.00 | 50% | equal |" in page
    assert "- c withheld: token 3 is off" in page


def trials(*rates: float, cycles: int = 3) -> list[Trial]:
    mean = 4.0 if cycles else None
    return [Trial(10, True, rate, 0.1, 0.05, 900, mean, None, cycles) for rate in rates]


def plain(baseline: list[Trial], dfly: list[Trial], company: Company | None = None) -> Any:
    found = asdict(make_row("a", "code", baseline, dfly, None, company))
    return json.loads(json.dumps(found))


def test_rates_of_one_trial_are_marked_where_they_stand() -> None:
    found = plain(trials(1.0), trials(32.0))
    assert found["marks"] == ["1 trial: no spread"]
    assert cells(found)[3] == "32.00x?"
    assert cells(by_category([found])[0])[3] == "32.00x?"
    assert mark_lines([found]) == [
        "1 of 1 rows doubtful (?), and so are medians over them:",
        "- 1 trial: no spread (every row)",
    ]
    assert plain(trials(1.0, 1.0), trials(2.0, 2.0))["marks"] == ["2 trials: no spread"]
    assert plain(trials(10.0, 11.0, 9.5), trials(20.0, 21.0, 19.0))["marks"] == []


def test_a_side_whose_middle_half_spreads_by_more_than_a_fifth_is_noisy() -> None:
    wild = plain(trials(10.0, 10.0, 10.0), trials(20.0, 30.0, 50.0))
    assert wild["marks"] == ["noisy (DFly 20.0 to 50.0 tok/s)"]
    # One trial that met something else moves neither the median nor the middle half.
    assert plain(trials(*[10.0] * 5), trials(20.0, 20.5, 21.0, 20.2, 2.0))["marks"] == []
    both = plain(trials(10.0, 20.0, 30.0), trials(20.0, 30.0, 50.0))
    assert both["marks"] == ["noisy (target 10.0 to 30.0 tok/s, DFly 20.0 to 50.0 tok/s)"]


def test_company_marks_a_row_and_our_own_threads_do_not() -> None:
    quiet, busy = Company(2.4, 2, 1.9), Company(3.7, 2, 1.2)
    calm = trials(10.0, 10.0, 10.0)
    assert plain(calm, calm, quiet)["marks"] == []
    found = plain(calm, calm, busy)
    assert found["marks"] == ["the machine was busy (load 3.7 on 2 cores, 1.2 of it ours)"]
    assert found["company"] == {"average": 3.7, "cores": 2, "own": 1.2}


def test_a_page_marks_rows_and_counts_them_by_the_medians() -> None:
    report = {
        "model": "m", "draft": "d", "trials": 1, "max_tokens": 128,
        "hardware": HARDWARE,
        "verify": {"words": "exact: so and so"},
        "results": [plain(trials(1.0), trials(2.0)), row("c", "code"), row("d", "code", REASON)],
    }  # fmt: skip
    page = markdown(report)
    assert "1 trial of at most" in page
    assert "| 2.00x? | 4.00 | - | equal | 1 trial: no spread |" in page
    assert "| c | 20.0 | 50.0 | 2.50x | 4.00 | 50% | equal |  |" in page
    assert "| 2 of 3 | 1 of 2 rows doubtful (?) |" in page


def test_a_row_that_never_drafted_has_no_ratio_and_says_why() -> None:
    found = plain(trials(10.0, 10.0, 10.0), trials(11.0, 11.0, 11.0, cycles=0))
    assert found["speedup"] is None
    assert found["no_speedup"].startswith("no trial drafted")
    assert cells(found)[3:5] == ("-", "did not draft")
    assert row("a", "code")["no_speedup"] is None


def test_reports_of_before_are_read_as_ever() -> None:
    old = plain(trials(10.0), trials(11.0, cycles=0))
    for name in ("marks", "company", "no_speedup"):
        del old[name]
    old["speedup"] = 1.1  # a ratio of noise, which reports once held
    assert cells(old)[3] == "-"
    assert marks(old) == ("1 trial: no spread",)
    assert by_category([old])[0]["speedup"] is None
