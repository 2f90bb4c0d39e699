"""Reading the prompt: in chunks, the last token alone, as mlx-lm does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.records.events import Progress

CHUNK = 2048


def prefill(
    context: Context, ids: Sequence[int], cancelled: Callable[[], bool]
) -> Iterator[Progress]:
    """Read ids[context.length:-1]; the drafter reads each chunk's taps at once.

    The context is whole between chunks, so a cancel keeps what was read.
    """
    start = time.perf_counter()
    first, end = context.length, len(ids) - 1
    while context.length < end and not cancelled():
        chunk = list(ids[context.length : min(end, context.length + CHUNK)])
        _, taps = context.pair.target.forward(mx.array([chunk]), context.target_cache)
        context.commit(chunk, len(chunk), taps)
        context.read_pending()
        del taps
        stores = [*context.target_cache, *context.draft_cache]
        mx.eval([store.state[:2] for store in stores])
        mx.clear_cache()
        done = context.length - first
        rate = done / max(1e-9, time.perf_counter() - start)
        yield Progress("prompt", "", done, end - first, "tokens", rate)


def first_choice(context: Context, last: int) -> mx.array:
    """Read the prompt's last id alone: logits (V,) of the token after it. Lazy."""
    target = context.pair.target
    hidden, taps = target.forward(mx.array([[last]]), context.target_cache)
    context.commit([last], 1, taps)
    return target.head(hidden)[0, -1]
