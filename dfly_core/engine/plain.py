"""The target alone, one token at a time, the next launched before this one is read."""

from __future__ import annotations

import time
from collections.abc import Generator

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.engine.run import Run
from dfly_core.records.step import Finish, Step


def decode_plain(
    run: Run, off: str | None, steps: int | None = None
) -> Generator[Step, None, Finish | None]:
    """Plain steps until the answer ends, or `steps` of them (returns None)."""
    context = run.context
    start = time.perf_counter()
    now = _launch(context, mx.array([[context.ids[-1]]]))
    done = 0
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
                now = _launch(context, choice[:, None])
            token = int(choice.item())  # type: ignore[arg-type]
            cut = run.stop.cut([token])
            position, anchor = context.length, context.ids[-1]
            over = cut.finish is not None or last
            context.commit([token][: cut.kept], 1, taps, ahead=0 if over else 1)
            total = time.perf_counter() - start
            step = run.plain_step(position, anchor, token, cut, off, total)
            run.policy.observe(step)
            yield step
            if over:
                return cut.finish
            start = time.perf_counter()
    finally:
        context.settle()


def _launch(context: Context, ids: mx.array) -> tuple[mx.array, list[mx.array]]:
    """Run one row; its choice (1,) and its taps, under way on the device."""
    target = context.pair.target
    hidden, taps = target.forward(ids, context.target_cache)
    choice = mx.argmax(target.head(hidden)[:, -1], axis=-1)
    mx.async_eval(choice)
    return choice, taps
