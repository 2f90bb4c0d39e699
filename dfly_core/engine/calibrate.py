"""Measures what a plain step, a draft and a verification cost here, for the width policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.engine.cycle import verify
from dfly_core.engine.propose import propose
from dfly_core.model.pair import Pair
from dfly_core.records.loaded import Costs

ROUNDS, QUICK_ROUNDS = 5, 20
ROUGH_ROUNDS = 3  # for a choice that no small error turns
ROWS = 48  # of context; costs grow with it, their ratios hardly
QUICK, ENOUGH = 0.5, 2.0  # seconds: a small model gets more rounds, a large one fewer


def measure_costs(pair: Pair, stop: Callable[[], bool] = lambda: False) -> Costs | None:
    """The least of a few interleaved rounds, in seconds; None when there is no drafter.

    Once `stop` says so, nothing more is timed; None then too.
    """
    if pair.drafter is None:
        return None
    jobs, most = _Jobs(pair), pair.block_size - 1
    verifies = [jobs.verify(width) for width in range(pair.block_size)]
    least = _least([*verifies, jobs.draft(1), jobs.draft(most)], stop=stop)
    if least is None:
        return None
    *verified, short, long = least
    return Costs(
        plain=verified[0],
        verify=tuple(verified),
        draft=chain_costs(short, long, most),
        context=ROWS,
        taken_at=time.time(),
    )


def measure_draft(pair: Pair) -> tuple[float, ...]:
    """`Costs.draft` alone, roughly; empty when there is no drafter."""
    if pair.drafter is None:
        return ()
    jobs, most = _Jobs(pair), pair.block_size - 1
    least = _least([jobs.draft(1), jobs.draft(most)], ROUGH_ROUNDS)
    if least is None:
        return ()
    short, long = least
    return chain_costs(short, long, most)


class _Jobs:
    """The parts of a cycle after `ROWS` tokens, each from the making of its graph to its result."""

    def __init__(self, pair: Pair) -> None:
        self._context = context = Context(pair)
        ids = [i % pair.info.vocab_size for i in range(1, ROWS + 1)]
        _, taps = pair.target.forward(mx.array([ids]), context.target_cache)
        context.commit([*ids, ids[0]], ROWS, taps)
        self._taps = new_rows(context)
        self._draft = propose(context, pair.block_size - 1)
        mx.eval(self._draft.ids)

    def draft(self, width: int) -> Callable[[], None]:
        """A draft of `width` proposals, which reads half a block of new rows on its way."""

        def run() -> None:
            self._context.hold(self._taps)
            mx.eval(propose(self._context, width).ids)
            self._context.settle()

        return run

    def verify(self, width: int) -> Callable[[], None]:
        """A verification of `width` proposals; 0 is a plain step."""

        def run() -> None:
            mx.eval(verify(self._context, self._draft, width).choices)
            self._context.settle()

        return run


def _least(
    jobs: Sequence[Callable[[], None]],
    most: int = QUICK_ROUNDS,
    stop: Callable[[], bool] = lambda: False,
) -> list[float] | None:
    """Seconds of each job, run in turns, `most` times at most; None once `stop` says so.

    The least of a few rounds: what else runs here can only add to a cost, and a policy that was
    told of such an addition would park for the rest of the session.
    """
    times: list[list[float]] = [[] for _ in jobs]
    for job in jobs:
        if stop():
            return None
        job()  # the first run compiles and allocates
    begun = time.perf_counter()
    for number in range(most):
        for job, found in zip(jobs, times, strict=True):
            if stop():
                return None
            start = time.perf_counter()
            job()
            found.append(time.perf_counter() - start)
        spent = time.perf_counter() - begun
        if spent > ENOUGH or (spent > QUICK and number + 1 >= ROUNDS):
            break
    return [min(found) for found in times]


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
