"""The speculative loop: draft, verify, accept, commit."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import mlx.core as mx

from dfly_core.engine.audit import audit
from dfly_core.engine.context import Context
from dfly_core.engine.propose import Draft
from dfly_core.engine.run import Run
from dfly_core.engine.sampling import GREEDY, Chooser
from dfly_core.records.step import Finish, Seconds, Step

# One cycle in so many has its parts timed; timing costs syncs of its own, so the rest do not.
TIMED_EVERY = 16
TIMED_FIRST = 2


@dataclass(frozen=True)
class Verification:
    """The target's choice after each verified row (w+1,) int32, T taps (1, w+1, D), the logits
    (w+1, V) it chose from. Lazy."""

    choices: mx.array
    taps: list[mx.array]
    logits: mx.array


def verify(context: Context, draft: Draft, width: int, chooser: Chooser = GREEDY) -> Verification:
    """Run the target over [anchor, d_1..d_width]; writes width+1 rows to its cache."""
    target, routes = context.pair.target, context.pair.routes
    anchor = mx.array([context.ids[-1]], dtype=mx.int32)
    ids = mx.concatenate([anchor, draft.ids[:width]])[None]
    hidden, taps = target.forward(ids, context.target_cache, routes)
    logits = target.head(hidden, routes)[0]
    choices = chooser.choose(logits, context.length + 1)
    return Verification(choices.astype(mx.int32), taps, logits)


def accept(proposals: Sequence[int], choices: Sequence[int]) -> int:
    """The length of the longest prefix on which proposals and the target's choices agree."""
    agreed = 0
    for proposal, choice in zip(proposals, choices, strict=False):
        if proposal != choice:
            break
        agreed += 1
    return agreed


def speculate(run: Run) -> Generator[Step, None, Finish | None]:
    """Cycles until the answer ends or the policy parks (returns None). Whole at each yield."""
    context, policy = run.context, run.policy
    limit = context.pair.target.context_limit
    width = policy.width(limit - context.length - 1)
    draft: Draft | None = None
    cycles = 0
    while True:
        if run.cancelled():
            yield run.closing_step("cancelled")
            return "cancelled"
        if width == 0:
            return None
        clock = _Clock(timed=cycles % TIMED_EVERY == TIMED_FIRST)
        draft = draft or run.propose(context, width)
        clock.drafted(draft)
        check = verify(context, draft, width, run.chooser)
        # The one moment of the cycle at which the host waits for the device.
        asked = [draft.ids, check.choices, context.head.ranks(check.choices)]
        fetched: list[int] = mx.concatenate(asked).tolist()  # type: ignore[assignment]
        clock.verified()
        proposals, rest = fetched[:width], fetched[width:]
        choices, ranks = rest[: width + 1], rest[width + 1 :]

        accepted = accept(proposals, choices)
        if context.audit_due(1 + accepted):
            fault = audit(context, [context.ids[-1], *proposals[:accepted]], choices, run.chooser)
            if fault is not None:
                run.policy.give_up(fault)
                return None
        chosen = [*proposals[:accepted], choices[accepted]]
        cut = run.stop.cut(chosen)  # decided before anything is committed
        position, anchor = context.length, context.ids[-1]
        context.commit(chosen[: cut.kept], 1 + min(cut.kept, accepted), check.taps)
        context.head.judge(ranks[: 1 + accepted])
        policy.observe_cycle(proposals, chosen)
        cycles += 1
        draft, width = None, policy.width(limit - context.length - 1)
        if cut.finish is None and width and cycles % TIMED_EVERY != TIMED_FIRST:
            draft = run.propose(context, width)
            mx.async_eval(draft.ids)  # the device is busy before we talk
        context.head.saw(check.logits[: 1 + accepted])
        yield run.cycle_step(position, anchor, proposals, chosen, cut, clock.seconds())
        if cut.finish is not None:
            return cut.finish


class _Clock:
    """Wall time of a cycle; on a timed one also of its parts, at the price of two more syncs."""

    def __init__(self, timed: bool) -> None:
        self._timed = timed
        self._start = time.perf_counter()
        self._drafted = self._verified = self._start

    def drafted(self, draft: Draft) -> None:
        if self._timed:
            mx.eval(draft.ids)
            self._drafted = time.perf_counter()

    def verified(self) -> None:
        self._verified = time.perf_counter()

    def seconds(self) -> Seconds:
        now = time.perf_counter()
        if not self._timed:
            return Seconds(now - self._start)
        return Seconds(
            now - self._start,
            draft=self._drafted - self._start,
            verify=self._verified - self._drafted,
            commit=now - self._verified,
        )
