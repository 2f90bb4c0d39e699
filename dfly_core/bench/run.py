"""A benchmark as a job: warm up, trials in turn, a row at a time, each written at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dfly_core import __version__
from dfly_core.bench.baseline import check_baseline
from dfly_core.bench.company import Watch
from dfly_core.bench.components import Components
from dfly_core.bench.diagnose import diagnose
from dfly_core.bench.prompts import Prompt, read_prompts
from dfly_core.bench.store import check_writable, finished_rows, unnamed_report, write_report
from dfly_core.bench.trials import Cancelled, Run, compared, run_trial
from dfly_core.engine.context import Context
from dfly_core.engine.generate import check_request
from dfly_core.model.machine import digest, machine_facts, model_fingerprint
from dfly_core.model.pair import Pair
from dfly_core.model.prompt import prompt_ids
from dfly_core.records.commands import Bench, GenerateOptions
from dfly_core.records.errors import DflyError, Usage
from dfly_core.records.events import Benchmarked, Progress, Rowed
from dfly_core.records.loaded import Costs
from dfly_core.records.report import Report, Withheld, make_row

WARM_TOKENS = 12
PARTS = "the parts of a cycle"


def benchmark(
    job: Bench, pair: Pair, costs: Costs | None, cancelled: Cancelled
) -> Iterator[Progress | Rowed | Benchmarked]:
    """Measure every prompt; yields Progress, a Rowed per row, Benchmarked at the end.

    A row is published only if every trial's ids are those of the target alone. Rows that an
    interrupted run of the same settings left in the output are kept.
    """
    if pair.drafter is None:
        raise Usage("a benchmark needs a drafter, and there is none", "name one with --draft")
    if job.trials < 1 or job.max_tokens < 1:
        raise Usage(f"{job.trials} trials of {job.max_tokens} tokens", "give 1 or more of both")
    prompts = read_prompts(Path(job.prompts) if job.prompts else None)
    ids = _prompt_ids(pair, prompts)
    report = fresh_report(job, pair, costs, prompts)
    path = unnamed_report(report) if job.output is None else Path(job.output)
    kept = finished_rows(path, report)
    report = replace(report, results=tuple(kept[p.id] for p in prompts if p.id in kept))
    check_writable(path)
    _warm_up(pair, ids[prompts[0].id], costs, cancelled)
    drafted: list[Run] = []
    components = Components(pair, len(prompts) - len(kept), cancelled) if job.components else None
    for number, prompt in enumerate(prompts):
        if prompt.id in kept:
            continue
        runs: list[tuple[Run, Run]] = []
        watch = Watch()
        for trial in range(job.trials):
            done = number * job.trials + trial
            yield Progress("bench", prompt.id, done, len(prompts) * job.trials, "trials")
            runs.append(_both(pair, ids[prompt.id], job.max_tokens, costs, trial, cancelled))
            if cancelled() or any(run.cancelled for run in runs[-1]):
                yield _ended(path, report, len(prompts))
                return
        company = watch.seen()
        row = make_row(prompt.id, prompt.category, *_judged(pair, ids[prompt.id], runs), company)
        if row.parity:
            drafted += [run for _, run in runs]
        report = replace(report, results=(*report.results, asdict(row)))
        write_report(path, report)
        yield Rowed(asdict(row))
        if row.parity and components is not None:
            done = (number + 1) * job.trials
            yield Progress("bench", PARTS, done, len(prompts) * job.trials, "trials")
            answer = runs[0][0].ids
            components.time([*ids[prompt.id], *answer[: len(answer) // 2]])
    longest = max(prompts, key=lambda p: _answer_length(report, p.id))
    if job.check_baseline:
        yield Progress("bench", "the baseline against mlx-lm", 0, 1, "checks")
        found = check_baseline(pair, ids[longest.id], job.max_tokens, cancelled)
        report = replace(report, baseline_check=found)
    if components is not None and not cancelled():
        if not drafted:  # all rows were there already, or none stands
            yield Progress("bench", PARTS, 0, 1, "checks")
            components.time(ids[longest.id])
        report = replace(report, components=components.found(drafted))
    report = replace(report, finished=not cancelled())
    write_report(path, report)
    yield _ended(path, report, len(prompts))


def fresh_report(job: Bench, pair: Pair, costs: Costs | None, prompts: Sequence[Prompt]) -> Report:
    """A report without rows: what is measured, with what, on what."""
    info, verdict = pair.info, pair.verdict
    draft_folder = pair.draft_folder
    return Report(
        model=info.model,
        draft=info.draft,
        trials=job.trials,
        max_tokens=job.max_tokens,
        hardware=machine_facts(),
        software={"dfly_tui": __version__},
        models={
            "target_fingerprint": model_fingerprint(pair.target_folder),
            "draft_fingerprint": model_fingerprint(draft_folder) if draft_folder else None,
            "target_bits": info.target_bits,
            "draft_bits": info.draft_bits,
            "target_dtype": info.target_dtype,
            "target_bytes": info.target_bytes,
            "draft_bytes": info.draft_bytes,
            "block_size": info.block_size,
        },
        verify={
            "mode": job.verify,
            "taken": verdict.taken if verdict else "fast",
            "route": verdict.route if verdict else "native",
            "exact_width": verdict.exact_width if verdict else 0,
            "words": verdict.words if verdict else "nothing was checked",
            "routes": dict(verdict.routes) if verdict else {},
            "checked": list(verdict.checked) if verdict else [],
        },
        width_policy={
            "kind": "measured costs" if costs else "always the widest",
            "widest": pair.widest,
            "costs": asdict(costs) if costs else None,
        },
        prompts={
            "file": job.prompts or "own",
            "count": len(prompts),
            "digest": digest(repr(prompts).encode()),
        },
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def _prompt_ids(pair: Pair, prompts: Sequence[Prompt]) -> dict[str, list[int]]:
    """Every prompt's ids; a prompt that does not fit is told before anything runs."""
    found: dict[str, list[int]] = {}
    for prompt in prompts:
        try:
            found[prompt.id] = prompt_ids(pair.tokenizer, prompt.messages)
            check_request(Context(pair, draft=False), found[prompt.id], GenerateOptions())
        except DflyError as error:
            raise type(error)(f"prompt {prompt.id}: {error.what}", error.remedy) from error
    return found


