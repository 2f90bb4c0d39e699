"""Both commands at their very beginning and end: ctrl+c while importing, a disk that is full."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from dfly_core.cli.main import main

# Presses ctrl+c when a module is about to be imported.
PRESSED = """
import importlib.abc, os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where these tests run under nohup

class Pressed(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

wanted = sys.argv.pop(1)
sys.meta_path.insert(0, Pressed())
from {package}.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("package", "module", "options"),
    [
        ("dfly_core", "dfly_core.cli.main", ["doctor"]),
        ("dfly_core", "dfly_core.cli.generate", ["doctor"]),
        ("dfly_core", "mlx.core", ["generate", "--prompt", "x"]),
        ("dfly_tui", "dfly_tui.cli", []),
        ("dfly_tui", "dfly_tui.state.store", []),
        ("dfly_tui", "dfly_tui.plain", ["--plain", "--prompt", "x"]),
    ],
)
def test_ctrl_c_while_python_imports_is_one_line(
    package: str, module: str, options: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSED.format(package=package), module, *options],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    program = {"dfly_core": "dfly-mlx", "dfly_tui": "dfly-tui"}[package]
    assert (done.returncode, done.stderr) == (130, f"{program}: interrupted\n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["convert", "some folder"], "convert: 'some folder' stands alone: write --draft 'some f"),
        (["convert", "--draft", "x", "y"], "convert: y stands alone: no option takes it (see"),
        (["bench", "my.txt", "b"], "bench: my.txt stands alone: write --prompts my.txt (see"),
        (["doctor", "x"], "doctor: x stands alone: no option takes it (see dfly-mlx doctor --help"),
        (["doctor", "--x"], "doctor: there is no option --x (see dfly-mlx doctor --help)"),
    ],
)
def test_a_word_that_no_option_takes_is_told_where_it_belongs(
    capsys: pytest.CaptureFixture[str], typed: list[str], said: str
) -> None:
    assert main(typed) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"dfly-mlx {said}")


def test_help_opens_with_what_the_program_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    usage, said, *_ = capsys.readouterr().out.split("\n\n")
    assert usage.startswith("usage: dfly-mlx")
    assert said.startswith("Generate text with a model that a DFly drafter speeds up")
    assert "`" not in said


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize(
    ("program", "option", "unbuffered"),
    [
        # Commands write by one function: whether stdout is buffered is tried with one of them.
        ("dfly_core", "doctor", "1"),
        ("dfly_core", "convert --check --draft /", "1"),
        ("dfly_core", "convert --check --draft /", ""),
        *product(("dfly_core",), ("--help", "--version"), ("", "1")),
        *product(("dfly_tui",), ("--help", "--version"), ("", "1")),
    ],
)
def test_what_is_told_to_a_full_disk_is_one_line(
    program: str, option: str, unbuffered: str
) -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", program, *option.split()], stdout=full, stderr=subprocess.PIPE,
            env=env, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "stdout can't be written (No space left on device)" in done.stderr


@pytest.mark.parametrize(
    ("before", "code", "said"),
    [
        ("signal.signal(signal.SIGINT, signal.default_int_handler)", 130, "x: interrupted\n"),
        ("signal.signal(signal.SIGINT, signal.SIG_IGN)", 0, ""),  # as under nohup
    ],
)
def test_no_import_can_swallow_ctrl_c_and_one_that_is_ignored_stays_so(
    before: str, code: int, said: str
) -> None:
    program = f"""
import os, signal, time
from dfly_core.records.interrupt import ends_at_once
{before}
with ends_at_once("x"):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
    except BaseException:
        pass
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (code, said)
