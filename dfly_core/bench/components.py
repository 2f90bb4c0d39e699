"""Where a cycle's time goes: each part alone, and what the sum would allow."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from dfly_core.bench.trials import Cancelled, Run
from dfly_core.engine.calibrate import chain_costs, new_rows
from dfly_core.engine.context import Context
from dfly_core.engine.cycle import verify
from dfly_core.engine.prefill import prefill
from dfly_core.engine.propose import propose
from dfly_core.model.pair import Pair
from dfly_core.records.stats import Stats

ROUNDS = 24  # over all prompts; at least one after each
NOTE = (
    "seconds, medians; each part alone, between the trials, from the making of its graph to its "
    "result; a draft reads half a block of new context rows on its way; ideal is draft + verify "
    "one after another with nothing between (a cycle makes one graph while the device runs "
    "another, so it may beat that), host is what a cycle takes beyond them"
)

Part = Callable[[], Any]
Times = dict[str, list[float]]  # seconds of a part, each time it was run


class Parts:
    """Times the parts of a cycle after a prompt; `draft` is of K-1 proposals, `draft 1` of one."""

    def __init__(self, pair: Pair, prompt: Sequence[int]) -> None:
        assert pair.drafter is not None
        self.context = Context(pair)
        for _ in prefill(self.context, prompt, lambda: False):
            pass
        self.context.ids = list(prompt[: self.context.length + 1])
        self.context.read_pending()
        self._parts = _draft_parts(self.context) | _verify_parts(self.context)
        self.times: Times = {name: [] for name in self._parts}
        for part in self._parts.values():
            self._run(part)  # the first run compiles and allocates

    def round(self) -> None:
        """Time every part once."""
        for name, part in self._parts.items():
            self.times[name].append(self._run(part))

    def _run(self, part: Part) -> float:
        start = time.perf_counter()
        mx.eval(part())
        seconds = time.perf_counter() - start
        self.context.settle()
        return seconds


class Components:
    """The parts of a cycle, timed between the trials, so that both meet the same machine."""

    def __init__(self, pair: Pair, prompts: int, cancelled: Cancelled) -> None:
        self._pair = pair
        self._cancelled = cancelled
        self._rounds = -(-ROUNDS // max(1, prompts))
        self._times: Times = {}
        self._rows: list[int] = []

    def time(self, prompt: Sequence[int]) -> None:
        """Time them after `prompt`, which may hold the beginning of its answer, until a stop."""
        parts = Parts(self._pair, prompt)
        for _ in range(self._rounds):
            if self._cancelled():
                return
            parts.round()
        self._rows.append(parts.context.length)
        for name, seconds in parts.times.items():
            self._times.setdefault(name, []).extend(seconds)

    def found(self, runs: Sequence[Run]) -> dict[str, Any]:
        """The parts' medians, and the ideal against the achieved rate of `runs`."""
        parts, stats = medians(self._times), Stats()
        for run in runs:
            for step in run.steps:
                stats = stats.add(step)
        out: dict[str, Any] = {
            "context_rows": int(statistics.median(self._rows)),
            "seconds": {name: parts[name] for name in parts if not name.startswith("verify ")},
            "verify_seconds_by_width": [parts[f"verify {w}"] for w in range(self._pair.widest + 1)],
            "note": NOTE,
        }
        return out | rates(stats, parts, self._pair.block_size - 1)


def medians(times: Times) -> dict[str, float]:
    """Seconds of each part; `verify 3` checks 3 proposals."""
    return {name: statistics.median(found) for name, found in times.items()}


def rates(stats: Stats, parts: dict[str, float], most: int) -> dict[str, Any]:
    """Achieved: what the steps gave. Ideal: the same tokens a cycle in the time of its parts.

    `most` is K-1, the number of proposals of the part `draft`.
    """
    mean, cycles = stats.mean_accepted_length, stats.cycles
    if not cycles or mean is None:
        return {"mean_width": None, "cycle_seconds": None, "host_seconds": None,
                "ideal_tps": None, "achieved_tps": stats.tokens_per_second}  # fmt: skip
    width = stats.verified / cycles
    drafts = chain_costs(parts["draft 1"], parts["draft"], most)
    low = int(width)
    costs = [drafts[w] + parts[f"verify {w}"] for w in (low, math.ceil(width))]
    device = costs[0] + (width - low) * (costs[1] - costs[0])
    plain = stats.plain_steps * parts["verify 0"]
    taken = cycles * device + plain
    return {
        "mean_width": width,
        "cycle_seconds": max(0.0, stats.decode_seconds - plain) / cycles,
        "host_seconds": max(0.0, stats.decode_seconds - taken) / cycles,
        "ideal_tps": stats.decode_tokens / taken,
        "achieved_tps": stats.tokens_per_second,
    }


def _draft_parts(context: Context) -> dict[str, Part]:
    drafter, target = context.drafter, context.pair.target
    assert drafter is not None
    config = drafter.config
    steps = config.block_size - 1
    embedded = target.embed(mx.array([[context.ids[-1]] + [config.mask_token_id] * steps]))
    rows = drafter.backbone(embedded, context.draft_cache)[1:]
    split = mx.split(rows, steps)
    taps, first = new_rows(context), mx.array([context.ids[-1]])
    mx.eval(embedded, split, taps, first)

    def draft(width: int) -> Part:
        def part() -> mx.array:
            context.hold(taps)
            return propose(context, width).ids

        return part

    parts: dict[str, Part] = {
        "draft": draft(steps),
        "draft 1": draft(1),
        "backbone": lambda: drafter.backbone(embedded, context.draft_cache, taps),
        # One reading of the head a step, as the chain does, without the chain.
        "head": lambda: [context.head.best(row) for row in split],
    }
    if config.enable_hidden_correction:
        correction = drafter.hidden_correction

        def corrected() -> list[mx.array]:
            prepared, id, out = mx.split(correction.prepare(rows), steps), first, []
            for row, part in zip(split, prepared, strict=True):
                out.append(correction(row, part, context.pair.told(id)))
                id = (0 * out[-1][:, 0]).astype(mx.int32)  # the next waits, as for a token's id
            return out

        parts["correction"] = corrected
    return parts


def _verify_parts(context: Context) -> dict[str, Part]:
    draft = propose(context, context.pair.block_size - 1)
    mx.eval(draft.ids)

    def check(width: int) -> Part:
        return lambda: verify(context, draft, width).choices

    return {f"verify {width}": check(width) for width in range(context.pair.widest + 1)}
