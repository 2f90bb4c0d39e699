"""Blocks equal one token at a time where every rounding shows; with OpenBLAS only by routes.

`tests/tools/parity.py` does the same over 300 prompts and on the embedded pair.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from dfly_core.model.machine import blas
from tests.exact.hostile import near_tie_pair
from tests.tiny import alone
from tests.tools.parity import count, random_prompts

OPENBLAS = [*Path("/usr/lib").glob("*/openblas-pthread/libopenblas.so.0")]
ROOT = Path(__file__).resolve().parents[2]


def test_exact_blocks_equal_single_rows_on_a_target_full_of_ties() -> None:
    """Under whatever BLAS this run has; the build runs it again with OpenBLAS."""
    counts = count(near_tie_pair(seed=2), random_prompts(5, 90), 32, scripted=True)
    exact = counts["exact"]
    assert (exact.same_ids, exact.same_rows) == (5, 5)
    assert exact.accepted > exact.cycles  # else it was no test of blocks
    if "openblas" not in blas():
        assert (counts["fast"].same_ids, counts["fast"].same_rows) == (5, 5)


def test_the_target_is_as_full_of_ties_as_it_says() -> None:
    pair = near_tie_pair()
    ids = alone(pair, [5, 17, 3], 40)
    assert len({i // 2 for i in ids}) > 10  # no loop
    assert {i % 2 for i in ids} == {0, 1}  # both twins win at times


@pytest.mark.skipif(sys.platform != "linux", reason="preloading a BLAS is a Linux device")
@pytest.mark.skipif(not OPENBLAS, reason="libopenblas0-pthread is not installed")
def test_with_openblas_fast_differs_and_exact_does_not() -> None:
    # One thread: the kernels that differ are the same, and a busy machine does not stall them.
    environment = os.environ | {"LD_PRELOAD": str(OPENBLAS[0]), "OPENBLAS_NUM_THREADS": "1"}
    if platform.machine() == "x86_64":
        # Kernels that differ and that every such processor runs; SkylakeX's, for one, are exact.
        environment["OPENBLAS_CORETYPE"] = "Prescott"
    done = subprocess.run(
        [sys.executable, "-m", "tests.tools.parity", "--prompts", "5", "--tokens", "32",
         "--only", "near-ties"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert "openblas" in found["blas"]
    assert (found["exact"]["same_ids"], found["exact"]["same_rows"]) == (5, 5)
    assert found["fast"]["same_ids"] < 5
    assert found["fast"]["same_rows"] == 0
    assert "by detours" in found["words"]
