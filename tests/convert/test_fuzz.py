"""A short run of the fuzzer; the long one is `python -m tests.tools.fuzz_convert`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.convert.fuzz import run_case

CASES = 120


def test_damaged_files_give_the_right_weights_or_one_clean_error(tmp_path: Path) -> None:
    outcomes = Counter(run_case(2, index, tmp_path).verdict for index in range(CASES))
    # Both must happen, or the mutations are too weak or too strong to say anything.
    assert outcomes["weights"] > CASES // 10
    assert outcomes["refused"] > CASES // 3
    assert list(tmp_path.iterdir()) == []
