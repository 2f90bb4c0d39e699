"""The re-check at run time: silent while blocks are exact, loud and safe when they are not."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import pytest

from dfly_core.engine import context as context_module
from dfly_core.engine.context import Context
from dfly_core.exact.verdict import judge
from dfly_core.model.pair import Pair
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.loaded import VerifyMode
from tests.exact.hostile import near_tie_pair, never, spoil_attention, spoil_linear
from tests.exact.test_verdict import findings
from tests.tiny import alone, answer, half, make_pair, oracle

PROMPT = [5, 17, 3, 88, 41, 2, 60, 33]  # read as 7 rows and 1
COUNT = 60


def claimed(pair: Pair, mode: VerifyMode = "exact") -> Pair:
    """A pair whose self-test claims that native blocks are exact."""
    verdict = judge(findings(), mode, "m", "m", 2)
    pair.verdict = verdict.__class__(**{**vars(verdict), "width": 5, "exact_width": 5})
    return pair


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_module, "AUDIT_FIRST", 1)
    monkeypatch.setattr(context_module, "AUDIT_EVERY", 1)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("right", [oracle, half])
def test_where_blocks_are_exact_an_audit_of_every_block_changes_nothing(
    right: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = claimed(make_pair())
    pair.target = spoil_linear(pair.target, never)
    spoil_attention(monkeypatch, never)
    truth = alone(pair, PROMPT, COUNT)
    options = GenerateOptions(max_tokens=COUNT - 10, width=5)
    found = answer(Context(pair), PROMPT, options, right(truth, len(PROMPT)))  # type: ignore[arg-type]
    assert found.ids == truth[: COUNT - 10]
    assert all(step.is_cycle for step in found.steps[1:])
    assert pair.verdict is not None
    assert pair.verdict.width == 5


@pytest.mark.usefixtures("often")
def test_a_fault_the_self_test_missed_stops_drafting_and_is_said() -> None:
    pair = claimed(near_tie_pair())
    pair.target = spoil_linear(pair.target, lambda rows, _: rows == 6)
    truth = alone(pair, PROMPT, COUNT)
    dropped = []
    pair.distrust = lambda: dropped.append(True)
    context = Context(pair)
    found = answer(context, PROMPT, GenerateOptions(max_tokens=COUNT), oracle(truth, len(PROMPT)))
    # The very first block was checked before it was taken: nothing wrong was emitted.
    assert found.ids == truth[:COUNT]
    assert not any(step.is_cycle for step in found.steps)
    assert "a check at token 8 found that a block of" in str(found.steps[1].off)
    assert pair.verdict is not None
    assert (pair.verdict.exact_width, pair.verdict.width) == (0, 0)
    assert pair.verdict.words.startswith("withdrawn:")
    assert dropped == [True]
    again = answer(context, PROMPT, GenerateOptions(max_tokens=20), oracle(truth, len(PROMPT)))
    assert again.ids == truth[:20]
    assert again.steps[1].off == pair.verdict.words


def test_the_first_check_comes_soon_and_then_every_few_hundred_tokens() -> None:
    pair = claimed(make_pair())
    due = [i for i in range(1, 700) if Context(pair).audit_due(1)]  # every token a new answer
    assert due == [64, 576]


def test_nothing_is_checked_where_nothing_was_promised() -> None:
    context = Context(claimed(make_pair(), "fast"))
    assert not any(context.audit_due(1) for _ in range(2000))
    unclaimed = Context(make_pair())
    assert not any(unclaimed.audit_due(1) for _ in range(2000))


@pytest.mark.usefixtures("often")
def test_keys_and_values_are_compared_and_not_only_choices() -> None:
    # Noise far too small for any choice to change.
    pair = claimed(make_pair())
    truth = alone(pair, PROMPT, COUNT)
    pair.target = spoil_linear(pair.target, lambda rows, _: rows > 1)
    context = Context(pair)
    found = answer(context, PROMPT, GenerateOptions(max_tokens=20), oracle(truth, len(PROMPT)))
    assert "left other keys and values" in str(found.steps[1].off)
    assert found.ids == truth[:20]
    mx.eval([store.keys for store in context.target_cache])
