"""Line mode over a scripted engine, piped and in a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pexpect

SCRIPT = Path(__file__).with_name("engine_script.py")
ROOT = Path(__file__).parents[2]
RUN = (
    "import sys; from dfly_tui.cli import main; "
    "sys.exit(main(sys.argv[3:], (sys.executable, sys.argv[1], *sys.argv[2].split())))"
)


def environment(home: Path) -> dict[str, str]:
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    env.pop("XDG_DATA_HOME", None)
    return env


def piped(home: Path, scenario: str, text: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, str(SCRIPT), scenario, "--plain", *args],
        input=text, capture_output=True, text=True, env=environment(home), timeout=60, check=False,
    )  # fmt: skip


def test_a_pipe_is_one_message_and_only_the_answer_is_on_stdout(tmp_path: Path) -> None:
    done = piped(tmp_path, "echo", "one\ntwo\n")
    assert done.returncode == 0
    assert done.stdout.startswith("You said: one\ntwo\n\nThe fox")
    assert "mean accepted length" in done.stderr


def test_faults_are_one_line_and_a_code(tmp_path: Path) -> None:
    for scenario, said in (
        ("noweights", "no weights in /nowhere"),
        ("toolong", "3000 tokens"),
        ("abort", "SIGABRT"),
    ):
        done = piped(tmp_path, scenario, "x")
        assert done.returncode == 1
        assert said in done.stderr
        assert done.stderr.splitlines()[-1].startswith("dfly-tui: ")
    assert piped(tmp_path, "story", "", "--resume", "77").returncode == 2


def test_wrong_options_and_a_home_that_cannot_be_made_are_one_line(tmp_path: Path) -> None:
    done = piped(tmp_path, "story", "", "--bogus")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "dfly-tui: unrecognized arguments: --bogus (see dfly-tui --help)"
    ]
    (tmp_path / "file").touch()
    done = piped(tmp_path / "file", "story", "hi")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "set XDG_DATA_HOME" in done.stderr


def test_lines_in_a_terminal_are_turns_and_controls_stay_harmless(tmp_path: Path) -> None:
    child = pexpect.spawn(
        sys.executable, ["-c", RUN, str(SCRIPT), "controls", "--plain"],
        env=environment(tmp_path), timeout=60, encoding="utf-8",
    )  # fmt: skip
    child.expect("> ")
    child.sendline("hello")
    child.expect("end \\[/\\]")
    assert "\x1b]52" not in (child.before or "")
    child.expect("> ")
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
