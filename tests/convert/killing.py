"""Conversions killed at a chosen moment: after so many lines of the converter's own code."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.convert.small import report, snapshot

# Counts lines executed in dfly_core/convert and kills itself, with no chance to clean up, at the
# given one. The order of lines is the same in every run, so the moments are, too.
CHILD = """
import os, signal, sys
from dfly_core.convert import follow, staging
from dfly_core.convert.convert import convert
from dfly_core.records.commands import Convert
source, output, how, last = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
if how == "two renames":
    staging.exchange = lambda one, other: False
here = os.sep + os.path.join("dfly_core", "convert") + os.sep
# However long reading back takes, it is waited for once: the same number of lines every time.
wait = follow.Follower.wait
follow.Follower.wait = lambda self, seconds: wait(self, 60)
count = 0

def trace(frame, event, _):
    global count
    if here not in frame.f_code.co_filename:
        return None
    if event == "line":
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace

sys.settrace(trace)
for _ in convert(Convert(output=output, source=source, force=how != "new"), lambda: False):
    pass
sys.settrace(None)
print(count)
"""


HOWS = ("new", "exchange", "two renames")  # nothing there before; replaced in one step, or two


def lines_of(source: Path, output: Path, how: str, last: int = 0) -> int | None:
    """Lines a whole conversion takes; None if it was killed at line `last`."""
    command = [sys.executable, "-c", CHILD, str(source), str(output)]
    done = subprocess.run([*command, how, str(last)], capture_output=True, text=True)
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@dataclass
class Case:
    """A place to convert in, what may stand there afterwards, and what was seen there."""

    source: Path
    place: Path
    how: str

    def __post_init__(self) -> None:
        self.place.mkdir()
        self.output = self.place / "out"
        self.before = snapshot(self.source)
        self.whole = self._convert("bf16")
        self.old = self._convert("f32") if self.how != "new" else None

    def total(self) -> int:
        """Lines of a whole run."""
        self._set_up()
        total = lines_of(self.source, self.output, self.how)
        assert total is not None
        self._tear_down()
        return total

    def _convert(self, dtype: str) -> dict[str, bytes]:
        report(self.source, self.output, dtype=dtype, force=self.output.exists())
        found = snapshot(self.output)
        self._tear_down()
        return found

    def _set_up(self) -> None:
        if self.old is not None:
            self.output.mkdir()
            for name, content in self.old.items():
                (self.output / name).write_bytes(content)

    def _tear_down(self) -> None:
        shutil.rmtree(self.output)

    def kill_at(self, line: int) -> str:
        """Kill a conversion there, check what is left, convert again; "old", "absent" or "new"."""
        self._set_up()
        killed = lines_of(self.source, self.output, self.how, line) is None
        assert killed, f"line {line} was never reached"
        found = snapshot(self.output) if self.output.exists() else None
        # Two renames have a moment with nothing there; the old one must be back after it.
        fine = (self.old, self.whole, *([None] if self.how == "two renames" else []))
        assert found in fine, f"killed at line {line}: a half-made output"
        state = "new" if found == self.whole else "absent" if found is None else "old"
        assert snapshot(self.source) == self.before, f"killed at line {line}: source changed"
        force = self.how != "new" or found is not None
        report(self.source, self.output, dtype="bf16", force=force)
        assert snapshot(self.output) == self.whole, f"killed at line {line}: next run differs"
        left = [path.name for path in self.place.iterdir()]
        assert left == ["out"], f"killed at line {line}: leftovers {left}"
        self._tear_down()
        return state
