"""The host waits for the device once a cycle."""

from __future__ import annotations

from collections import Counter
from typing import Any

import mlx.core as mx
import pytest

from dfly_core.engine.context import Context
from dfly_core.engine.generate import generate
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.step import Step
from tests.tiny import alone, make_pair, oracle

PROMPT = [5, 17, 3, 88]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts everything by which Python code can wait for MLX."""
    counts: Counter[str] = Counter()

    def watch(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            counts[name] += 1
            return real(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    for name in ("tolist", "item", "__bool__", "__int__", "__float__"):
        watch(mx.array, name)
    for name in ("eval", "synchronize"):
        watch(mx, name)
    return counts


@pytest.mark.parametrize("width", [1, 3, None])
def test_a_cycle_waits_once_and_a_timed_one_once_more(
    waits: Counter[str], width: int | None
) -> None:
    pair = make_pair(max_position_embeddings=600)
    truth = alone(pair, PROMPT, 300)
    options = GenerateOptions(max_tokens=200, width=width)
    seen, plain, timed = 0, 0, 0
    for event in generate(Context(pair), PROMPT, options, lambda: False, oracle(truth, 4)):
        now = sum(waits.values())
        if isinstance(event, Step) and event.is_cycle:
            waited = now - seen
            assert waited == (2 if event.seconds.sampled else 1), waits
            timed += event.seconds.sampled
            plain += not event.seconds.sampled
        seen = now
    assert plain > 10 * timed > 0


def test_a_plain_step_waits_once(waits: Counter[str]) -> None:
    pair = make_pair()
    seen = 0
    options = GenerateOptions(max_tokens=50, width=0)
    for event in generate(Context(pair), PROMPT, options, lambda: False):
        now = sum(waits.values())
        if isinstance(event, Step) and event.index > 0:
            assert now - seen == 1
        seen = now
