"""Drafting from a part of the vocabulary: the same where it is enough, and seen where not."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
import pytest

from dfly_core.engine import head as head_module
from dfly_core.engine.context import Context
from dfly_core.engine.coverage import MISSES_ALLOWED, Coverage
from dfly_core.engine.generate import generate
from dfly_core.engine.head import ORDER_EVERY, DraftHead
from dfly_core.engine.ranking import Ranking
from dfly_core.model.config import drafter_config
from dfly_core.model.drafter import Drafter
from dfly_core.model.pair import Pair, describe
from dfly_core.model.target import Target
from dfly_core.records.commands import GenerateOptions, Load
from dfly_core.records.stats import Stats
from dfly_core.records.step import Step
from tests.tiny import TAPS, TinyTokenizer, answer, draft_config, make_target

VOCAB, HIDDEN = 65536, 64  # 2.4 MB when quantised
SMALLEST = VOCAB // 24 // 64 * 64  # the smallest part's rows


@pytest.fixture(scope="module", params=["dense", "quantised", "tied", "tied quantised"])
def target(request: pytest.FixtureRequest) -> Target:
    made = make_target(
        vocab_size=VOCAB, hidden_size=HIDDEN, tie_word_embeddings="tied" in request.param
    )
    if "quantised" in request.param:
        nn.quantize(made.model, 32, 4, class_predicate=lambda _, m: m is made.head_module)
        made = Target(made.model, made.config, TAPS)
    return made


def ids_of(best: mx.array) -> list[int]:
    return best.tolist()  # type: ignore[return-value]


def rows(count: int) -> mx.array:
    return mx.random.normal((count, HIDDEN), key=mx.random.key(3))


def easy(target: Target, specials: list[int]) -> DraftHead:
    """A head that has seen common text only."""
    head = DraftHead(target, VOCAB, specials)
    for _ in range(60):
        head.judge([3] * 7)
    return head


def test_within_the_part_the_best_id_is_the_full_heads(target: Target) -> None:
    asked = rows(200)
    full = ids_of(mx.argmax(target.head(asked), axis=-1))
    head = easy(target, [VOCAB - 1])
    head.read(full[:100])
    head.prepare()
    assert head.size == SMALLEST
    ranks: list[int] = head.ranks(mx.array(full)).tolist()  # type: ignore[assignment]
    inside = [rank < head.size for rank in ranks]
    found = ids_of(head.best(asked))
    assert all(inside[:100])
    assert 0 < sum(inside[100:]) < 100
    assert [f for f, there in zip(found, inside, strict=True) if there] == [
        b for b, there in zip(full, inside, strict=True) if there
    ]
    part = set(head._ids.tolist())  # type: ignore[arg-type]
    assert set(found) <= part
    assert VOCAB - 1 in part, "a stop id can always be proposed"


def test_at_a_tie_the_first_id_wins_as_in_the_whole_head() -> None:
    made = make_target(vocab_size=VOCAB, hidden_size=HIDDEN)
    weight = made.head_module.weight
    weight[20] = weight[10] = mx.full((HIDDEN,), 9.0)
    head = easy(made, [])
    head.read([20] * 5 + [10])  # so that 20 ranks before 10
    head.prepare()
    assert head.ranks(mx.array([20, 10])).tolist() == [0, 1]
    asked = mx.ones((1, HIDDEN))
    assert ids_of(head.best(asked)) == ids_of(mx.argmax(made.head(asked), axis=-1)) == [10]


def test_a_small_head_is_read_whole() -> None:
    small = make_target(vocab_size=1024, hidden_size=HIDDEN)
    head = DraftHead(small, 1024, [1000])
    head.read([3])
    head.prepare()
    assert head.size is None
    assert head.ranks(mx.array([3])).size == 0
    assert ids_of(head.best(rows(9))) == ids_of(mx.argmax(small.head(rows(9)), axis=-1))


def test_the_part_is_made_anew_now_and_then_and_at_once_when_it_fails(target: Target) -> None:
    head = easy(target, [])
    head.prepare()
    rare = VOCAB - 3
    assert head.ranks(mx.array([rare])).item() >= VOCAB // 2  # type: ignore[operator]
    head.read([rare] * (ORDER_EVERY - 1))
    head.prepare()
    assert head.ranks(mx.array([rare])).item() >= VOCAB // 2, "not yet"  # type: ignore[operator]
    head.read([rare])
    head.prepare()
    assert head.ranks(mx.array([rare])).item() == 0
    head.judge([VOCAB // 8 - 1, VOCAB // 8 - 2, VOCAB // 8 - 3, 0])
    head.prepare()
    assert head.size == VOCAB // 8
    head.judge([VOCAB - 1, VOCAB - 1, VOCAB - 1, 0])
    head.prepare()
    assert head.size is None


def test_after_a_token_from_outside_one_draft_reads_the_whole_head(target: Target) -> None:
    head = easy(target, [])
    head.prepare()
    head.judge([3, SMALLEST])
    head.prepare()
    assert head.size is None
    assert ids_of(head.best(rows(50))) == ids_of(mx.argmax(target.head(rows(50)), axis=-1))
    head.judge([3, 3])
    head.prepare()
    assert head.size == SMALLEST


def test_what_the_target_found_likely_is_in_the_part_before_it_comes() -> None:
    ranking = Ranking(VOCAB, [])
    before = ranking.order().tolist()
    assert before[:50] == list(range(50)), "at first the order of the ids"  # type: ignore[index]
    logits = mx.zeros((2, VOCAB))
    logits[1, VOCAB - 7] = 12.0  # 0.7 of the second row's probability
    ranking.saw(logits)
    assert ranking.order()[0].item() == VOCAB - 7


def test_what_was_read_counts_and_fades() -> None:
    ranking = Ranking(VOCAB, [VOCAB + 5, -1])
    ranking.read([VOCAB - 9])
    assert ranking.order()[0].item() == VOCAB - 9
    ranking.read([VOCAB - 8] + [5, 6] * 1500)
    found = ranking.order()[:5].tolist()
    assert set(found[:2]) == {5, 6}  # type: ignore[index]
    assert found.index(VOCAB - 8) < 3, "seen as often, but later, than the other"  # type: ignore[union-attr]
    assert VOCAB - 9 not in found[:3]  # type: ignore[index]


def test_stop_ids_stay_and_a_logit_of_infinity_spoils_nothing() -> None:
    ranking = Ranking(VOCAB, [VOCAB - 1])
    logits = mx.zeros((2, VOCAB))
    logits[0, 5] = mx.inf
    logits[1, VOCAB - 7] = 14.0
    ranking.saw(logits)
    ranking.read(list(range(30000)))
    found: list[int] = ranking.order().tolist()  # type: ignore[assignment]
    assert found[0] == VOCAB - 1
    assert sorted(found) == list(range(VOCAB))
    ranking.read([7000] * 3)
    assert ranking.order()[1].item() == 7000


def with_drafter(target: Target) -> Pair:
    """The target with a drafter that fits it and says nothing."""
    config = drafter_config(
        draft_config(
            vocab_size=VOCAB, hidden_size=HIDDEN, target_hidden_size=HIDDEN, mask_token_id=95
        )
    )
    info = describe(Load("a", "b"), target, Drafter(config))
    return Pair(target, Drafter(config), TinyTokenizer(), frozenset(), info, Path(), Path())


def test_what_the_target_finds_likely_in_the_prompt_is_in_the_part(target: Target) -> None:
    pair = with_drafter(target)
    prompt = [3, 14, 15, 92, 65, 35, 8, 9]
    hidden, _ = target.forward(mx.array([prompt]), target.make_cache())
    likely = mx.argmax(target.head(hidden)[0], axis=-1)
    context = Context(pair)
    answer(context, prompt, GenerateOptions(max_tokens=2))
    context.head.read([3] * ORDER_EVERY)
    assert context.head.prepare() == context.head.size
    ranks: list[int] = context.head.ranks(likely).tolist()  # type: ignore[assignment]
    by_order: list[int] = likely.tolist()  # type: ignore[assignment]
    assert max(ranks) < 1000 < min(by_order), "which the ids' order alone would not have found"
    assert context.head.prepare() == 0, "not again so soon"


@pytest.mark.parametrize("end", ["its first token", "no token", "a cancel", "a dropped stream"])
def test_a_prompt_whose_answer_ended_at_once_teaches_no_later_one(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = with_drafter(make_target(vocab_size=VOCAB, hidden_size=HIDDEN))
    seen: list[int] = []
    monkeypatch.setattr(Ranking, "saw", lambda _, logits: seen.append(logits.shape[0]))
    context, prompt = Context(pair), [3, 14, 15, 92, 65, 35, 8, 9]
    options = GenerateOptions({"its first token": 1, "no token": 0}.get(end, 20))
    stream = generate(
        context, prompt, options, lambda: end == "a cancel" and context.length == len(prompt) - 1
    )
    for event in stream:
        if isinstance(event, Step) and end == "a dropped stream":
            break
    stream.close()  # type: ignore[attr-defined]
    assert not seen
    answer(context, prompt[:3], GenerateOptions(2, width=0))
    assert seen == [1], "the first token's own distribution, not the longer prompt's rows"


def test_a_part_of_a_packed_head_lies_as_the_head_does(target: Target) -> None:
    head = easy(target, [])
    head.prepare()
    columns = "scales" not in head._part
    assert ("scales" in target.head_module) is not columns
    for part in head._part.values():
        assert memoryview(cast(Any, part)).c_contiguous is not columns


def test_common_text_is_drafted_from_the_smallest_part() -> None:
    coverage = Coverage(VOCAB)
    coverage.judge([Random(1).randrange(SMALLEST) for _ in range(500)])
    assert coverage.size() == SMALLEST


def test_rare_text_is_drafted_from_the_whole_at_once_and_comes_back() -> None:
    coverage = Coverage(VOCAB)
    assert coverage.size() == VOCAB // 4
    coverage.judge([VOCAB // 2] * 2)
    assert coverage.size() is None
    coverage.judge([7] * 900)
    assert coverage.size() == SMALLEST


def test_the_part_taken_is_the_smallest_that_loses_little() -> None:
    coverage = Coverage(VOCAB)
    random = Random(4)
    for _ in range(3):
        coverage.judge([random.randrange(SMALLEST) for _ in range(30)])
        coverage.judge([VOCAB // 5 - 100 - random.randrange(500) for _ in range(2)])
    assert coverage.size() == VOCAB // 5 // 64 * 64


def test_a_share_of_misses_is_borne_up_to_the_limit() -> None:
    for every, wanted in (
        (round(0.7 / MISSES_ALLOWED), None),
        (round(2 / MISSES_ALLOWED), SMALLEST),
    ):
        coverage = Coverage(VOCAB)
        for _ in range(30):
            coverage.judge([VOCAB - 1] + [0] * (every - 1))
        assert coverage.size() == wanted


# A pair whose backbone says nothing and whose correction says everything: the target's next
# token depends on the last one alone, and the correction turns its embedding into the answer.
WORDS, PROMPT, COUNT = 8192, [1, 2, 3], 320


def telling_pair(chain: list[int]) -> Pair:
    """The target says `chain` after its first id; the drafter knows it by the correction."""
    follows = dict(zip(chain, [*chain[1:], chain[0]], strict=True))
    signs = mx.where(mx.random.normal((WORDS, HIDDEN), key=mx.random.key(5)) > 0, 1.0, -1.0)
    says = mx.zeros((WORDS, HIDDEN))
    says[mx.array(list(follows.values()))] = signs[mx.array(list(follows))]
    target = make_target(vocab_size=WORDS, hidden_size=HIDDEN, max_position_embeddings=1024)
    inner = target.model.model
    inner.embed_tokens.weight, target.model.lm_head.weight = signs, says
    inner.norm.weight = mx.ones(HIDDEN)
    for layer in inner.layers:
        silence(layer)
    config = draft_config(
        vocab_size=WORDS, hidden_size=HIDDEN, target_hidden_size=HIDDEN, block_size=8,
        hidden_correction_intermediate_size=2 * HIDDEN, max_position_embeddings=1024,
    )  # fmt: skip
    drafter = Drafter(drafter_config(config))
    for layer in drafter.layers:
        silence(layer)
    eye, correction = mx.eye(HIDDEN), drafter.hidden_correction
    both = mx.concatenate([eye, -eye])
    # silu(50 e) e for e = 1, and the like of -e subtracted: 50 e for every entry of +-1.
    correction.from_hidden.weight = mx.zeros((4 * HIDDEN, HIDDEN))
    correction.from_token.weight = mx.concatenate([50 * both, both])
    correction.down_proj.weight = both.T
    mx.eval(target.model.parameters(), drafter.parameters())
    info = describe(Load("telling", "telling"), target, drafter)
    return Pair(target, drafter, TinyTokenizer(), frozenset(), info, Path(), Path())


def silence(layer: nn.Module) -> None:
    """A layer that passes on what it gets."""
    for module in (layer.self_attn.o_proj, layer.mlp.down_proj):
        module.weight = mx.zeros(module.weight.shape)


def shuffled(ids: range, count: int) -> list[int]:
    return Random(7).sample(list(ids), count)


TEXTS = {
    "plain words": shuffled(range(4, 400), 300),
    "rare names that come again": shuffled(range(WORDS // 2, WORDS), 40),
    "signs that never come again": shuffled(range(WORDS // 2, WORDS), 400),
    "words, then signs": shuffled(range(4, 400), 150) + shuffled(range(WORDS // 2, WORDS), 200),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_part_costs_little_even_where_only_the_correction_knows(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = TEXTS[text]
    pair = telling_pair(chain)
    prompt = [*PROMPT, chain[0]]
    options = GenerateOptions(max_tokens=COUNT, width=7)
    context = Context(pair)
    found = answer(context, prompt, options)
    assert found.ids == [(chain * 9)[i + 1] for i in range(COUNT)]
    assert context.head.size == (WORDS // 16 if text == "plain words" else None)
    monkeypatch.setattr(head_module, "SMALLEST_BYTES", 10**12)
    full = answer(Context(pair), prompt, options)
    means = [Stats().extend(one.steps).mean_accepted_length or 0.0 for one in (found, full)]
    assert means[1] > 7.8
    assert means[0] >= 0.97 * means[1], means


def test_every_decoded_token_teaches_the_ranking_and_judges_the_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    judged: list[int] = []
    saw, judge = Ranking.saw, Coverage.judge

    def spy_saw(self: Ranking, logits: mx.array) -> None:
        seen.append(logits.shape[0])
        saw(self, logits)

    def spy_judge(self: Coverage, ranks: list[int]) -> None:
        judged.extend(ranks)
        judge(self, ranks)

    monkeypatch.setattr(Ranking, "saw", spy_saw)
    monkeypatch.setattr(Coverage, "judge", spy_judge)
    chain = TEXTS["words, then signs"]
    found = answer(Context(telling_pair(chain)), [*PROMPT, chain[0]], GenerateOptions(200, 7))
    chosen = sum(len(step.chosen) for step in found.steps[1:])
    assert seen[:2] == [1, len(PROMPT)], "the prompt's own, once its first token is out"
    assert sum(seen[2:]) == len(judged) == chosen > 190
    assert all(0 <= rank < WORDS for rank in judged)
    assert max(judged) > WORDS // 2
