"""The app imports records only, and starts fast because of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROBE = """
import json, sys, time
import dfly_tui.app
print(json.dumps([sorted(sys.modules), time.process_time()]))
"""


def test_the_app_loads_no_engine_and_in_half_a_second_of_cpu() -> None:
    runs = []
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, cwd=ROOT
        )
        names, seconds = json.loads(out.stdout)
        runs.append(seconds)
        strangers = [n for n in names if n.split(".")[0] in ("mlx", "mlx_lm", "numpy", "torch")]
        core = [n for n in names if n.startswith("dfly_core.")]
        assert strangers == []
        assert all(n.startswith("dfly_core.records") for n in core)
    assert min(runs) < 0.5, runs


def test_an_empty_chat_is_there_without_what_only_answers_and_other_pages_need() -> None:
    out = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, cwd=ROOT
    )
    names = set(json.loads(out.stdout)[0])
    late = {"markdown_it", "pygments", "dfly_tui.widgets.prose", "dfly_tui.screens.help"}
    assert names & (late | {"dfly_tui.screens.bench", "textual.widgets._data_table"}) == set()
