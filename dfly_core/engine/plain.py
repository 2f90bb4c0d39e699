"""The target alone, one token at a time, the next launched before this one is read."""

from __future__ import annotations

import time
from collections.abc import Generator

import mlx.core as mx

from dfly_core.engine.run import Run
from dfly_core.records.step import Finish, Step


def decode_plain(
    run: Run, off: str | None, steps: int | None = None
) -> Generator[Step, None, Finish | None]:
    """Plain steps until the answer ends; returns None after `steps`, or when drafting pays again.

    While parked a short draft is made now and then, for the policy to judge by what the
    target says anyway.
    """
    context, parked = run.context, run.policy.off is not None
    start = time.perf_counter()
    now = _launch(run, mx.array([[context.ids[-1]]]))
    done = 0
    probe: mx.array | None = None
    try:
        while True:
            if run.cancelled():
                context.settle()
                yield run.closing_step("cancelled")
                return "cancelled"
            done += 1
            choice, taps = now
            last = run.stop.remaining == 1 or done == steps
            if not last:
                now = _launch(run, choice[:, None])
            token = int(choice.item())  # type: ignore[arg-type]
            if probe is not None:
                run.policy.probe(probe.tolist())  # type: ignore[arg-type]
                probe = None
            cut = run.stop.cut([token])
            position, anchor = context.length, context.ids[-1]
            over = cut.finish is not None or last
            context.commit([token][: cut.kept], 1, taps, ahead=0 if over else 1)
            total = time.perf_counter() - start
            step = run.plain_step(position, anchor, token, cut, off, total)
            run.policy.observe_plain(token)
            if not over and context.drafter and run.policy.wants_probe():
                probe = run.propose(context, run.policy.probe_size).ids
                mx.async_eval(probe)
            yield step
            if over:
                return cut.finish
            if parked and run.policy.off is None:
                return None
            start = time.perf_counter()
    finally:
        context.settle()


def _launch(run: Run, ids: mx.array) -> tuple[mx.array, list[mx.array]]:
    """Run one row; its choice (1,) and its taps, under way on the device."""
    target, store = run.context.pair.target, run.context.target_cache
    hidden, taps = target.forward(ids, store)
    choice = run.chooser.choose(target.head(hidden)[0], store[0].offset)
    mx.async_eval(choice)
    return choice, taps
