"""Why two decodings of one prompt differ: where, in which block, and how near the tie was."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from dfly_core.bench.trials import Run
from dfly_core.engine.context import Context
from dfly_core.engine.prefill import first_choice, prefill
from dfly_core.model.pair import Pair
from dfly_core.records.report import Withheld
from dfly_core.records.step import Step


def first_difference(expected: Sequence[int], got: Sequence[int]) -> int:
    """The first index at which two answers differ, or where the shorter one ends."""
    for index, (mine, theirs) in enumerate(zip(expected, got, strict=False)):
        if mine != theirs:
            return index
    return min(len(expected), len(got))


def diagnose(pair: Pair, prompt: Sequence[int], expected: Run, got: Run, trial: int) -> Withheld:
    """The first difference of `got` from `expected`, with the target's own logits there."""
    index = first_difference(expected.ids, got.ids)
    right, _, _ = _chosen(expected.steps, index)
    wrong, at, slot = _chosen(got.steps, index)
    logits = target_logits(pair, [*prompt, *expected.ids[:index]], len(prompt))
    known: list[float] = logits.tolist()  # type: ignore[assignment]
    values = tuple(None if id is None else known[id] for id in (right, wrong))
    gap = None if values[0] is None or values[1] is None else values[0] - values[1]
    step = None if at is None else got.steps[at]
    texts = tuple("(the end)" if id is None else pair.decode([id]) for id in (right, wrong))
    route = _route(pair, step, any(step_.is_cycle for step_ in got.steps[:at]))
    return Withheld(
        trial=trial,
        index=index,
        expected=right,
        got=wrong,
        expected_text=texts[0],
        got_text=texts[1],
        logits=(values[0], values[1]),
        gap=gap,
        step=at,
        slot=slot,
        route=route,
        words=(
            f"token {index} is {texts[0]!r} one at a time and {texts[1]!r} by {route}"
            + (f", step {at}, slot {slot}" if at is not None else "")
            + (f"; their logits are {values[0]:.9g} and {values[1]:.9g}" if gap is not None else "")
        ),
    )


def target_logits(pair: Pair, ids: Sequence[int], prompt: int) -> mx.array:
    """The target's logits (V,) after `ids`, of which the first `prompt` are read as a prompt is."""
    context = Context(pair, draft=False)
    for _ in prefill(context, ids[:prompt], lambda: False):
        pass
    logits = first_choice(context, ids[prompt - 1])[0]
    for id in ids[prompt:]:
        hidden, _ = pair.target.forward(mx.array([[id]]), context.target_cache)
        logits = pair.target.head(hidden)[0, -1]
        mx.eval(logits)
    return logits.astype(mx.float32)


def _chosen(steps: Sequence[Step], index: int) -> tuple[int | None, int | None, int | None]:
    """(id, step, slot) of the answer's token `index`, a stop token included; None past the end."""
    before = 0
    for number, step in enumerate(steps):
        if index < before + len(step.chosen):
            slot = index - before
            return step.chosen[slot].id, number, slot
        before += step.kept
    return None, None, None


def _route(pair: Pair, step: Step | None, after_blocks: bool) -> str:
    if step is None or not step.is_cycle:
        return "a single row" + (" over what blocks had written" if after_blocks else "")
    verdict, rows = pair.verdict, step.width + 1
    if verdict is None:
        return f"a block of {rows} rows as it comes"
    how = {"native": "as it comes", "detours": "with detours", "none": "by no exact route"}
    return f"a block of {rows} rows, {verdict.taken}, {how[verdict.route]}"
