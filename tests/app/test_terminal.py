"""The real thing in a pseudo-terminal: it opens, chats, and always leaves the terminal whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

from tests.app.quitting import LIMIT, STATES, State, quit_from
from tests.app.terminal import ROOT, RUN, SCRIPT, needs_tmux

LEAVE_ALTERNATE = "\x1b[?1049l"

Spawn = Callable[..., pexpect.spawn]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Start the app over a scripted engine, in an empty home."""
    started: list[pexpect.spawn] = []

    def start(scenario: str, *args: str) -> pexpect.spawn:
        env = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color"}
        env |= {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "LINES": "30"}
        env.pop("XDG_DATA_HOME", None)
        child = pexpect.spawn(
            sys.executable,
            ["-c", RUN, str(SCRIPT), scenario, *args],
            env=env, dimensions=(30, 100), timeout=60, encoding="utf-8", codec_errors="replace",
        )  # fmt: skip
        started.append(child)
        return child

    yield start
    for child in started:
        child.close(force=True)


def engines(home: Path) -> list[int]:
    """Processes that run this test's scripted engine for that home."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                env = (entry / "environ").read_bytes()
            except OSError:
                continue
            scripted = len(words) > 1 and words[1] == os.fsencode(SCRIPT)
            if scripted and f"HOME={home}".encode() in env.split(b"\0"):
                found.append(int(entry.name))
    return found


@needs_tmux
@pytest.mark.slow
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_fault_19_ctrl_q_leaves_within_a_second_saved_and_no_orphan(
    tmp_path: Path, state: State
) -> None:
    taken = []
    for attempt in ("once", "again"):  # the other tests' process may take just this moment
        home = tmp_path / attempt
        home.mkdir()
        seconds, slow = quit_from(state, home)
        taken.append(seconds / slow)
        if taken[-1] < LIMIT * 1.2:
            return
    raise AssertionError(f"left after {taken} seconds")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_fault_10_a_signal_leaves_the_terminal_whole_and_the_chat_saved(
    spawn: Spawn, tmp_path: Path, number: signal.Signals
) -> None:
    child = spawn("turns 60", "--prompt", "hello there")
    child.expect("hello there")
    child.expect("Part")
    child.kill(number)
    child.expect_exact(LEAVE_ALTERNATE)
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 128 + number
    saved = next((tmp_path / ".local/share/dfly-tui/chats").glob("*.jsonl")).read_text()
    assert "hello there" in saved
    assert '"stopped"' in saved
    if sys.platform == "linux":
        assert not engines(tmp_path)


def test_fault_11_native_noise_never_reaches_the_screen(spawn: Spawn) -> None:
    child = spawn("noise", "--prompt", "hello there")
    child.expect("lantern")
    child.send("\x11")
    child.expect(pexpect.EOF)
    assert "native noise" not in (child.before or "")


def test_fault_13_newline_sequences_break_the_line(spawn: Spawn, tmp_path: Path) -> None:
    child = spawn("echo")
    child.expect("embedded pair")
    child.send("one\ntwo\x1b[106;5uthree\x1b[13;2ufour\x1b[27;2;13~five\r")
    child.expect("lantern")
    child.send("\x11")
    child.expect(pexpect.EOF)
    saved = next((tmp_path / ".local/share/dfly-tui/chats").glob("*.jsonl")).read_text()
    assert '"one\\ntwo\\nthree\\nfour\\nfive"' in saved


def test_fault_09_locks_and_bars_in_the_child_work_also_when_it_is_started_again(
    spawn: Spawn,
) -> None:
    child = spawn("locks", "--prompt", "die")
    child.expect("SIGABRT")
    child.send("\x12")
    child.expect("embedded pair")
    child.send("live\r")
    child.expect("lantern")
    child.send("\x11")
    child.expect(pexpect.EOF)
    assert "bar 50%" not in (child.before or "")


def test_fault_02_no_foreign_sequence_in_the_byte_stream(spawn: Spawn) -> None:
    child = spawn("controls", "--prompt", "x")
    child.expect("end ")
    child.send("\x11")
    child.expect(pexpect.EOF)
    assert "\x1b]52" not in child.before
    assert "\x9b" not in child.before


def test_no_terminal_is_said_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dfly_tui"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "--plain" in done.stderr
    assert done.stderr.count("\n") == 1
