"""Turns: what was read is kept, what diverges is dropped, and the answers stay the same."""

from __future__ import annotations

import mlx.core as mx
import pytest

from dfly_core.engine import prefill as prefill_module
from dfly_core.engine.context import PENDING_ROWS, Context
from dfly_core.engine.generate import generate
from dfly_core.engine.prefill import prefill
from dfly_core.model.pair import Pair
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.step import Step
from tests.tiny import alone, answer, half, make_pair, oracle

FIRST = [5, 17, 3, 88, 41, 2, 60]
OPTIONS = GenerateOptions(max_tokens=17)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return make_pair(seed=7)


def rows_read(context: Context, prompt: list[int]) -> int:
    """How many rows the target runs before the first token of an answer."""
    read = 0
    for event in generate(context, prompt, OPTIONS, lambda: False):
        if isinstance(event, Step):
            break
        read = event.done
    return read + 1


def test_a_second_turn_reads_only_what_is_new(pair: Pair) -> None:
    context = Context(pair)
    first = answer(context, FIRST, OPTIONS)
    second = [*FIRST, *first.ids, 11, 12, 13]
    # The last token of the first answer was chosen but never read.
    assert rows_read(context, second) == 4
    assert answer(Context(pair), second, OPTIONS).ids == alone(pair, second, 17)
    assert answer(context, second, OPTIONS).ids == alone(pair, second, 17)


def edited(answer_: list[int]) -> dict[str, list[int]]:
    whole = FIRST + answer_
    return {
        "follow-up": [*whole, 1, 2, 3],
        "regeneration": list(FIRST),
        "edit of the answer": [*whole[:-5], 9, 9],
        "edit of the question": [*FIRST[:3], 70, 71, *FIRST[4:]],
        "another conversation": [80, 81, 82],
        "a shorter prompt": FIRST[:2],
    }


@pytest.mark.parametrize("kind", list(edited([])))
def test_after_any_edit_the_answer_equals_a_cold_starts(pair: Pair, kind: str) -> None:
    context = Context(pair)
    first = answer(context, FIRST, OPTIONS, half(alone(pair, FIRST, 24), len(FIRST)))
    prompt = edited(first.ids)[kind]
    warm = answer(context, prompt, OPTIONS)
    assert warm.ids == answer(Context(pair), prompt, OPTIONS).ids == alone(pair, prompt, 17)


def test_proposals_after_an_edit_equal_a_cold_starts(pair: Pair) -> None:
    context = Context(pair)
    first = answer(context, FIRST, OPTIONS, oracle(alone(pair, FIRST, 24), len(FIRST)))
    prompt = edited(first.ids)["edit of the answer"]
    warm = [s.proposals for s in answer(context, prompt, OPTIONS).steps]
    assert warm == [s.proposals for s in answer(Context(pair), prompt, OPTIONS).steps]


def test_a_long_prompt_is_read_in_chunks_and_never_held(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill_module, "CHUNK", 16)
    context, prompt = Context(pair), [(3 * i) % 90 for i in range(100)]
    waiting, done = [], []
    for event in prefill(context, prompt, lambda: False):
        waiting.append(context.pending_rows)
        done.append(event.done)
        context.check()
    assert done == [16, 32, 48, 64, 80, 96, 99]
    assert max(waiting) == 0
    assert context.draft_rows == 99
    context = Context(pair)
    assert answer(context, prompt, OPTIONS).ids == alone(pair, prompt, 17)


def test_a_cancelled_prompt_keeps_what_was_read(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill_module, "CHUNK", 16)
    context, prompt = Context(pair), [(3 * i) % 90 for i in range(100)]
    found = answer(context, prompt, OPTIONS, cancelled=lambda: context.length >= 32)
    assert found.finish == "cancelled"
    assert context.length == 32
    assert answer(context, prompt, OPTIONS).ids == alone(pair, prompt, 17)


def test_parked_steps_let_tap_rows_wait_but_not_pile_up(pair: Pair) -> None:
    context, most = Context(pair), 0
    options = GenerateOptions(max_tokens=2 * PENDING_ROWS, width=0)
    for _ in generate(context, FIRST, options, lambda: False):
        most = max(most, context.pending_rows)
    assert most == PENDING_ROWS - 1
    context.check()


def test_memory_is_flat_over_many_turns(pair: Pair) -> None:
    context = Context(pair)
    options = GenerateOptions(max_tokens=8)
    held = []
    for turn in range(62):
        prompt = [*FIRST, turn % 90, *([4] * (turn % 20))]
        answer(context, prompt, options)
        if turn % 20 == 1:  # after turns that differ in one token only
            mx.clear_cache()
            held.append(mx.get_active_memory())
    assert held[-1] <= held[1] + 2000, held
