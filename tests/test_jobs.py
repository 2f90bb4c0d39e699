"""Jobs in a row: what fails leaves nothing that a later job could mistake."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from dfly_core import jobs
from dfly_core.bench.diagnose import first_difference
from dfly_core.engine.calibrate import ROWS
from dfly_core.engine.generate import generate
from dfly_core.exact.verdict import prepare
from dfly_core.jobs import Program
from dfly_core.model.locate import EMBEDDED
from dfly_core.model.pair import Pair
from dfly_core.model.prompt import prompt_ids
from dfly_core.records.checked import Checked
from dfly_core.records.commands import (
    Bench,
    Convert,
    Diagnose,
    Generate,
    GenerateOptions,
    Load,
    Message,
)
from dfly_core.records.errors import DflyError, TooLong, Usage
from dfly_core.records.events import (
    Cancelled,
    Costed,
    Diagnosed,
    Event,
    Generated,
    Loaded,
    Progress,
    Stepped,
)
from tests.convert.small import make_folder, small_weights
from tests.exact.hostile import near_tie_pair, spoil_linear
from tests.tiny import alone, draft_config, make_pair, oracle

ASK = Generate((Message("user", "Hello"),), GenerateOptions(max_tokens=5))


def never() -> bool:
    return False


def test_a_load_whose_self_test_fails_leaves_nothing_to_answer_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "load_pair", lambda _: make_pair())
    program = Program()
    assert isinstance(list(program.run(Load(), never))[-1], Loaded)
    assert isinstance(list(program.run(ASK, never))[-1], Generated)

    def broken(*_: Any, **__: Any) -> Iterator[Event]:
        raise RuntimeError
        yield

    monkeypatch.setattr(jobs, "prepare", broken)
    with pytest.raises(RuntimeError):
        list(program.run(Load(), never))
    with pytest.raises(Usage, match="no model is loaded"):
        list(program.run(ASK, never))


class Loads:
    """Stands for reading models; remembers what was read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[Load] = []
        monkeypatch.setattr(jobs, "load_pair", self)

    def __call__(self, request: Load) -> Pair:
        self.read.append(request)
        return make_pair()


def after(calls: int) -> Callable[[], bool]:
    """A cancel that comes in time for the question after that many."""
    left = iter(range(calls))
    return lambda: next(left, None) is None


