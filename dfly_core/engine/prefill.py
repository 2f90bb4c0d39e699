"""Reading the prompt: in chunks, the last token alone, as mlx-lm does."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.records.events import Progress

CHUNK = 2048
# The last rows of a short prompt tell the draft's head what may come: 0.1 GB less a draft at
# 8B (`tests.tools.head_share`). In a long one the ids read do, and its last layer costs more.
LEARNT, SHORT = 64, 256


def prefill(
    context: Context, ids: Sequence[int], cancelled: Callable[[], bool]
) -> Generator[Progress, None, mx.array | None]:
    """Read ids[context.length:-1]; the drafter reads each chunk's taps at once.

    The context is whole between chunks, so a cancel keeps what was read. Returns the last
    rows' final hidden (R, D) to `learn` from, lazy; None where that is not worth it.
    """
    rows: mx.array | None = None
    start = time.perf_counter()
    first, end = context.length, len(ids) - 1
    while context.length < end and not cancelled():
        chunk = list(ids[context.length : min(end, context.length + CHUNK)])
        hidden, taps = context.pair.target.forward(mx.array([chunk]), context.target_cache)
        context.commit(chunk, len(chunk), taps)
        context.read_pending()
        last = context.length >= end and len(chunk) <= SHORT and context.head.learns
        rows = hidden[0, -LEARNT:] if last else None
        del hidden, taps
        stores = [*context.target_cache, *context.draft_cache]
        mx.eval([store.state[:2] for store in stores])
        mx.clear_cache()
        done = context.length - first
        rate = done / max(1e-9, time.perf_counter() - start)
        yield Progress("prompt", "", done, end - first, "tokens", rate)
    return rows


def learn(context: Context, first: mx.array, rows: mx.array | None) -> None:
    """Show the draft's head `first` (1, V) and the distributions of the prompt's last `rows`.

    After the first token is out: one product over the head, which nothing else waits for.
    """
    if context.head.learns:
        context.head.saw(first)
        if rows is not None:
            context.head.saw(context.pair.target.head(rows))


def first_choice(context: Context, last: int) -> mx.array:
    """Read the prompt's last id alone: logits (1, V) of the token after it. Lazy."""
    target = context.pair.target
    hidden, taps = target.forward(mx.array([[last]]), context.target_cache)
    context.commit([last], 1, taps)
    return target.head(hidden)[0]
