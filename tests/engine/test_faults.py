"""What breaks within a step leaves no trace: the next request starts cold and is right."""

from __future__ import annotations

from typing import Any

import pytest

from dfly_core.engine.context import Context
from dfly_core.engine.generate import generate
from dfly_core.model.drafter import Drafter
from dfly_core.model.pair import Pair
from dfly_core.model.target import Target
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.errors import Refused
from dfly_core.records.step import Step
from tests.tiny import VOCAB, Answer, alone, answer, half, make_pair

PROMPT = [5, 17, 3, 88]
OPTIONS = GenerateOptions(max_tokens=30)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return make_pair(seed=11)


@pytest.fixture(scope="module")
def cold(pair: Pair) -> Answer:
    found = answer(Context(pair), PROMPT, OPTIONS)
    assert found.ids == alone(pair, PROMPT, 30)
    return found


def proposals(found: Answer) -> list[Any]:
    return [step.proposals for step in found.steps]


class Breaks:
    """A method that raises at its n-th call, half way: after the first layer has written."""

    def __init__(self, call: int, fault: type[BaseException]) -> None:
        self.left, self.fault = call, fault

    def __call__(self, real: Any, *args: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            real(*args)
            raise self.fault
        return real(*args)


@pytest.mark.parametrize("fault", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(
    ("cls", "name"), [(Target, "forward"), (Drafter, "contexts"), (Drafter, "backbone")]
)
@pytest.mark.parametrize("call", [1, 2, 3, 6])
def test_after_a_fault_anywhere_the_next_answer_is_a_cold_starts(
    pair: Pair,
    cold: Answer,
    monkeypatch: pytest.MonkeyPatch,
    cls: type,
    name: str,
    call: int,
    fault: type[BaseException],
) -> None:
    context, real = Context(pair), getattr(cls, name)
    breaks = Breaks(call, fault)
    monkeypatch.setattr(cls, name, lambda *args: breaks(real, *args))
    with pytest.raises(fault):
        list(generate(context, PROMPT, OPTIONS, lambda: False))
    monkeypatch.undo()
    context.check()
    found = answer(context, PROMPT, OPTIONS)
    assert found.ids == cold.ids
    assert proposals(found) == proposals(cold)


@pytest.mark.parametrize("width", [0, 2, None])
def test_a_stream_that_is_dropped_at_any_step_keeps_what_was_read(
    pair: Pair, cold: Answer, width: int | None
) -> None:
    options = GenerateOptions(max_tokens=30, width=width)
    truth = alone(pair, PROMPT, 40)
    for steps in range(1, 9):
        context, seen = Context(pair), 0
        stream = generate(context, PROMPT, options, lambda: False, half(truth, len(PROMPT)))
        for event in stream:
            seen += isinstance(event, Step)
            if seen == steps:
                break
        stream.close()  # type: ignore[attr-defined]
        context.check()
        assert context.length >= len(PROMPT)
        assert answer(context, PROMPT, OPTIONS).ids == cold.ids


@pytest.mark.parametrize("beyond", [VOCAB, -1, -5000])
def test_an_id_beyond_the_vocabulary_is_refused_and_not_looked_up(pair: Pair, beyond: int) -> None:
    with pytest.raises(Refused, match=f"made id {beyond}, the target's vocabulary has {VOCAB}"):
        answer(Context(pair), [5, beyond, 3], OPTIONS)
