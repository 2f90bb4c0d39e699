"""Presses ctrl+c at many moments of each command's start; counts tracebacks and exit codes.

`python -m tests.tools.interrupts [N [FIRST LAST]]`: N presses for each command, FIRST to LAST
seconds after its start; what Python does before it reads our first line can't be helped.
"""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
import tempfile
import time

COMMANDS = (
    ("dfly_core", "--help"),
    ("dfly_core", "generate", "--prompt", "Hello"),
    ("dfly_core", "doctor"),
    ("dfly_core", "bench", "--trials", "1", "--output", "{home}/b.json"),
    ("dfly_core", "convert", "--check"),
    ("dfly_tui", "--plain", "--prompt", "Hello"),
)
FIRST, LAST = 0.05, 1.0  # seconds


def pressed(command: tuple[str, ...], seconds: float, home: str) -> tuple[int, str]:
    """Exit code and stderr of a command that is interrupted after that long."""
    arguments = [part.format(home=home) for part in command]
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "HOME": home, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    time.sleep(seconds)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of the group
    _, said = process.communicate(timeout=120)
    return process.returncode, said


def main() -> None:
    """Press, count, print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    first, last = map(float, sys.argv[2:]) if len(sys.argv) > 2 else (FIRST, LAST)
    for command in COMMANDS:
        codes: collections.Counter[int] = collections.Counter()
        own = foreign = 0
        with tempfile.TemporaryDirectory() as home:
            for number in range(count):
                seconds = first + (last - first) * number / max(1, count - 1)
                code, said = pressed(command, seconds, home)
                codes[code] += 1
                if "Traceback" in said or "Exception ignored" in said:
                    mine = "/dfly_core/" in said or "/dfly_tui/" in said
                    own, foreign = own + mine, foreign + (not mine)
                    print(f"  after {seconds:.2f} s:\n{said}" if mine else "", end="")
        print(
            f"{' '.join(command)}: {own} of {count} tracebacks of ours, {foreign} of Python's own "
            f"start; exit codes {dict(codes)}"
        )


if __name__ == "__main__":
    main()
