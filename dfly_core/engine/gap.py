"""How near a tie was: the target's two best tokens at one place of an answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.engine.prefill import first_choice, prefill
from dfly_core.records.errors import Stopped
from dfly_core.records.events import Progress

Best = tuple[tuple[int, float], tuple[int, float]]  # (id, logit) of the best and the second


def two_best(
    context: Context, prompt: Sequence[int], answer: Sequence[int], cancelled: Callable[[], bool]
) -> Generator[Progress, None, Best]:
    """The target's two best ids, with their logits, after `prompt` and the start of its answer.

    What the caches hold stays, so that after a decoding these are the logits it chose by; the
    rest is read as a decoding reads it: the prompt in chunks, the answer a row at a time. At a
    tie the lower id is the better one. Yields Progress; raises Stopped when cancelled.
    """
    ids, logits = [*prompt, *answer], mx.array([])
    try:
        context.reuse(ids)
        yield from prefill(context, prompt, cancelled)
        while context.length < len(ids):  # at least the last id: `reuse` leaves it
            if cancelled():
                raise Stopped
            logits = first_choice(context, ids[context.length])[0].astype(mx.float32)
            mx.eval(logits)
    except (GeneratorExit, Stopped):
        raise  # between two rows, where the context is whole
    except BaseException:
        context.clear()
        raise
    first = int(mx.argmax(logits).item())  # type: ignore[arg-type]
    others = mx.where(mx.arange(logits.size) == first, -mx.inf, logits)
    second = int(mx.argmax(others).item())  # type: ignore[arg-type]
    return (first, _value(logits, first)), (second, _value(logits, second))


def _value(logits: mx.array, id: int) -> float:
    return float(logits[id].item())  # type: ignore[arg-type]
