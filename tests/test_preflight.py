"""What is off before MLX is even imported is told with its remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from dfly_core import preflight as module
from dfly_core.cli.main import main
from dfly_core.preflight import Problem, preflight

Patch = pytest.MonkeyPatch


def mac(patch: Patch, machine: str, translated: str) -> None:
    patch.setattr("platform.system", lambda: "Darwin")
    patch.setattr("platform.machine", lambda: machine)
    patch.setattr(module, "ask", lambda *command: translated)


def old_mlx(patch: Patch) -> None:
    patch.setattr(module, "version_of", lambda name: "0.32.3")


def no_mlx(patch: Patch) -> None:
    patch.setattr(module, "version_of", lambda name: None)


def no_compiler(patch: Patch) -> None:
    patch.setattr("platform.system", lambda: "Linux")
    patch.setattr("shutil.which", lambda name: None)


def old_python(patch: Patch) -> None:
    patch.setattr("platform.python_version", lambda: "3.9.1")


def new_python(patch: Patch) -> None:
    patch.setattr("platform.python_version", lambda: "3.15.0rc1")


CASES: dict[str, tuple[Callable[[Patch], None], str, str, bool]] = {
    "rosetta": (lambda p: mac(p, "x86_64", "1"), "under Rosetta", "arm64 Python", True),
    "intel": (lambda p: mac(p, "x86_64", ""), "Intel processor", "Apple Silicon", True),
    "old mlx": (old_mlx, "mlx 0.32.3 is older than 0.32.4", "pip install -U mlx", False),
    "no mlx": (no_mlx, "MLX is not installed", "pip install", True),
    "no compiler": (no_compiler, "no C++ compiler", "apt-get install g++", True),
    "old python": (old_python, "is too old", "3.10 to 3.13", True),
    "new python": (new_python, "newer than what was tried", "3.10 to 3.13", False),
}


@pytest.mark.parametrize("case", list(CASES))
def test_a_problem_is_told_with_its_remedy(case: str, monkeypatch: Patch) -> None:
    spoil, what, remedy, fatal = CASES[case]
    spoil(monkeypatch)
    found = [problem for problem in preflight() if what in problem.what]
    assert len(found) == 1
    assert remedy in found[0].remedy
    assert found[0].fatal is fatal


def test_on_an_apple_silicon_mac_nothing_is_said_of_rosetta(monkeypatch: Patch) -> None:
    mac(monkeypatch, "arm64", "0")
    assert module.rosetta() is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks this machine as it is")
def test_this_machine_has_no_problem() -> None:
    assert preflight() == []


@pytest.mark.parametrize("as_json", [False, True])
def test_where_mlx_cannot_run_the_doctor_still_says_why(
    as_json: bool, monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dfly_core.cli import doctor

    problem = Problem("this Python is an x86 one", "install an arm64 one", True)
    monkeypatch.setattr(doctor, "preflight", lambda: [problem])
    monkeypatch.setitem(sys.modules, "dfly_core.jobs", None)  # importing it would fail
    assert main(["doctor", *(["--json"] if as_json else [])]) == 1
    out = capsys.readouterr().out
    if as_json:
        found = json.loads(out)
        assert found["healthy"] is False
        assert found["problems"][0]["what"] == problem.what
    else:
        assert out == "! this Python is an x86 one: install an arm64 one\n"
