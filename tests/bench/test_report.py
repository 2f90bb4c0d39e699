"""Rows, withheld rows, and the tables both front ends show."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from dfly_core.records.report import (
    HEADINGS,
    Trial,
    Withheld,
    by_category,
    cells,
    make_row,
    markdown,
    why_withheld,
)

BASE = [Trial(10, True, rate, 0.1, 0.05, 900) for rate in (10.0, 30.0, 20.0)]
FAST = [Trial(10, True, rate, 0.2, 0.05, 1000, 4.0, 0.5, 3) for rate in (40.0, 60.0, 50.0)]
REASON = Withheld(0, 3, 5, 6, "a", "b", (1.5, 1.25), 0.25, 2, 1, "a block", "token 3 is off")


def row(id: str, category: str, withheld: Withheld | None = None) -> dict[str, Any]:
    return asdict(make_row(id, category, BASE, FAST, withheld))


def test_a_row_holds_medians_and_their_spread() -> None:
    found = row("a", "code")
    assert found["baseline_tps_median"] == 20.0
    assert found["dfly_tps_median"] == 50.0
    assert found["speedup"] == pytest.approx(2.5)
    assert found["baseline_tps_spread"] == (10.0, 30.0)
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


def test_a_page_names_machine_verification_and_withheld_rows() -> None:
    report = {
        "model": "m", "draft": "d", "trials": 3, "max_tokens": 128,
        "hardware": dict.fromkeys(("chip", "memory_gb", "os", "mlx", "mlx_lm", "python"), "X1"),
        "verify": {"words": "exact: so and so"},
        "results": [row("a|b", "code"), row("c", "code", REASON)],
    }  # fmt: skip
    page = markdown(report)
    assert "X1" in page
    assert "exact: so and so" in page
    assert "| a\\|b | 20.0 | 50.0 | 2.50x | 4.00 | 50% | equal |" in page
    assert "- c withheld: token 3 is off" in page