def _warm_up(pair: Pair, ids: Sequence[int], costs: Costs | None, cancelled: Cancelled) -> None:
    for draft in (False, True):
        run_trial(pair, ids, WARM_TOKENS, draft, costs, cancelled)


def _both(
    pair: Pair,
    ids: Sequence[int],
    max_tokens: int,
    costs: Costs | None,
    trial: int,
    cancelled: Cancelled,
) -> tuple[Run, Run]:
    """(baseline, DFly), in turns: which goes first alternates, so that heat favours neither."""
    runs: dict[bool, Run] = {}
    for draft in (False, True) if trial % 2 == 0 else (True, False):
        runs[draft] = run_trial(pair, ids, max_tokens, draft, costs, cancelled)
    return runs[False], runs[True]


def _judged(
    pair: Pair, prompt: Sequence[int], runs: Sequence[tuple[Run, Run]]
) -> tuple[list[Any], list[Any], Withheld | None]:
    """All trials held against the first baseline, and the diagnosis of the first that differs."""
    reference = runs[0][0]
    plain = [compared(run, reference.ids) for run, _ in runs]
    fast = [compared(run, reference.ids) for _, run in runs]
    withheld = None
    for number, pair_of_runs in enumerate(zip(plain, fast, strict=True)):
        wrong = next((run for run in pair_of_runs if not run.trial.matches), None)
        if wrong is not None:
            withheld = diagnose(pair, prompt, reference, wrong, number)
            break
    return [run.trial for run in plain], [run.trial for run in fast], withheld


def _answer_length(report: Report, id: str) -> int:
    rows = [row for row in report.results if row["id"] == id]
    return int(rows[0]["baseline_trials"][0]["tokens"]) if rows else 0


def _ended(path: Path, report: Report, prompts: int) -> Benchmarked:
    published = sum(bool(row["parity"]) for row in report.results)
    rows = len(report.results)
    return Benchmarked(str(path) if rows else None, published, rows - published, prompts - rows)
