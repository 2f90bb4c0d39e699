"""What a token tells the correction: the same from a table as worked out, and kept where small."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
import pytest

from dfly_core.engine.context import Context
from dfly_core.engine.propose import propose
from dfly_core.model import told as module
from dfly_core.model.config import drafter_config
from dfly_core.model.drafter import Drafter
from dfly_core.model.target import Target
from dfly_core.model.told import Told
from tests.tiny import TAPS, draft_config, make_pair, make_target, randomize

IDS = mx.array([3, 95, 0, 95])


def made(vocabulary: int, quantised: bool) -> tuple[Drafter, Target]:
    sizes = {"vocab_size": vocabulary, "hidden_size": 64, "intermediate_size": 64}
    target = make_target(**sizes)
    inner = 128
    config = draft_config(**sizes, target_hidden_size=64, hidden_correction_intermediate_size=inner)
    drafter = Drafter(drafter_config(config))
    randomize(drafter, 3)
    if quantised:
        nn.quantize(drafter.hidden_correction, 32, 8)
        nn.quantize(target.model, 32, 8)
        target = Target(target.model, target.config, TAPS)
    return drafter, target


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize(("vocabulary", "small"), [(96, True), (1500, False)])
def test_a_table_says_what_would_be_worked_out_and_is_kept_where_it_is_small(
    vocabulary: int, small: bool, quantised: bool
) -> None:
    drafter, target = made(vocabulary, quantised)
    told = Told(drafter, target)
    assert told.looked_up is small
    expected = drafter.hidden_correction.told(target.embed(IDS))
    found = told(IDS)
    assert found.shape == expected.shape == (4, 256)
    assert mx.allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert not mx.allclose(found[0], found[1], atol=1e-2)


def test_a_large_table_is_made_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    drafter, target = made(1500, False)
    monkeypatch.setattr(module, "SHARE", 100.0)
    told = Told(drafter, target)
    assert told.looked_up
    ids = mx.array([0, 1023, 1024, 1499])
    expected = drafter.hidden_correction.told(target.embed(ids))
    assert mx.allclose(told(ids), expected, rtol=1e-4, atol=1e-4)


def test_a_draft_is_the_same_with_a_table_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    drafts = []
    for share in (module.SHARE, 0.0):
        monkeypatch.setattr(module, "SHARE", share)
        pair = make_pair()
        context = Context(pair)
        ids = [5, 6, 7, 8, 9]
        _, taps = pair.target.forward(mx.array([ids]), context.target_cache)
        context.commit([*ids, 11], len(ids), taps)
        drafts.append(propose(context, pair.block_size - 1).ids.tolist())
        assert pair.told.looked_up is (share > 0)
    assert drafts[0] == drafts[1]
    assert len(set(drafts[0])) > 1  # type: ignore[arg-type]
