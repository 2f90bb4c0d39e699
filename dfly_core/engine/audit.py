"""Re-checks a committed block one row at a time, every few hundred tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.engine.sampling import GREEDY, Chooser


def audit(
    context: Context, block: Sequence[int], choices: Sequence[int], chooser: Chooser = GREEDY
) -> str | None:
    """Run the ids of `block`, whose rows were just verified, again one by one; None when equal.

    Compares the target's choices and all bits of the K/V rows. Afterwards the cache holds
    the single rows, or the committed ones only when something differed; then the verdict
    is withdrawn and the reason is returned.
    """
    target, stores = context.pair.target, context.target_cache
    rows = slice(context.length, context.length + len(block))
    verified = [(s.keys[:, :, rows], s.values[:, :, rows]) for s in stores]
    context.settle()
    alone = []
    for index, id in enumerate(block):
        hidden, _ = target.forward(mx.array([[id]]), stores)
        alone.append(chooser.choose(target.head(hidden)[0], context.length + 1 + index)[0])
    single = [(s.keys[:, :, rows], s.values[:, :, rows]) for s in stores]
    same = [
        mx.array_equal(a.view(mx.uint16), b.view(mx.uint16))
        for mine, theirs in zip(verified, single, strict=True)
        for a, b in zip(mine, theirs, strict=True)
    ]
    chosen: list[int] = mx.stack(alone).tolist()  # type: ignore[assignment]
    fault = None
    if chosen != list(choices[: len(block)]):
        fault = "chose other tokens"
    elif not mx.all(mx.stack(same)).item():
        fault = "left other keys and values"
    if fault is None:
        return None
    context.settle()
    return _withdraw(context, len(block), fault)


def _withdraw(context: Context, rows: int, fault: str) -> str:
    pair = context.pair
    why = (
        f"a check at token {context.length} found that a block of {rows} rows {fault} than "
        "single rows: one token at a time from here, and earlier blocks of this session may "
        "have differed"
    )
    if pair.verdict is not None:
        words = f"withdrawn: {why}"
        pair.verdict = replace(pair.verdict, exact_width=0, width=0, route="none", words=words)
    pair.distrust()
    return why
