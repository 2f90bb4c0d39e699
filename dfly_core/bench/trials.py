"""One decoding of one prompt, by the target alone or by DFly, measured alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.engine.generate import generate
from dfly_core.model.pair import Pair
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.loaded import Costs
from dfly_core.records.report import Trial
from dfly_core.records.stats import Stats
from dfly_core.records.step import Step

Cancelled = Callable[[], bool]


@dataclass(frozen=True)
class Run:
    """What a trial decoded, step by step, and its numbers."""

    ids: list[int]
    steps: list[Step]
    trial: Trial

    @property
    def cancelled(self) -> bool:
        """Whether it was stopped from outside, which makes its numbers void."""
        return bool(self.steps) and self.steps[-1].finish == "cancelled"


def run_trial(
    pair: Pair,
    ids: Sequence[int],
    max_tokens: int,
    draft: bool,
    costs: Costs | None,
    cancelled: Cancelled,
) -> Run:
    """Decode the prompt `ids` from empty caches; the baseline when not `draft`.

    The baseline is the target alone, one token at a time, each launched before the one
    before it is read. Its peak memory leaves out the drafter, which lies there unused.
    Nothing of the answers before it is known, neither caches nor acceptance.
    """
    mx.clear_cache()
    mx.reset_peak_memory()
    context = Context(pair, draft=draft)
    options = GenerateOptions(max_tokens=max_tokens, width=None if draft else 0)
    steps: list[Step] = []
    stats = Stats(prompt_tokens=len(ids))
    begun, first = time.perf_counter(), None
    with _nothing_seen(pair):
        for event in generate(context, ids, options, cancelled, costs=costs if draft else None):
            if isinstance(event, Step):
                first = first or time.perf_counter() - begun
                steps.append(event)
                stats = stats.add(event)
    unused = 0 if draft else pair.info.draft_bytes
    return Run(
        ids=[token.id for step in steps for token in step.emitted],
        steps=steps,
        trial=Trial(
            tokens=stats.emitted,
            matches=True,
            tokens_per_second=stats.tokens_per_second,
            time_to_first_token=first,
            prefill_seconds=stats.prefill_seconds,
            peak_memory_bytes=max(0, mx.get_peak_memory() - unused),
            mean_accepted_length=stats.mean_accepted_length,
            acceptance_rate=stats.acceptance_rate,
            cycles=stats.cycles,
            plain_steps=stats.plain_steps,
        ),
    )


@contextmanager
def _nothing_seen(pair: Pair) -> Iterator[None]:
    """An answer that starts from no acceptance seen before, and leaves none."""
    seen, pair.acceptance = pair.acceptance, None
    try:
        yield
    finally:
        pair.acceptance = seen


def compared(run: Run, expected: Sequence[int]) -> Run:
    """The run, its trial marked with whether its ids are the expected ones."""
    return replace(run, trial=replace(run.trial, matches=run.ids == list(expected)))
