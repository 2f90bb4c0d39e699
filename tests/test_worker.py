"""The worker: one job at a time, clean stream, no orphan."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dfly_core.records.commands import (
    Bench,
    Cancel,
    Close,
    Command,
    Doctor,
    Generate,
    GenerateOptions,
    Load,
    Message,
)
from dfly_core.records.events import (
    CLOSING,
    Benchmarked,
    Cancelled,
    Costed,
    Event,
    Examined,
    Failed,
    Generated,
    Hello,
    Loaded,
    Progress,
    Rowed,
    Stepped,
)
from dfly_core.records.page import page_lines
from dfly_core.records.report import cells
from dfly_core.records.wire import Envelope, decode, encode


@dataclass
class Child:
    """A worker process on pipes."""

    process: subprocess.Popen[bytes]

    def say(self, job: int, command: Command) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode(job, command))
        self.process.stdin.flush()

    def hear(self) -> Envelope:
        assert self.process.stdout is not None
        return decode(self.process.stdout.readline())

    def until_end(self, job: int) -> list[Event]:
        """The events of a job, its closing one last."""
        events: list[Event] = []
        while True:
            envelope = self.hear()
            if envelope.job == job:
                events.append(envelope.body)  # type: ignore[arg-type]
                if isinstance(envelope.body, CLOSING):
                    return events


def start(*command: str) -> Child:
    return Child(
        subprocess.Popen(
            [sys.executable, *(command or ("-m", "dfly_core.worker"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def loaded() -> Iterator[Child]:
    child = start()
    assert isinstance(child.hear().body, Hello)
    child.say(1, Load())
    assert isinstance(child.until_end(1)[-1], Loaded)
    yield child
    child.process.kill()


def ask(text: str, **options: object) -> Generate:
    return Generate((Message("user", text),), GenerateOptions(**options))  # type: ignore[arg-type]


def test_an_answer_is_steps_and_one_end(loaded: Child) -> None:
    loaded.say(2, ask("Hello", max_tokens=12, width=7))
    events = loaded.until_end(2)
    done = events[-1]
    assert isinstance(done, Generated)
    steps = [event.step for event in events if isinstance(event, Stepped)]
    assert sum(step.kept for step in steps) == done.stats.emitted <= 12
    assert steps[-1].finish == done.finish


def test_costs_come_by_themselves_when_nothing_is_asked() -> None:
    child = start()
    assert isinstance(child.hear().body, Hello)
    child.say(1, Load())
    loaded = child.until_end(1)[-1]
    assert isinstance(loaded, Loaded)
    assert loaded.verdict is not None
    told = child.hear()
    assert isinstance(told.body, Costed)
    assert told.job == 0
    assert told.body.verdict.cost_exact
    assert told.body.verdict.routes == loaded.verdict.routes
    child.say(2, ask("Hello", max_tokens=3))
    assert Costed not in [type(event) for event in child.until_end(2)]
    child.process.kill()


def test_a_second_job_is_busy_and_a_cancel_ends_the_first(loaded: Child) -> None:
    loaded.say(3, ask("Tell me a story.", max_tokens=1900, width=0))
    loaded.say(4, ask("Hello"))
    busy = loaded.until_end(4)[-1]
    assert isinstance(busy, Failed)
    assert (busy.kind, busy.what) == ("busy", "job 3 is running")
    loaded.say(5, Cancel(3))
    done = loaded.until_end(3)[-1]
    assert isinstance(done, Generated)
    loaded.say(6, ask("Hello", max_tokens=3))
    assert isinstance(loaded.until_end(6)[-1], Generated)


def test_a_fault_ends_the_job_and_not_the_worker(loaded: Child) -> None:
    loaded.say(7, ask("x " * 5000))
    failed = loaded.until_end(7)[-1]
    assert isinstance(failed, Failed)
    assert failed.kind == "too-long"
    assert failed.remedy
    assert "Traceback" in failed.detail
    assert loaded.process.stdin is not None
    loaded.process.stdin.write(b"rubbish\n")
    loaded.process.stdin.flush()
    wire = loaded.hear().body
    assert isinstance(wire, Failed)
    assert wire.kind == "wire"
    loaded.say(8, ask("Hello", max_tokens=3))
    assert isinstance(loaded.until_end(8)[-1], Generated)


def test_benchmark_and_doctor_run_on_the_pair_that_is_loaded(loaded: Child, tmp_path: Path) -> None:
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('{"id": "a", "prompt": "Hello!"}\n')
    output = str(tmp_path / "b.json")
    loaded.say(20, Bench(output, prompts=str(prompts), trials=1, max_tokens=8))
    *events, last = loaded.until_end(20)
    assert isinstance(last, Benchmarked)
    assert (last.path, last.published, last.withheld, last.left) == (output, 1, 0, 0)
    (row,) = [event.row for event in events if isinstance(event, Rowed)]
    assert cells(row)[-1] == "equal"
    stages = {event.stage for event in events if isinstance(event, Progress)}
    assert stages == {"bench"}  # nothing was loaded again
    loaded.say(21, Doctor(context=500))
    examined = loaded.until_end(21)[-1]
    assert isinstance(examined, Examined)
    assert examined.healthy
    assert "all well" in page_lines(examined.page)[0]
    loaded.say(22, ask("Hello", max_tokens=3))
    assert isinstance(loaded.until_end(22)[-1], Generated)


def test_nothing_is_loaded_before_a_load() -> None:
    child = start()
    child.hear()
    child.say(1, ask("Hello"))
    failed = child.until_end(1)[-1]
    assert isinstance(failed, Failed)
    assert failed.what == "no model is loaded"
    child.say(2, Close())
    assert child.process.wait(timeout=30) == 0


def test_it_ends_when_its_input_ends_even_in_the_middle_of_a_job() -> None:
    child = start()
    child.hear()
    child.say(1, Load())
    child.until_end(1)
    child.say(2, ask("Tell me a story.", max_tokens=1900))
    child.hear()
    assert child.process.stdin is not None
    child.process.stdin.close()
    assert child.process.wait(timeout=10) == 0


def test_what_others_print_does_not_reach_the_stream() -> None:
    noisy = (
        "import os, dfly_core.worker as w; real = w.Worker.serve\n"
        "def serve(self):\n"
        "    print('stray'); os.write(1, b'native')\n"
        "    real(self)\n"
        "w.Worker.serve = serve; w.main()"
    )
    child = start("-c", noisy)
    assert isinstance(child.hear().body, Hello)
    child.say(9, Doctor())
    assert isinstance(child.until_end(9)[-1], CLOSING)
    child.process.kill()


def test_a_cancel_of_no_running_job_cancels_nothing(loaded: Child) -> None:
    loaded.say(20, Cancel(21))
    loaded.say(21, ask("Hello", max_tokens=3))
    done = loaded.until_end(21)[-1]
    assert isinstance(done, Generated)
    assert done.finish != "cancelled"


def test_a_malformed_command_is_answered_under_its_number_unless_that_job_runs(
    loaded: Child,
) -> None:
    assert loaded.process.stdin is not None
    loaded.process.stdin.write(b'{"type":"Bench","job":41,"trials":"many"}\n')
    loaded.process.stdin.flush()
    answer = loaded.hear()
    assert isinstance(answer.body, Failed)
    assert (answer.job, answer.body.what) == (41, "Bench.trials: 'many' is no <class 'int'>")
    loaded.say(42, ask("Tell me a story.", max_tokens=1900, width=0))
    loaded.process.stdin.write(b'{"type":"Nope","job":42}\n')
    loaded.process.stdin.flush()
    while (answer := loaded.hear()).job == 42:
        assert not isinstance(answer.body, CLOSING)
    assert (answer.job, type(answer.body)) == (0, Failed)
    loaded.say(43, Cancel(42))
    assert isinstance(loaded.until_end(42)[-1], Generated)


def test_a_line_nested_without_end_does_not_end_the_reader(loaded: Child) -> None:
    assert loaded.process.stdin is not None
    loaded.process.stdin.write(b"[" * 100_000 + b"\n")
    loaded.process.stdin.flush()
    wire = loaded.hear().body
    assert isinstance(wire, Failed)
    assert wire.kind == "wire"
    loaded.say(23, ask("Hello", max_tokens=3))
    assert isinstance(loaded.until_end(23)[-1], Generated)


def test_a_load_is_cancelled_in_its_self_test_and_can_be_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing was tested before
    child = start()
    child.hear()
    child.say(1, Load())
    while not (isinstance(event := child.hear().body, Progress) and event.stage == "self-test"):
        pass
    child.say(2, Cancel(1))
    assert isinstance(child.until_end(1)[-1], Cancelled)
    child.say(3, ask("Hello"))
    failed = child.until_end(3)[-1]
    assert isinstance(failed, Failed)
    assert failed.what == "no model is loaded"
    child.say(4, Load())
    assert isinstance(child.until_end(4)[-1], Loaded)
    child.process.kill()


def test_a_close_stops_the_running_job_and_then_the_process() -> None:
    child = start()
    child.hear()
    child.say(1, Load())
    child.until_end(1)
    child.say(2, ask("Tell me a story.", max_tokens=1900))
    child.hear()
    child.say(3, Close())
    done = child.until_end(2)[-1]
    assert isinstance(done, Generated)
    assert child.process.wait(timeout=10) == 0


def test_an_engine_that_cannot_be_imported_fails_the_job_and_not_the_worker() -> None:
    child = start("-c", "import sys; sys.modules['mlx'] = None\n"
                  "import dfly_core.worker as w; w.main()")  # fmt: skip
    child.hear()
    for job in (1, 2):
        child.say(job, Load())
        failed = child.until_end(job)[-1]
        assert isinstance(failed, Failed)
        assert failed.what.startswith("the engine can't be imported (No module named 'mlx.core'")
        assert "pip install" in failed.remedy
    child.say(3, Close())
    assert child.process.wait(timeout=10) == 0
