"""Whatever is proposed and wherever it stops, the tokens are the target's own."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfly_core.engine.context import Context
from dfly_core.engine.cycle import accept
from dfly_core.engine.propose import Draft, propose
from dfly_core.engine.sampling import Chooser
from dfly_core.model.drafter import Drafter
from dfly_core.model.pair import Pair
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.errors import TooLong, Usage
from tests.tiny import (
    BLOCK,
    LIMIT,
    Propose,
    alone,
    answer,
    cached_rows,
    half,
    make_pair,
    oracle,
    scripted,
    wrong,
)

PROMPT = [5, 17, 3, 88, 41, 2, 60]
COUNT = 40


@pytest.fixture(scope="module")
def pair() -> Pair:
    return make_pair()


@pytest.fixture(scope="module")
def truth(pair: Pair) -> list[int]:
    return alone(pair, PROMPT, COUNT + BLOCK)


def drafters(truth: list[int]) -> dict[str, Propose]:
    start = len(PROMPT)
    return {
        "oracle": oracle(truth, start),
        "wrong": wrong(truth, start),
        "half": half(truth, start),
        "random": propose,
    }


@pytest.mark.parametrize("width", [*range(BLOCK), None])
@pytest.mark.parametrize("kind", ["oracle", "wrong", "half", "random"])
def test_every_drafter_at_every_width_gives_the_targets_own_ids(
    pair: Pair, truth: list[int], kind: str, width: int | None
) -> None:
    options = GenerateOptions(max_tokens=COUNT, width=width)
    found = answer(Context(pair), PROMPT, options, drafters(truth)[kind])
    assert found.ids == truth[:COUNT]
    assert found.finish == "length"
    cycles = [step for step in found.steps if step.is_cycle]
    if width == 0:
        assert not cycles
        assert found.steps[1].off == "width 0 was asked for"
    elif kind == "oracle":
        assert all(step.accepted == step.width for step in cycles)
    elif kind == "wrong":
        assert all(step.accepted == 0 for step in cycles)


def test_the_truth_is_not_a_loop_of_a_few_tokens(truth: list[int]) -> None:
    assert len(set(truth)) > 10


@pytest.mark.parametrize("slot", range(BLOCK + 2))
def test_a_stop_in_any_slot_ends_both_caches_there(pair: Pair, truth: list[int], slot: int) -> None:
    at = next(i for i in range(slot, COUNT) if truth[i] not in truth[:i])
    stopping = make_pair(stop_ids=[truth[at]])
    context = Context(stopping)
    found = answer(context, PROMPT, GenerateOptions(max_tokens=COUNT), oracle(truth, len(PROMPT)))
    assert found.ids == truth[:at]
    assert found.finish == "stop"
    # Step 0 chose token 0; whatever entered the answer before the stop has been read.
    assert context.ids == PROMPT + truth[:at]
    again = answer(context, PROMPT, GenerateOptions(max_tokens=COUNT), oracle(truth, len(PROMPT)))
    assert again.ids == truth[:at]


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1])
@pytest.mark.parametrize("kind", ["oracle", "wrong"])
def test_a_token_limit_is_kept_to_the_token(
    pair: Pair, truth: list[int], count: int, kind: str
) -> None:
    found = answer(Context(pair), PROMPT, GenerateOptions(max_tokens=count), drafters(truth)[kind])
    assert found.ids == truth[:count]
    assert found.finish == "length"


def test_a_stop_string_across_steps_ends_the_text_before_it(pair: Pair, truth: list[int]) -> None:
    text = pair.decode(truth[:COUNT])
    stop = text[8:13]
    for kind in ("oracle", "wrong", "half"):
        options = GenerateOptions(max_tokens=COUNT, stop=(stop, "never"))
        found = answer(Context(pair), PROMPT, options, drafters(truth)[kind])
        assert found.text == text[: text.index(stop)]
        assert found.finish == "stop"
        assert found.ids == truth[: len(found.ids)]


@pytest.mark.parametrize("kind", ["oracle", "half", "random"])
@pytest.mark.parametrize("after", range(8))
@pytest.mark.parametrize("width", [0, None])
def test_a_cancel_in_any_phase_leaves_the_next_request_equal(
    pair: Pair, truth: list[int], kind: str, after: int, width: int | None
) -> None:
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    context = Context(pair)
    options = GenerateOptions(max_tokens=COUNT, width=width)
    found = answer(context, PROMPT, options, drafters(truth)[kind], cancelled)
    assert found.finish == "cancelled"
    assert found.ids == truth[: len(found.ids)]
    again = answer(context, PROMPT, GenerateOptions(max_tokens=COUNT), drafters(truth)[kind])
    assert again.ids == truth[:COUNT]


@pytest.mark.parametrize("width", [0, 2, None])
def test_a_consumer_that_stops_listening_breaks_nothing(
    pair: Pair, truth: list[int], width: int | None
) -> None:
    from dfly_core.engine.generate import generate

    context = Context(pair)
    options = GenerateOptions(max_tokens=COUNT, width=width)
    for seen, _ in enumerate(generate(context, PROMPT, options, lambda: False)):
        if seen == 4:
            break
    found = answer(context, PROMPT, GenerateOptions(max_tokens=COUNT))
    assert found.ids == truth[:COUNT]


def test_a_prompt_of_one_token(pair: Pair) -> None:
    truth = alone(pair, [9], 12)
    assert answer(Context(pair), [9], GenerateOptions(max_tokens=12)).ids == truth


@pytest.mark.parametrize("left", range(1, BLOCK + 2))
@pytest.mark.parametrize("kind", [oracle, wrong])
def test_generation_stops_cleanly_at_the_context_limit(
    pair: Pair, left: int, kind: type[object]
) -> None:
    prompt = [(7 * i) % 90 for i in range(LIMIT - left)]
    truth = alone(pair, prompt, left)
    propose_ = kind(truth, len(prompt))  # type: ignore[call-arg]
    found = answer(Context(pair), prompt, GenerateOptions(max_tokens=50), propose_)  # type: ignore[arg-type]
    assert found.ids == truth
    assert found.finish == "context"


@pytest.mark.parametrize("excess", [0, 1])
def test_a_prompt_that_leaves_no_room_is_told_before_anything_runs(pair: Pair, excess: int) -> None:
    context = Context(pair)
    with pytest.raises(TooLong, match=rf"{LIMIT + excess} tokens.*holds {LIMIT}"):
        answer(context, [1] * (LIMIT + excess), GenerateOptions())
    assert context.ids == []


def test_a_width_the_pair_cannot_verify_is_refused(pair: Pair) -> None:
    with pytest.raises(Usage, match="width 6 was asked for, this pair can verify 0 to 5"):
        answer(Context(pair), PROMPT, GenerateOptions(width=6))


def test_the_backbone_sees_all_rows_whatever_the_width(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, real = [], Drafter.backbone

    def spy(self: Drafter, block: mx.array, *rest: Any) -> mx.array:
        sizes.append(block.shape[1])
        return real(self, block, *rest)

    monkeypatch.setattr(Drafter, "backbone", spy)
    answer(Context(pair), PROMPT, GenerateOptions(max_tokens=9, width=1))
    assert sizes
    assert set(sizes) == {BLOCK}


def test_proposals_do_not_depend_on_how_the_context_was_read(pair: Pair, truth: list[int]) -> None:
    start = len(PROMPT)
    walked, cold = Context(pair), Context(pair)
    answer(walked, PROMPT, GenerateOptions(max_tokens=20), half(truth, start))
    ids = walked.ids[: walked.length + 1]
    if len(ids) == walked.length:
        ids = [*ids, truth[len(ids) - start]]
        walked.ids = ids
    for _ in answer(cold, ids[:-1], GenerateOptions(max_tokens=0)).steps:
        pass
    cold.ids = list(ids)
    assert propose(walked, 4).ids.tolist() == propose(cold, 4).ids.tolist()


@pytest.mark.parametrize("chained", [True, False], ids=["chain", "no chain"])
def test_a_narrow_draft_is_the_start_of_the_whole_one(pair: Pair, chained: bool) -> None:
    drafter = pair.drafter
    assert drafter is not None
    config = replace(drafter.config, enable_hidden_correction=chained)
    context, drafts = Context(pair), list[mx.array]()
    noisy = Chooser(pair.info.vocab_size, temperature=1.0, seed=5)  # or all proposals are equal
    for _ in answer(context, PROMPT, GenerateOptions(max_tokens=9)).steps:
        pass
    context.ids.append(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drafter, "config", config)
        for width in range(1, BLOCK):
            drafts.append(propose(context, width, noisy).ids)
            context.settle()
    assert [ids.size for ids in drafts] == [*range(1, BLOCK)]
    assert len(set(drafts[-1].tolist())) > 2  # type: ignore[arg-type]
    assert all(mx.array_equal(ids, drafts[-1][: ids.size]) for ids in drafts)


@pytest.mark.parametrize("width", [1, 3, None])
def test_only_what_is_verified_is_drafted(pair: Pair, truth: list[int], width: int | None) -> None:
    asked: list[int] = []
    scripted = half(truth, len(PROMPT))

    def spy(context: Context, width: int) -> Draft:
        asked.append(width)
        return scripted(context, width)

    options = GenerateOptions(max_tokens=30, width=width)
    found = answer(Context(pair), PROMPT, options, spy)
    cycles = [step for step in found.steps if step.is_cycle]
    assert [step.width for step in cycles] == asked
    assert all(len(step.proposals) == step.width for step in cycles)


@given(st.lists(st.integers(0, 3), max_size=7), st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_accept_is_the_longest_equal_prefix(proposals: list[int], choices: list[int]) -> None:
    agreed = accept(proposals, choices)
    assert proposals[:agreed] == choices[:agreed]
    assert agreed == len(proposals) or proposals[agreed] != choices[agreed]


@settings(max_examples=40)
@given(data=st.data())
def test_the_context_holds_exactly_the_committed_tokens(
    pair: Pair, truth: list[int], data: st.DataObject
) -> None:
    """Random acceptance, width, limit, cancel and edits: always the target's own ids.

    `answer` checks the context at every step; the caches' contents are compared with those of
    a target that read the same ids at once.
    """
    random = Random(data.draw(st.integers(0, 2**32)))
    context = Context(pair)
    for _ in range(data.draw(st.integers(1, 3))):
        prompt = PROMPT + truth[: data.draw(st.integers(0, 12))]
        if data.draw(st.booleans()):
            prompt = [*prompt[: data.draw(st.integers(1, len(prompt)))], random.randrange(90)]
        known = alone(pair, prompt, 24)
        coins = [random.random() < 0.7 for _ in range(400)]
        options = GenerateOptions(
            max_tokens=data.draw(st.integers(0, 24)),
            width=data.draw(st.sampled_from([None, *range(BLOCK)])),
        )
        budget = data.draw(st.one_of(st.none(), st.integers(0, 12)))
        asked = 0

        def cancelled(budget: int | None = budget) -> bool:
            nonlocal asked
            asked += 1
            return budget is not None and asked > budget

        asked = 0
        chosen = scripted(known, len(prompt), lambda p, c=coins: c[p])  # type: ignore[misc]
        found = answer(context, prompt, options, chosen, cancelled)
        assert found.ids == known[: len(found.ids)]
        if found.finish == "length":
            assert len(found.ids) == options.max_tokens
        assert_same_rows(pair, context)


def assert_same_rows(pair: Pair, context: Context) -> None:
    if not context.length:
        return
    fresh = pair.target.make_cache()
    pair.target.forward(mx.array([context.ids[: context.length]]), fresh)
    for mine, theirs in zip(context.target_cache, fresh, strict=True):
        for a, b in zip(cached_rows(mine), cached_rows(theirs), strict=True):
            assert mx.allclose(a, b, atol=1e-4)
