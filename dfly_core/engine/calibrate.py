"""Measures what a plain step, a draft and a verification cost here, for the width policy."""

from __future__ import annotations

import time
from collections.abc import Callable

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.engine.cycle import verify
from dfly_core.engine.propose import propose
from dfly_core.model.pair import Pair
from dfly_core.records.loaded import Costs

ROUNDS, QUICK_ROUNDS = 5, 20
ROWS = 48  # of context; costs grow with it, their ratios hardly
QUICK, ENOUGH = 0.5, 2.0  # seconds: a small model gets more rounds, a large one fewer


def measure_costs(pair: Pair) -> Costs | None:
    """The least of a few interleaved rounds, in seconds; None when there is no drafter."""
    if pair.drafter is None:
        return None
    context = Context(pair)
    ids = [i % pair.info.vocab_size for i in range(1, ROWS + 1)]
    _, taps = pair.target.forward(mx.array([ids]), context.target_cache)
    context.commit([*ids, ids[0]], ROWS, taps)
    taps = new_rows(context)
    most = pair.block_size - 1
    draft = propose(context, most)
    mx.eval(draft.ids)

    def again(width: int) -> Callable[[], None]:
        def run() -> None:
            context.hold(taps)
            mx.eval(propose(context, width).ids)
            context.settle()

        return run

    def check(width: int) -> Callable[[], None]:
        def run() -> None:
            mx.eval(verify(context, draft, width).choices)
            context.settle()

        return run

    jobs: list[Callable[[], None]] = [check(w) for w in range(pair.block_size)]
    jobs += [again(1), again(most)]
    times: list[list[float]] = [[] for _ in jobs]
    for job in jobs:
        job()  # the first run compiles and allocates
    begun = time.perf_counter()
    for number in range(QUICK_ROUNDS):
        for job, found in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            found.append(time.perf_counter() - start)
        spent = time.perf_counter() - begun
        if spent > ENOUGH or (spent > QUICK and number + 1 >= ROUNDS):
            break
    # The least of a few rounds: what else runs here can only add to a cost, and a policy that
    # was told of such an addition would park for the rest of the session.
    *verifies, short, long = (min(found) for found in times)
    return Costs(
        plain=verifies[0],
        verify=tuple(verifies),
        draft=chain_costs(short, long, most),
        context=ROWS,
        taken_at=time.time(),
    )


def chain_costs(short: float, long: float, most: int) -> tuple[float, ...]:
    """Seconds of drafts of 0..`most` proposals from those of 1 and of `most`."""
    each = max(0.0, long - short) / max(1, most - 1)
    return tuple(max(short, long) - each * (most - width) for width in range(most + 1))


def new_rows(context: Context) -> list[mx.array]:
    """Tap rows (1, K/2, D), all zero: about as many as a cycle hands to the draft after it."""
    assert context.drafter is not None
    config, target = context.drafter.config, context.pair.target
    shape = (1, max(1, config.block_size // 2), config.target_hidden_size)
    taps = [mx.zeros(shape, target.dtype) for _ in target.taps]
    mx.eval(taps)
    return taps
