"""`doctor`: one page on what this machine is, what was checked here, and what to expect of it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import mlx.core as mx

from dfly_core import __version__
from dfly_core.engine.calibrate import measure_costs
from dfly_core.engine.width import best_width
from dfly_core.exact.probe import linear_modules
from dfly_core.exact.selftest import SingleRows
from dfly_core.model.acceptance import TYPICAL_RATE
from dfly_core.model.config import DEFAULT_DRAFT, DEFAULT_TARGET, read_config
from dfly_core.model.kernels import LinearRoute
from dfly_core.model.locate import EMBEDDED, cached_folder, folder_here
from dfly_core.model.machine import backend, machine_facts, model_fingerprint, usable_memory
from dfly_core.model.pair import Pair
from dfly_core.model.routes import Routes, can_tile
from dfly_core.preflight import Problem, preflight
from dfly_core.records.commands import Doctor, Load
from dfly_core.records.errors import DflyError
from dfly_core.records.events import Examined, Progress
from dfly_core.records.loaded import Costs, Verdict
from dfly_core.records.memory import (
    OFFICIAL_DRAFT_BYTES,
    Need,
    kv_bytes,
    need_of,
    official_need,
)
from dfly_core.records.sizes import size_words

Loader = Callable[[Load], Generator[Progress, None, Pair]]

BANDWIDTH_BYTES, BANDWIDTH_ROUNDS = 1 << 28, 6
TIMED_AFTER, TIMES = 64, 3  # context rows and repetitions of the routes' costs
PUBLISHED_MEAN = 5.41  # mean accepted length of the official 8B pair (arXiv:2607.25852)


def examine(job: Doctor, load: Loader) -> Iterator[Progress | Examined]:
    """Look, load, measure; yields Progress and ends with the page.

    A fault on the way is a problem on the page, not an error: the page is what one needs
    when something does not work.
    """
    if job.draft is not None and job.model is None:
        job = replace(job, model=DEFAULT_TARGET)
    request = Load(job.model, job.draft, no_draft=job.model is not None and job.draft is None)
    problems = preflight() + machine_problems()
    page: dict[str, Any] = {
        "version": __version__,
        "machine": machine_facts(),
        "models": find_models(job),
        "memory": memory_fit(job),
    }
    problems += [*model_problems(page["models"]), *memory_problems(page["memory"])]
    if not any(problem.fatal for problem in problems):
        try:
            pair = yield from load(request)
            yield Progress("doctor", "bandwidth and routes", 0, 1, "checks")
            page["memory"]["pair"] = held(pair, page["memory"])
            page |= measured(pair, job.context)
            problems += verdict_problems(pair)
        except DflyError as error:
            problems.append(Problem(error.what, error.remedy, True))
    healthy = not any(problem.fatal for problem in problems)
    page["problems"] = [asdict(problem) for problem in problems]
    page["healthy"] = healthy
    yield Examined(page, healthy)


def machine_problems() -> list[Problem]:
    """What is off with the machine as MLX sees it."""
    facts, found = machine_facts(), []
    if str(facts["os"]).startswith("macOS") and facts["backend"] != "metal":
        found.append(Problem("MLX finds no GPU", "update macOS, then `pip install -U mlx`", True))
    if facts["power_mode"] == "low power":
        found.append(
            Problem(
                "low power mode is on: everything is slower, and benchmarks say so",
                "switch it off in the battery settings",
                False,
            )
        )
    return found


def find_models(job: Doctor) -> list[dict[str, Any]]:
    """The models asked for, and the official ones, as far as they are on this machine."""
    asked = [("target", job.model), ("drafter", job.draft)]
    rows = [_model(role, name, True) for role, name in asked if name is not None]
    if job.model is None and job.draft is None:
        rows = [
            _found(role, "embedded", EMBEDDED / folder, True)
            for role, folder in (("target", "target"), ("drafter", "drafter"))
        ]
    official = (("target", DEFAULT_TARGET), ("drafter", DEFAULT_DRAFT))
    known = {row["name"] for row in rows}
    return rows + [_model(role, name, False) for role, name in official if name not in known]


def _model(role: str, name: str, needed: bool) -> dict[str, Any]:
    try:
        folder = folder_here(name) or cached_folder(name)
    except DflyError:  # told among the problems
        folder = None
    return _found(role, name, folder, needed)


def _found(role: str, name: str, folder: Path | None, needed: bool) -> dict[str, Any]:
    there = folder is not None and (folder / "config.json").is_file()
    return {
        "role": role,
        "name": name,
        "needed": needed,
        "found": there,
        "folder": str(folder) if there else None,
        "bytes": weight_bytes(folder) if folder and there else None,
        "fingerprint": model_fingerprint(folder) if folder and there else None,
    }


def weight_bytes(folder: Path) -> int:
    """Bytes of a folder's weights on disk."""
    kinds = ("*.safetensors", "*.bin", "*.pt")
    return sum(path.stat().st_size for kind in kinds for path in folder.glob(kind))


