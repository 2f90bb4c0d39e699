"""Each flow of the app in a real terminal: `python -m tests.tools.flows`; exit 1 if one fails.

From an empty home, over the real engine and the embedded pair, at 120x40 and 80x24; prints a
line per flow. `python -m tests.tools.flows --show` prints the last screen of each, too.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dfly_core.model.locate import EMBEDDED
from tests.app.terminal import CHECKPOINTS, Terminal, real

UPSTREAM = EMBEDDED / "recipe" / "upstream"
SIZES = ((120, 40), (80, 24))


class Walk:
    """One user's way through the app, flow by flow."""

    def __init__(self, home: Path, size: tuple[int, int]) -> None:
        self.home, self.size = home, size
        self.terminal = Terminal(home, real(), size)
        self.stopped = ""

    @property
    def flows(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        """The flows in their order; each begins where the one before ended."""
        return (
            ("first chat", self.first_chat),
            ("stop an answer", self.stop),
            ("quit, resume, go on", self.resume),
            ("convert a torch checkpoint", self.convert_sample),
            ("convert a drafter and use it", self.convert_and_use),
            ("benchmark, export the report", self.benchmark),
            ("export the chat", self.export),
            ("quit", lambda: self.terminal.quit()),
        )

    def _turns(self) -> list[dict[str, Any]]:
        """The records of the one chat on disk."""
        (chat,) = (self.terminal.data / "chats").glob("*.jsonl")
        return [json.loads(line) for line in chat.read_text().splitlines()]

    def _text(self, number: int) -> str:
        grown = [r for r in self._turns() if r["did"] == "grow" and r["n"] == number]
        return "".join(text for record in grown for text, _ in record["runs"])

    def _ask(self, text: str) -> None:
        self.terminal.type(text)
        self.terminal.press("Enter")

    def _ended(self) -> list[dict[str, Any]]:
        return [record for record in self._turns() if record["did"] == "end"]

    def _wait_for_end(self, answers: int) -> None:
        wait(lambda: len(self._ended()) == answers, f"{answers} ended answers on disk")

    def _into(self, label: str, path: str) -> None:
        """Type an absolute path into the field with that label; other fields take no slash."""
        for _ in range(9):
            self.terminal.press("Tab")
            self.terminal.type("/")
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                if re.search(rf"{label}\s+/", self.terminal.screen):
                    self.terminal.type(path[1:])
                    return
        raise AssertionError(f"no way to the field {label}")

    def first_chat(self) -> None:
        """An example by Tab, then a question of one's own."""
        t = self.terminal
        t.ready()
        t.press("Tab")
        t.sees("Write a Python function")
        t.press("Enter")
        t.sees("def ")
        self._wait_for_end(1)
        self._ask("What is 17 plus 25?")
        t.sees("17 + 25 = 42")
        self._wait_for_end(2)
        assert [record["end"] for record in self._ended()] == ["stop", "stop"]

    def stop(self) -> None:
        """Esc in the middle of an answer; the engine is slowed down, or it would be over."""
        t = self.terminal
        before, pid = len(self._ended()), worker(t)
        try:
            os.kill(pid, signal.SIGSTOP)
            self._ask("Tell me a story about a fox.")
            t.sees("about a fox.")
            while not self._begun():
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.02)
                os.kill(pid, signal.SIGSTOP)
            t.press("Escape")
            time.sleep(0.5)  # the key has arrived; nothing on the screen tells
        finally:
            os.kill(pid, signal.SIGCONT)
        self._wait_for_end(before + 1)
        last = self._ended()[-1]
        assert last["end"] == "stopped"
        self.stopped = self._text(last["n"])
        assert "fox" in self.stopped
        t.sees("stopped ·")

    def _begun(self) -> bool:
        """Whether the story's first words come up within the time that the screen may take."""
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            if "fox" in self.terminal.screen.rpartition("about a fox.")[2]:
                return True
        return False

    def resume(self) -> None:
        """The stopped answer is there after a restart, and goes on where it was."""
        number = self._ended()[-1]["n"]
        self.terminal.quit()
        self.terminal.close()
        self.terminal = t = Terminal(self.home, real("--resume"), self.size)
        t.sees("stopped ·")
        t.ready()
        t.press("C-l")
        wait(lambda: self._ended()[-1]["end"] == "stop", "the rest of the answer on disk")
        whole = self._text(number)
        assert whole.startswith(self.stopped)
        assert len(whole) > len(self.stopped)
        assert whole.rstrip().endswith((".", "!"))
        t.until(lambda shown: "stopped ·" not in shown, "an answer that is whole")

    def _convert(self, source: Path) -> Path:
        t = self.terminal
        t.press("F7")
        t.sees("Convert a drafter")
        t.type(str(source))
        t.press("Enter")
        t.sees("draft layers")
        t.press("C-s")
        t.sees("Converted to")
        return t.data / "models" / f"{source.name}-MLX"

    def convert_sample(self) -> None:
        """A checkpoint that torch wrote; for its target, which is not here, one is told so."""
        folder = self._convert(CHECKPOINTS / "serving-bin")
        config = json.loads((folder / "config.json").read_text())
        assert config["architectures"] == ["DFlyDraftModel"]
        assert (folder / "model.safetensors").stat().st_size > 20_000
        self.terminal.sees("It can't be used now: no target on this machine fits it")
        self.terminal.press("Escape")
        self.terminal.ready()

    def convert_and_use(self) -> None:
        """The embedded drafter from its published form: the same bytes, and it drafts."""
        folder = self._convert(UPSTREAM)
        weights = (folder / "model.safetensors").read_bytes()
        assert weights == (EMBEDDED / "drafter" / "model.safetensors").read_bytes()
        self.terminal.sees("ctrl+y uses it now, with embedded target")
        self.terminal.press("C-y")
        self.terminal.sees("embedded target + upstream-MLX")
        before = len(self._ended())
        self._ask("What is 30 plus 12?")
        self._wait_for_end(before + 1)
        assert "30 + 12 = 42" in self._text(self._ended()[-1]["n"])
        assert self._ended()[-1]["figures"]["mean"] > 2

    def benchmark(self) -> None:
        """Two prompts of one's own; the report as JSON and as Markdown."""
        t = self.terminal
        prompts = self.home / "p.jsonl"
        lines = [{"id": "sum", "prompt": "What is 12 + 30?"}, {"id": "hi", "prompt": "Hello!"}]
        prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
        t.press("F8")
        t.sees("Benchmark", "trials")
        self._into("prompts", str(prompts))
        t.press("C-s")
        t.sees("Report", "sum", "equal")
        (path,) = (t.data / "reports").glob("*.json")
        report = json.loads(path.read_text())
        assert [(row["id"], row["parity"]) for row in report["results"]] == [
            ("sum", True), ("hi", True),
        ]  # fmt: skip
        t.press("C-e")
        t.sees("Export as Markdown")
        t.press("Enter")
        page = path.with_suffix(".md")
        wait(page.exists, "the page")
        assert "| sum |" in page.read_text()
        t.press("Escape")
        t.sees("Ask something")

    def export(self) -> None:
        """The whole chat as Markdown."""
        t = self.terminal
        self._ask("/export")
        t.sees("Export as Markdown")
        t.press("Enter")
        t.sees("Exported")
        (path,) = (t.data / "exports").glob("*.md")
        text = path.read_text()
        assert text.count("## You") == text.count("## Answer") == len(self._ended_turns())
        assert "```python\ndef " in text
        assert "30 + 12 = 42" in text
        assert self.stopped in text

    def _ended_turns(self) -> set[int]:
        return {record["n"] for record in self._ended()}


def worker(terminal: Terminal) -> int:
    """The engine's process."""
    for pid in terminal.family():
        words = subprocess.run(
            ["ps", "-ww", "-o", "args=", "-p", str(pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        if "dfly_core.worker" in words:
            return pid
    raise AssertionError("there is no engine")


def wait(true: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Wait until something holds; AssertionError otherwise."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so: {what}"
        time.sleep(0.02)


def walk(home: Path, size: tuple[int, int], told: Callable[[str], None], show: bool) -> None:
    """Go through every flow in one home."""
    way = Walk(home, size)
    try:
        for name, flow in way.flows:
            began = time.monotonic()
            flow()
            told(f"ok   {size[0]}x{size[1]} {name} ({time.monotonic() - began:.1f} s)")
            if show:
                told(way.terminal.screen)
    except AssertionError:
        told(way.terminal.screen)
        raise
    finally:
        way.terminal.close()


def main() -> int:
    """Print a line per flow; 1 when one fails."""
    for size in SIZES:
        with tempfile.TemporaryDirectory() as home:
            try:
                walk(Path(home), size, lambda line: print(line, flush=True), "--show" in sys.argv)
            except AssertionError as error:
                print(f"FAIL {size[0]}x{size[1]} {error}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
