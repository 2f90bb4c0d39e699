"""Jobs in a row: what fails leaves nothing that a later job could mistake."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import mlx.core as mx
import pytest

from dfly_core import jobs
from dfly_core.bench.diagnose import first_difference
from dfly_core.engine.calibrate import ROWS
from dfly_core.engine.generate import generate
from dfly_core.jobs import Program
from dfly_core.model.prompt import prompt_ids
from dfly_core.records.commands import Diagnose, Generate, GenerateOptions, Load, Message
from dfly_core.records.errors import TooLong, Usage
from dfly_core.records.events import Cancelled, Diagnosed, Event, Generated, Loaded, Stepped
from tests.exact.hostile import near_tie_pair, spoil_linear
from tests.tiny import alone, make_pair, oracle

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

    def broken(*_: Any) -> Iterator[Event]:
        raise RuntimeError
        yield

    monkeypatch.setattr(jobs, "prepare", broken)
    with pytest.raises(RuntimeError):
        list(program.run(Load(), never))
    with pytest.raises(Usage, match="no model is loaded"):
        list(program.run(ASK, never))


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
    before = time.time()
    loaded = list(Program().run(Load(), never))[-1]
    assert isinstance(loaded, Loaded)
    assert loaded.verdict is not None
    assert loaded.verdict.cost_context == ROWS
    assert loaded.verdict.costs_at is not None
    assert before <= loaded.verdict.costs_at <= time.time()


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
