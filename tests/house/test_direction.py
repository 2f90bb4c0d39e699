"""The core knows no screen, the app knows no MLX; held by an interpreter, not only by reading."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("mlx", "mlx_lm", "transformers", "numpy", "torch")


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return {name.split(".")[0] for name in done.stdout.split()}


def test_the_core_never_imports_textual() -> None:
    loaded = modules_after("import dfly_core.jobs, dfly_core.worker, dfly_core.cli.main")
    assert "mlx" in loaded
    assert not loaded & {"textual", "dfly_tui", "torch"}


@pytest.mark.parametrize("statement", ["import dfly_core.cli.main", "import dfly_core.worker"])
def test_mlx_waits_for_the_first_job(statement: str) -> None:
    assert not modules_after(statement) & set(HEAVY)


def test_the_records_are_standard_library_only() -> None:
    everything = "from dfly_core.records import commands, errors, events, loaded, stats, step, wire"
    known = set(sys.stdlib_module_names) | {"dfly_core", "__main__"}
    extra = {m for m in modules_after(everything) if m not in known}
    # Whatever this environment loads at start-up by itself (.pth files) is not ours.
    assert extra <= modules_after("pass")
