"""Where a cycle's time goes: each part alone, and what the sum would allow."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from dfly_core.bench.trials import Cancelled, Run
from dfly_core.engine.context import Context
from dfly_core.engine.cycle import verify
from dfly_core.engine.prefill import prefill
from dfly_core.engine.propose import propose
from dfly_core.model.pair import Pair
from dfly_core.records.stats import Stats

ROUNDS = 7
NOTE = (
    "seconds, medians; each part was run alone and waited for, so their sum exceeds a cycle "
    "where the device overlaps them; host is what a cycle takes beyond draft and verify"
)


def measure_components(
    pair: Pair, prompt: Sequence[int], runs: Sequence[Run], cancelled: Cancelled
) -> dict[str, Any]:
    """The parts of a cycle after `prompt`, and the ideal against the achieved rate of `runs`."""
    assert pair.drafter is not None
    context = Context(pair)
    for _ in prefill(context, prompt, cancelled):
        pass
    context.ids = list(prompt[: context.length + 1])
    context.read_pending()
    parts = _timed(_draft_parts(context) | _verify_parts(context))
    stats = Stats()
    for run in runs:
        for step in run.steps:
            stats = stats.add(step)
    out: dict[str, Any] = {
        "context_rows": context.length,
        "seconds": {name: parts[name] for name in parts if not name.startswith("verify ")},
        "verify_seconds_by_width": [parts[f"verify {w}"] for w in range(pair.widest + 1)],
        "note": NOTE,
    }
    return out | _rates(stats, parts, pair.widest)


def _rates(stats: Stats, parts: dict[str, float], widest: int) -> dict[str, Any]:
    """Achieved: what the trials gave. Ideal: the same tokens a cycle, at draft + verify alone."""
    mean, cycles = stats.mean_accepted_length, stats.cycles
    if not cycles or mean is None:
        return {"mean_width": None, "cycle_seconds": None, "host_seconds": None,
                "ideal_tps": None, "achieved_tps": stats.tokens_per_second}  # fmt: skip
    width = stats.verified / cycles
    low = min(widest, int(width))
    high = min(widest, low + 1)
    verified = parts[f"verify {low}"] + (width - low) * (
        parts[f"verify {high}"] - parts[f"verify {low}"]
    )
    device = parts["draft"] + verified
    cycle = stats.decode_seconds / (cycles + stats.plain_steps)
    return {
        "mean_width": width,
        "cycle_seconds": cycle,
        "host_seconds": max(0.0, cycle - device),
        "ideal_tps": mean / device,
        "achieved_tps": stats.tokens_per_second,
    }


def _draft_parts(context: Context) -> dict[str, Callable[[], Any]]:
    drafter, target = context.drafter, context.pair.target
    assert drafter is not None
    config = drafter.config
    steps = config.block_size - 1
    block = mx.array([[context.ids[-1]] + [config.mask_token_id] * steps])
    embedded = target.embed(block)
    rows = drafter.backbone(embedded, context.draft_cache)[:, 1:]
    taps = [mx.zeros((1, 1, config.target_hidden_size), target.dtype) for _ in target.taps]
    mx.eval(embedded, rows, taps)
    parts: dict[str, Callable[[], Any]] = {
        "draft": lambda: propose(context).ids,
        "backbone": lambda: drafter.backbone(embedded, context.draft_cache),
        # One reading of the head a step, as the chain does, without the chain.
        "head": lambda: [context.head.best(rows[:, j : j + 1]) for j in range(steps)],
        "commit": lambda: drafter.contexts(taps),
    }
    if config.enable_hidden_correction:
        correction = drafter.hidden_correction

        def corrected() -> list[mx.array]:
            prepared, before, out = correction.prepare(rows), embedded[:, :1], []
            for j in range(steps):
                out.append(correction(rows[:, j : j + 1], prepared[:, j : j + 1], before))
                before = out[-1]  # what follows must wait, as it does for a token's embedding
            return out

        parts["correction"] = corrected
    return parts


def _verify_parts(context: Context) -> dict[str, Callable[[], Any]]:
    draft = propose(context)
    mx.eval(draft.ids)

    def check(width: int) -> Callable[[], mx.array]:
        def run() -> mx.array:
            choices = verify(context, draft, width).choices
            mx.eval(choices)
            context.settle()
            return choices

        return run

    return {f"verify {width}": check(width) for width in range(context.pair.widest + 1)}


def _timed(parts: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Medians in seconds, the parts in turn; a first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in parts}
    for number in range(ROUNDS + 1):
        for name, part in parts.items():
            start = time.perf_counter()
            mx.eval(part())
            if number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}
