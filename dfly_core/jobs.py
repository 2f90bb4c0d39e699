"""The one list of what this program can do: a job is a generator of events.

What only other jobs need is imported by them: a chat's start is not to wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import mlx.core as mx

from dfly_core.engine.calibrate import measure_costs
from dfly_core.engine.context import Context
from dfly_core.engine.gap import two_best
from dfly_core.engine.generate import check_request, generate
from dfly_core.engine.predict import KnownTarget
from dfly_core.exact.attention import AttentionSeen
from dfly_core.exact.verdict import prepare
from dfly_core.model.machine import backend, model_fingerprint
from dfly_core.model.pair import Pair, check_pair, fetch_pair, load_pair
from dfly_core.model.prompt import prompt_ids
from dfly_core.records.commands import (
    Bench,
    Convert,
    Diagnose,
    Doctor,
    Generate,
    GenerateOptions,
    Job,
    Load,
)
from dfly_core.records.errors import Stopped, Usage
from dfly_core.records.events import (
    Cancelled,
    Costed,
    Diagnosed,
    Event,
    Generated,
    Loaded,
    Progress,
    Stepped,
)
from dfly_core.records.loaded import Costs, Verdict
from dfly_core.records.stats import Stats
from dfly_core.records.step import Finish, Token

IsCancelled = Callable[[], bool]
Returned = TypeVar("Returned")


def stoppable(
    steps: Generator[Progress, None, Returned], cancelled: IsCancelled
) -> Generator[Progress, None, Returned]:
    """The same events and result; raises Stopped before the step that a cancel finds next."""
    while True:
        if cancelled():
            steps.close()
            raise Stopped
        try:
            event = next(steps)
        except StopIteration as end:
            result: Returned = end.value
            return result
        yield event


class Program:
    """Holds the loaded pair and the conversation's context between jobs.

    Only one pair is held at a time: a Load, or a job that brings a pair of its own, drops the
    one before. When such a job fails or is cancelled, who wants the old pair loads it again.
    """

    def __init__(self, ahead: AttentionSeen | None = None) -> None:
        self._ahead = ahead  # what the first load need not probe
        self._forget()

    def _forget(self) -> None:
        self._pair: Pair | None = None
        self._context: Context | None = None
        self._costs: Costs | None = None
        self._verdict: Verdict | None = None  # of a pair whose costs are not measured yet
        self._loaded: Load | None = None
        self._files: tuple[str, ...] = ()

    def run(self, job: Job, cancelled: IsCancelled) -> Iterator[Event]:
        """Do one job; yields its events, the closing one last; raises DflyError."""
        try:
            yield from self._run(job, cancelled)
        except Stopped:
            yield Cancelled()

    def _run(self, job: Job, cancelled: IsCancelled) -> Iterator[Event]:
        if isinstance(job, Load):
            yield from self._load(job, cancelled)
        elif isinstance(job, Generate):
            yield from self._generate(job, cancelled)
        elif isinstance(job, Diagnose):
            yield from self._diagnose(job, cancelled)
        elif isinstance(job, Convert):
            yield from self._convert(job, cancelled)
        elif isinstance(job, Bench):
            yield from self._bench(job, cancelled)
        elif isinstance(job, Doctor):
            from dfly_core.doctor import examine

            yield from examine(job, partial(self._ensure, cancelled=cancelled))
        else:
            raise Usage(f"{type(job).__name__} is not something this version can do")

    def _load(self, job: Load, cancelled: IsCancelled) -> Iterator[Event]:
        yield Progress("load", job.model or "embedded pair", 0, 1, "models")
        yield from fetch_pair(job, cancelled)
        # What does not fit is told before the old pair goes.
        target, _, draft, _ = check_pair(job)
        files = tuple(model_fingerprint(folder) for folder in _there(target, draft))
        if cancelled():
            raise Stopped
        pair = self._pair if self._is_loaded(job, files) else None
        # The old pair goes first: two 8B models at once would not fit most machines.
        self._forget()
        mx.clear_cache()
        pair = pair or load_pair(job)
        verdict = yield from stoppable(prepare(pair, job.verify, ahead=self._ahead), cancelled)
        self._ahead = None  # a test after a fault was found looks anew
        if cancelled():
            raise Stopped
        # Only now: a load that failed leaves nothing to answer with, least of all untested.
        self._pair, self._context, self._verdict = pair, Context(pair), verdict
        self._loaded, self._files = job, files
        yield Loaded(pair.info, verdict and verdict.without_costs())

    @property
    def unsettled(self) -> bool:
        """Whether the loaded pair's costs are still to be measured."""
        return self._verdict is not None

    def settle(self, stop: IsCancelled) -> Iterator[Costed]:
        """Measure them, unless `stop` says to leave it for later. A moment, best a calm one."""
        pair, verdict = self._pair, self._verdict
        if pair is None or verdict is None:
            return
        costs = measure_costs(pair, stop)
        if costs is not None:
            self._costs, self._verdict = costs, None
            yield Costed(verdict.with_costs(costs))

    def _is_loaded(self, job: Load, files: tuple[str, ...]) -> bool:
        """Whether these very models are there; another verify mode reads nothing again."""
        mine = self._loaded
        return mine is not None and replace(mine, verify=job.verify) == job and files == self._files

    def _convert(self, job: Convert, cancelled: IsCancelled) -> Iterator[Event]:
        from dfly_core.convert.check import check
        from dfly_core.convert.convert import convert

        if not job.check:
            yield from convert(job, cancelled)
            return
        yield from self.settle(cancelled)
        pair, loaded = self._pair, None
        if pair is not None and self._costs is not None and pair.drafter is not None:
            info = pair.info
            loaded = KnownTarget(
                name="the embedded pair" if info.embedded else info.model,
                config=pair.target.config,
                by_bytes=backend() != "cpu",
                costs=self._costs,
                drafter=pair.drafter.config,
                draft_bits=info.draft_bits or 16,
            )
        yield from check(job, cancelled, loaded, _not_loaded)

    def _bench(self, job: Bench, cancelled: IsCancelled) -> Iterator[Event]:
        from dfly_core.bench.run import benchmark

        request = Load(job.model, job.draft, verify=job.verify, draft_bits=job.draft_bits)
        pair = yield from self._ensure(request, cancelled)
        yield from self.settle(cancelled)
        yield from benchmark(job, pair, self._costs, cancelled)

    def _ensure(self, request: Load, cancelled: IsCancelled) -> Generator[Progress, None, Pair]:
        """The pair a job needs: the one that is there if it is the same, else loaded now."""
        if request != self._loaded:
            # Loaded would end the job; the job's own report says what was loaded.
            events = self._load(request, cancelled)
            yield from (event for event in events if isinstance(event, Progress))
        assert self._pair is not None
        return self._pair

    def _ready(self) -> tuple[Pair, Context]:
        if self._pair is None or self._context is None:
            raise Usage("no model is loaded", "load one first")
        return self._pair, self._context

    def _diagnose(self, job: Diagnose, cancelled: IsCancelled) -> Iterator[Event]:
        pair, context = self._ready()
        prompt = prompt_ids(pair.tokenizer, job.messages, job.thinking)
        check_request(context, [*prompt, *job.ids], GenerateOptions())
        best = yield from two_best(context, prompt, job.ids, cancelled)
        (first, high), (second, low) = best
        tokens = (Token(first, pair.decode([first])), Token(second, pair.decode([second])))
        yield Diagnosed(tokens, (high, low))

    def _generate(self, job: Generate, cancelled: IsCancelled) -> Iterator[Event]:
        pair, context = self._ready()
        yield from self.settle(cancelled)  # belongs to the load, not to this answer's times
        begun = time.perf_counter()
        mx.reset_peak_memory()
        options = job.options
        ids = prompt_ids(pair.tokenizer, job.messages, options.thinking)
        stats = Stats(prompt_tokens=len(ids), reused_tokens=context.common(ids))
        finish: Finish = "cancelled"
        for event in generate(context, ids, options, cancelled, costs=self._costs):
            if isinstance(event, Progress):
                yield event
                continue
            stats = stats.add(event)
            if event.index == 0 and event.kept:
                stats = replace(stats, time_to_first_token=time.perf_counter() - begun)
            finish = event.finish or finish
            yield Stepped(event)
        yield Generated(stats, finish, len(context.ids), mx.get_peak_memory())


def _not_loaded(name: str, config: Mapping[str, Any]) -> KnownTarget:
    """What is known of a target that was not loaded: how fast memory is, where that decides."""
    from dfly_core.doctor import measure_bandwidth

    by_bytes = backend() != "cpu"
    rate = measure_bandwidth() if by_bytes else None
    return KnownTarget(name, config, by_bytes, bandwidth=rate)


def _there(*folders: Path | None) -> Iterator[Path]:
    return (folder for folder in folders if folder is not None)
