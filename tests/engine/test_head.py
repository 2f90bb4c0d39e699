"""Drafting from a part of the vocabulary: the same where it is enough, and seen where not."""

from __future__ import annotations

from random import Random

import mlx.core as mx
import mlx.nn as nn
import pytest

from dfly_core.engine.coverage import MOST_EXTRA, Coverage
from dfly_core.engine.head import DraftHead
from dfly_core.model.target import Target
from tests.tiny import TAPS, make_target

VOCAB, HIDDEN = 65536, 64  # 2.4 MB when quantised


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
    return best[0].tolist()  # type: ignore[return-value]


def rows(count: int) -> mx.array:
    return mx.random.normal((1, count, HIDDEN), key=mx.random.key(3))


def test_within_the_part_the_best_id_is_the_full_heads(target: Target) -> None:
    head = DraftHead(target, VOCAB, [VOCAB - 1])
    size = head.coverage.size()
    assert size == VOCAB // 8
    asked = rows(200)
    full = ids_of(mx.argmax(target.head(asked), axis=-1))
    seen = [i for i in full if i >= size][:20]
    head._stale |= True
    for token in seen:
        head.coverage._extra[token] = None
    found = ids_of(head.best(asked))
    inside = [f for f, b in zip(found, full, strict=True) if b < size or b in seen]
    wanted = [b for b in full if b < size or b in seen]
    assert len(wanted) > 30
    assert inside == wanted
    assert all(f < size or f in seen or f == VOCAB - 1 for f in found)


def test_common_text_is_drafted_from_the_smallest_part() -> None:
    coverage = Coverage(VOCAB, [])
    random = Random(1)
    coverage.read([random.randrange(VOCAB // 8) for _ in range(500)])
    assert coverage.size() == VOCAB // 8


def test_rare_text_is_drafted_from_the_whole_at_once_and_comes_back() -> None:
    coverage = Coverage(VOCAB, [])
    random = Random(1)
    coverage.read([VOCAB // 2 + random.randrange(VOCAB // 2) for _ in range(12)])
    assert coverage.size() is None
    coverage.read([random.randrange(VOCAB // 8) for _ in range(900)])
    assert coverage.size() == VOCAB // 8


def test_a_token_misses_once_and_is_known_from_then_on() -> None:
    coverage = Coverage(VOCAB, [])
    assert coverage.read([VOCAB - 2] * 200)
    assert coverage.size() == VOCAB // 8
    assert coverage.extra == [VOCAB - 2]
    assert not coverage.read([VOCAB - 2, 5])


def test_the_part_taken_is_the_smallest_that_loses_little() -> None:
    coverage = Coverage(VOCAB, [])
    random = Random(4)
    for _ in range(3):
        coverage.read([random.randrange(VOCAB // 8) for _ in range(30)])
        coverage.read([VOCAB // 4 - 1 - random.randrange(VOCAB // 8) for _ in range(2)])
    assert coverage.size() == VOCAB // 4


def test_what_was_seen_is_bounded() -> None:
    coverage = Coverage(8 * VOCAB, [])
    coverage.read(range(VOCAB, VOCAB + MOST_EXTRA + 100))
    assert len(coverage.extra) == MOST_EXTRA
    assert coverage.extra[-1] == VOCAB + MOST_EXTRA + 99


def test_a_small_head_is_read_whole() -> None:
    small = make_target(vocab_size=1024, hidden_size=HIDDEN)
    assert DraftHead(small, 1024, [1000]).coverage.size() is None


def test_a_stop_id_beyond_the_head_is_not_looked_up() -> None:
    assert Coverage(VOCAB, [VOCAB // 2, VOCAB - 1, VOCAB, 10**9]).extra == [VOCAB // 2, VOCAB - 1]