def model_problems(models: list[dict[str, Any]]) -> list[Problem]:
    """Models that are needed and not here."""
    return [_absent(row) for row in models if row["needed"] and not row["found"]]


def _absent(row: dict[str, Any]) -> Problem:
    name = row["name"]
    try:
        if folder_here(name) is not None:
            what = f"the {row['role']} {name} holds no config.json"
            return Problem(what, "name a model folder", True)
    except DflyError as fault:
        return Problem(f"the {row['role']}: {fault.what}", fault.remedy, True)
    return Problem(
        f"the {row['role']} {name} is not on this machine",
        "it is downloaded by `dfly-mlx generate` or the app's first start; or name its folder",
        True,
    )


def memory_fit(job: Doctor) -> dict[str, Any]:
    """Whether the pair, with K/V at the wanted context, fits; from sizes on disk and configs."""
    usable = usable_memory()
    models = {row["role"]: row for row in find_models(job) if row["needed"] and row["found"]}
    target = models.get("target")
    out: dict[str, Any] = {"usable_bytes": usable, "context": job.context, "pair": None}
    if target is not None:
        config = read_config(Path(target["folder"]))
        context = min(job.context, int(config.get("max_position_embeddings") or job.context))
        widened = 2 if backend() == "cpu" else 1  # 16-bit values are computed in 32 bit there
        weights = sum(row["bytes"] for row in models.values()) * widened
        out["pair"] = _fit(Need(weights, kv_bytes(config) * widened), context, usable)
    out["official"] = {
        f"drafter at {bits}": _fit(official_need(bits), job.context, usable)
        for bits in OFFICIAL_DRAFT_BYTES
    }
    return out


def held(pair: Pair, memory: dict[str, Any]) -> dict[str, Any]:
    """What the loaded pair needs with a full context, and what its models take now."""
    context = min(memory["context"], pair.target.context_limit)
    fit = _fit(need_of(pair.info), context, memory["usable_bytes"])
    return fit | {"now_bytes": mx.get_active_memory()}


def _fit(need: Need, context: int, usable: int | None) -> dict[str, Any]:
    needed = need.at(context)
    return {
        "words": need.words,
        "weights_bytes": need.weights,
        "kv_bytes": need.kv * context,
        "context": context,
        "needed_bytes": needed,
        "fits": None if usable is None else needed <= usable,
    }


def memory_problems(memory: dict[str, Any]) -> list[Problem]:
    """Too little memory for the pair asked for."""
    pair = memory["pair"]
    if pair is None or pair["fits"] is not False:
        return []
    return [
        Problem(
            f"the pair needs {pair['words']}: too much at {pair['context']:,} tokens, since "
            f"{size_words(memory['usable_bytes'])} can be used here",
            "take a smaller or more quantised model, a drafter converted with --quantize, or a "
            "shorter context",
            True,
        )
    ]


def verdict_problems(pair: Pair) -> list[Problem]:
    """What the self-test could not make exact."""
    verdict = pair.verdict
    if verdict is None or verdict.exact_width == pair.block_size - 1:
        return []
    return [Problem(verdict.words, "please report this page; `--verify fast` drafts anyway", False)]