def test_a_load_can_be_cancelled_at_every_safe_moment_and_leaves_nothing_untested(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads = Loads(monkeypatch)
    monkeypatch.setattr(jobs, "measure_costs", lambda _: None)
    monkeypatch.setattr(jobs, "prepare", partial(prepare, folder=tmp_path / "none"))
    whole = [e for e in Program().run(Load(), never) if isinstance(e, Progress)]
    assert len(whole) > 5
    for moment in range(len(whole) + 2):
        shutil.rmtree(tmp_path / "none", ignore_errors=True)  # the self-test runs each time
        program = Program()
        *events, end = program.run(Load(), after(moment))
        assert end == Cancelled()
        assert [e.item for e in events if isinstance(e, Progress)] == [
            e.item for e in whole[: max(1, moment)]
        ]
        with pytest.raises(Usage, match="no model is loaded"):
            list(program.run(ASK, never))
    assert isinstance(list(program.run(Load(), after(len(whole) + 2)))[-1], Loaded)
    assert loads.read[0] == Load()


def test_a_load_that_is_refused_leaves_the_pair_that_was_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads, program = Loads(monkeypatch), Program()
    list(program.run(Load(), never))
    for wrong in (Load("/nowhere"), Load(str(EMBEDDED / "target"), str(EMBEDDED / "target"))):
        with pytest.raises(DflyError):
            list(program.run(wrong, never))
        assert isinstance(list(program.run(ASK, never))[-1], Generated)
    assert isinstance(list(program.run(Load(), never))[-1], Loaded)
    assert loads.read == [Load()]  # loading it again reads nothing


def test_another_verify_mode_reads_no_model_again_and_changed_files_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads, program = Loads(monkeypatch), Program()
    folders = [shutil.copytree(EMBEDDED / n, tmp_path / n) for n in ("target", "drafter")]
    load = Load(str(folders[0]), str(folders[1]))
    for mode in ("exact", "fast", "auto"):
        loaded = list(program.run(replace(load, verify=mode), never))[-1]
        assert isinstance(loaded, Loaded)
        assert loaded.verdict is not None
        assert loaded.verdict.mode == mode
    assert len(loads.read) == 1
    config = folders[1] / "config.json"
    config.write_text(config.read_text() + "\n")
    list(program.run(load, never))
    list(program.run(Load(), never))
    list(program.run(Load(no_draft=True), never))
    assert len(loads.read) == 4


def test_a_benchmark_whose_load_is_cancelled_ends_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Loads(monkeypatch)
    events = list(Program().run(Bench(str(tmp_path / "b.json")), after(1)))
    assert events[-1] == Cancelled()
    assert not (tmp_path / "b.json").exists()


def test_a_check_predicts_from_the_times_of_the_loaded_pair(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Loads(monkeypatch)
    config = draft_config(architectures=["Qwen3DFlyModel"])
    source = make_folder(tmp_path / "in", config, small_weights(config))
    ask, program = Convert(str(tmp_path / "out"), str(source), check=True), Program()
    before = list(program.run(ask, never))[-1]
    list(program.run(Load(), never))
    after_ = list(program.run(ask, never))[-1]
    assert isinstance(before, Checked)
    assert isinstance(after_, Checked)
    assert before.rests_on.startswith("speed unknown: no target")
    assert "times measured with tiny loaded here" in after_.rests_on
    floats = after_.sizes[0]
    assert floats.draft_steps is not None
    assert floats.draft_steps > 0
    assert floats.speedup is not None
    assert floats.speedup >= 1
    assert isinstance(list(program.run(ASK, never))[-1], Generated)  # the pair is still there
    assert not (tmp_path / "out").exists()


def said(events: Iterator[Event]) -> list[int]:
    """The ids of an answer."""
    steps = [event.step for event in events if isinstance(event, Stepped)]
    return [token.id for step in steps for token in step.emitted]


def test_where_two_decodings_part_the_diagnosis_tells_the_gap_of_the_targets_two_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = (Message("user", "12345"),)
    pair, sound = near_tie_pair(), near_tie_pair()
    pair.target = spoil_linear(pair.target, lambda rows, _: rows == 6)
    prompt = prompt_ids(pair.tokenizer, messages, False)
    drafter = oracle(alone(sound, prompt, 40), len(prompt))
    monkeypatch.setattr(jobs, "load_pair", lambda _: pair)
    monkeypatch.setattr(jobs, "generate", partial(generate, propose=drafter))
    program = Program()
    list(program.run(Load(verify="fast"), never))

    blocks = said(program.run(Generate(messages, GenerateOptions(24, width=5)), never))
    single = said(program.run(Generate(messages, GenerateOptions(24, width=0)), never))
    at = first_difference(single, blocks)
    assert 0 < at < 24
    ask = Diagnose(messages, tuple(single[:at]))
    found = list(program.run(ask, never))[-1]

    # The reference: mlx-lm's own model of the sound twin, one row at a time.
    model, cache = sound.target.model, sound.target.make_cache()
    model(mx.array([prompt[:-1]]), cache=cache)
    logits = mx.array([])
    for id in [prompt[-1], *single[:at]]:
        logits = model(mx.array([[id]]), cache=cache)[0, -1]
    values: list[float] = logits.tolist()  # type: ignore[assignment]
    best = sorted(range(len(values)), key=lambda id: (-values[id], id))[:2]
    assert isinstance(found, Diagnosed)
    assert [token.id for token in found.tokens] == best
    assert found.tokens[0].id == single[at]
    assert found.tokens[0].piece == pair.decode([single[at]])
    assert found.logits == (values[best[0]], values[best[1]])
    assert 0 <= found.gap < 1e-3  # a near tie, as this target is made of

    # From empty caches it is the same, and the context is whole for the next answer.
    list(program.run(Load(verify="fast"), never))
    assert list(program.run(ask, never))[-1] == found
    assert said(program.run(Generate(messages, GenerateOptions(24, width=0)), never)) == single
    assert isinstance(list(program.run(ask, lambda: True))[-1], Cancelled)
    with pytest.raises(TooLong):
        list(program.run(Diagnose(messages, (1,) * 500), never))


def test_a_load_says_when_and_after_how_many_tokens_its_costs_were_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "load_pair", lambda _: make_pair())
    before, program = time.time(), Program()
    loaded = list(program.run(Load(), never))[-1]
    assert isinstance(loaded, Loaded)
    assert loaded.verdict is not None
    assert not loaded.verdict.cost_exact  # those of the self-test may be of another day
    assert program.unsettled
    (costed,) = program.settle(never)
    verdict = costed.verdict
    assert verdict.without_costs() == loaded.verdict
    assert verdict.cost_context == ROWS
    assert verdict.costs_at is not None
    assert before <= verdict.costs_at <= time.time()
    assert len(verdict.cost_exact) == len(verdict.cost_draft) == verdict.width + 1
    assert not program.unsettled
    assert not list(program.settle(never))


def test_costs_are_measured_once_between_jobs_or_before_the_first_that_needs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "load_pair", lambda _: make_pair())
    program = Program()
    list(program.run(Load(), never))
    moments = 0

    def counted() -> bool:
        nonlocal moments
        moments += 1
        return moments == 25

    assert not list(program.settle(counted))  # asked for something else meanwhile: not now
    assert moments == 25
    assert program.unsettled
    kinds = [type(event) for event in program.run(ASK, never)]
    assert kinds.count(Costed) == 1
    assert kinds[0] is Costed
    assert Costed not in [type(event) for event in program.run(ASK, never)]
    monkeypatch.setattr(jobs, "load_pair", lambda _: replace(make_pair(), drafter=None))
    list(program.run(Load(no_draft=True), never))
    assert not program.unsettled


@pytest.mark.parametrize("options", [GenerateOptions(max_tokens=0)])
def test_without_a_token_there_is_no_time_to_the_first(
    monkeypatch: pytest.MonkeyPatch, options: GenerateOptions
) -> None:
    monkeypatch.setattr(jobs, "load_pair", lambda _: make_pair())
    program = Program()
    list(program.run(Load(no_draft=True), never))
    done = list(program.run(Generate(ASK.messages, options), never))[-1]
    assert isinstance(done, Generated)
    assert done.stats.emitted == 0
    assert done.stats.time_to_first_token is None
