"""The app in a real terminal: tmux holds the screen, keys go in, the screen comes out as text."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("engine_script.py")
CHECKPOINTS = ROOT / "tests" / "data" / "checkpoints"
RUN = (
    "import sys; from dfly_tui.cli import main; "
    "sys.exit(main(sys.argv[3:], (sys.executable, sys.argv[1], *sys.argv[2].split())))"
)
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")


def scripted(scenario: str, *options: str) -> list[str]:
    """The command of the app over a scripted engine."""
    return [sys.executable, "-c", RUN, str(SCRIPT), scenario, *options]


def real(*options: str) -> list[str]:
    """The command of the app over the real engine."""
    return [sys.executable, "-m", "dfly_tui", *options]


def slowness() -> float:
    """How many times slower than a free processor this one is now; never below 1."""
    wall, cpu = time.monotonic(), time.process_time()
    while time.process_time() - cpu < 0.1:
        pass
    return max((time.monotonic() - wall) / 0.1, 1.0)


def alive(pid: int) -> bool:
    """Whether a process still runs; one that has ended and waits to be fetched does not."""
    words = _ps("-o", "stat=", "-p", str(pid)).split()
    return bool(words) and not words[0].startswith("Z")


def _ps(*options: str) -> str:
    return subprocess.run(["ps", *options], capture_output=True, text=True, check=False).stdout


class Terminal:
    """One command in a terminal of its own, with an empty home."""

    def __init__(self, home: Path, command: Sequence[str], size: tuple[int, int] = (120, 40)):
        self.home = home
        self._socket = f"dfly-{uuid.uuid4().hex[:12]}"
        self._code = home / ".code"
        self._code.unlink(missing_ok=True)
        self._modes = home / ".modes"
        conf = home / ".tmux.conf"
        conf.write_text("set -g remain-on-exit on\nset -s escape-time 0\nset -g status off\n")
        env = {"HOME": str(home), "PYTHONPATH": str(ROOT)}
        words = ["env", "-u", "XDG_DATA_HOME", "-u", "NO_COLOR"]
        words += [f"{name}={value}" for name, value in env.items()] + list(command)
        modes, code = (shlex.quote(str(path)) for path in (self._modes, self._code))
        shell = f"{shlex.join(words)}; code=$?; stty -a >{modes}; echo $code >{code}"
        wide, high = size
        self._tmux(
            "-f", str(conf), "new-session", "-d", "-x", str(wide), "-y", str(high), shell,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        self.pid = int(self._tmux("display", "-p", "#{pane_pid}"))

    def _tmux(self, *words: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *words],
            capture_output=True, text=True, encoding="utf-8", check=True, env=env,
        )  # fmt: skip
        return done.stdout

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: Enter, Escape, F7, C-s."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type text as it is."""
        self._tmux("send-keys", "-l", text)

    def resize(self, wide: int, high: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-x", str(wide), "-y", str(high))

    @property
    def screen(self) -> str:
        """What it shows now."""
        return self._tmux("capture-pane", "-p")

    def sees(self, *words: str, seconds: float = 60) -> str:
        """Wait until the screen shows all these words; the screen."""
        return self.until(lambda shown: all(word in shown for word in words), str(words), seconds)

    def until(self, true: Callable[[str], bool], what: str, seconds: float = 60) -> str:
        """Wait until something holds of the screen; the screen."""
        end = time.monotonic() + seconds
        while not true(shown := self.screen):
            if time.monotonic() > end or self.code is not None:
                raise AssertionError(f"not seen: {what}\n{shown}")
        return shown

    def ready(self) -> str:
        """Wait until the embedded pair is loaded; the screen."""
        return self.until(
            lambda shown: shown.partition("\n")[0].endswith("  embedded pair"), "a loaded pair"
        )

    @property
    def code(self) -> int | None:
        """The exit code, once the command has ended."""
        text = self._code.read_text() if self._code.exists() else ""
        return int(text) if text.endswith("\n") else None

    @property
    def modes(self) -> str:
        """How the command left the terminal, in stty's words."""
        return self._modes.read_text()

    def family(self) -> list[int]:
        """The processes that the command has started, and theirs."""
        parents = [line.split() for line in _ps("-eo", "pid=,ppid=").splitlines()]
        found = [self.pid]
        for pid in found:
            found += [int(child) for child, parent in parents if int(parent) == pid]
        return found[1:]  # the first is the shell that notes the exit code

    def quit(self) -> float:
        """Press ctrl+q and wait for the end: code 0, no process left. Returns the seconds."""
        family = self.family()
        began = time.monotonic()
        self.press("C-q")
        while self.code is None:
            assert time.monotonic() - began < 30, f"it does not end:\n{self.screen}"
        seconds = time.monotonic() - began
        assert self.code == 0, f"exit code {self.code}:\n{self.screen}"
        assert not [pid for pid in family if alive(pid)], "a process is left"
        return seconds

    @property
    def data(self) -> Path:
        """Where the app keeps its files."""
        inside = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
        return self.home / inside / "dfly-tui"

    def close(self) -> None:
        """End the terminal and what runs in it."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")