def measured(pair: Pair, context: int) -> dict[str, Any]:
    """What the loaded pair gives: verdict, costs by route, bandwidth, and what follows."""
    bandwidth = measure_bandwidth()
    read = pass_bytes(pair)
    verdict, costs = pair.verdict, measure_costs(pair)
    if verdict and costs:
        verdict = verdict.with_costs(costs)
    return {
        "pair": asdict(pair.info),
        "verdict": asdict(verdict) if verdict else None,
        "route_seconds": route_costs(pair) if verdict else None,
        "bandwidth_bytes_per_second": bandwidth,
        "pass_bytes": read,
        "plain_ceiling_tps": bandwidth / read,
        "predicted": predict(verdict) if verdict else None,
    }


def measure_bandwidth() -> float:
    """Bytes a second of reading memory once through: the sum of a large array, at its best."""
    count = BANDWIDTH_BYTES // 4
    array = mx.ones((count,), dtype=mx.float32)
    mx.eval(array)
    best = float("inf")
    for _ in range(BANDWIDTH_ROUNDS):
        start = time.perf_counter()
        mx.eval(mx.sum(array))
        best = min(best, time.perf_counter() - start)
    return 4 * count / best


def pass_bytes(pair: Pair) -> int:
    """Bytes of weights a one-token pass reads: all but an embedding of its own."""
    modules = [m for found in linear_modules(pair.target).values() for m in found]
    return sum(
        array.nbytes for module in modules for array in dict(module).values()
        if isinstance(array, mx.array)
    )  # fmt: skip


def route_costs(pair: Pair) -> dict[str, list[float]]:
    """Seconds of a block by width 0..K-1, each linear layer by one route throughout.

    "exact" are the routes in force; "native" is what fast runs; with "tile" and "rows"
    attention goes row by row, and so does a layer that can't be cut into tiles.
    """
    most = pair.block_size
    whole = SingleRows(pair.target, TIMED_AFTER, most)
    shapes = linear_modules(pair.target)
    plans: dict[str, Routes | None] = {"native": None, "exact": pair.routes}
    forced: tuple[LinearRoute, ...] = ("tile", "rows")
    for name in forced:
        able = [s for s, modules in shapes.items() if name == "rows" or can_tile(modules[0])]
        linear = {(shape, count): name for shape in able for count in range(2, most + 1)}
        plans[name] = Routes(linear=linear)
    out: dict[str, list[float]] = {}
    for plan, routes in plans.items():
        out[plan] = [whole.seconds]
        for count in range(2, most + 1):
            times = [whole.block(count, routes)[1] for _ in range(TIMES)]
            out[plan].append(statistics.median(times))
    return out


def predict(verdict: Verdict) -> list[dict[str, Any]]:
    """Best width and speed-up over plain decoding, under named assumptions."""
    verify = verdict.cost_native if verdict.taken == "fast" else verdict.cost_exact
    if not verify or not verdict.cost_draft:
        return []
    costs = Costs(plain=verify[0], verify=verify, draft=verdict.cost_draft)
    most = len(verify) - 1
    assumed = (
        (f"{TYPICAL_RATE:.0%} of proposals right at every position", TYPICAL_RATE),
        (f"a mean accepted length of {PUBLISHED_MEAN} at block size 8, as published for "
         "Qwen3-8B", rate_of_mean(PUBLISHED_MEAN, 7)),
    )  # fmt: skip
    out = []
    for words, rate in assumed:
        width, tps = best_width([rate**k for k in range(1, most + 1)], costs)
        out.append(
            {
                "assumption": words,
                "width": width if tps > 1 / costs.plain else 0,
                "speedup": max(1.0, tps * costs.plain),
            }
        )
    return out


def rate_of_mean(mean: float, positions: int) -> float:
    """The chance per proposal that gives a mean accepted length, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if 1 + sum(middle**k for k in range(1, positions + 1)) < mean:
            low = middle
        else:
            high = middle
    return low
