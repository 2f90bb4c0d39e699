"""From what the self-test saw to what is done and said; kept by machine and model."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Literal

from dfly_core.engine.calibrate import measure_draft
from dfly_core.engine.width import best_width
from dfly_core.exact.attention import AttentionSeen
from dfly_core.exact.bits import KINDS
from dfly_core.exact.findings import Findings, Level
from dfly_core.exact.kept import findings_path, read_findings, write_findings
from dfly_core.exact.selftest import build_routes, self_test
from dfly_core.model.acceptance import TYPICAL_RATE
from dfly_core.model.kernels import BOUNDS
from dfly_core.model.machine import cache_folder, machine_fingerprint, model_fingerprint
from dfly_core.model.pair import Pair
from dfly_core.model.routes import Routes
from dfly_core.records.events import Progress
from dfly_core.records.loaded import Costs, Verdict, VerifyMode
from dfly_core.records.promise import same_bits

WORTH = 0.9  # auto takes exact when it keeps this share of the throughput


def prepare(
    pair: Pair,
    mode: VerifyMode,
    folder: Path | None = None,
    ahead: AttentionSeen | None = None,
) -> Generator[Progress, None, Verdict | None]:
    """Give the pair its routes and verdict; tests itself unless this was tested before.

    None for a target alone, which verifies nothing. `folder` is the cache's, by default the
    user's own. `ahead` is attention that was probed already.
    """
    if pair.drafter is None:
        return None
    machine, model = machine_fingerprint(), model_fingerprint(pair.target_folder)
    path = findings_path(folder or cache_folder(), machine, model, pair.block_size)
    findings = read_findings(path)
    if findings is None:
        findings = yield from self_test(
            pair.target, pair.block_size, lambda: measure_draft(pair), ahead
        )
        write_findings(path, findings)
    pair.verdict = judge(findings, mode, machine, model, len(pair.target.layers))
    pair.routes = routes_for(findings, pair.verdict)
    pair.distrust = lambda: path.unlink(missing_ok=True)
    return pair.verdict


def judge(findings: Findings, mode: VerifyMode, machine: str, model: str, layers: int) -> Verdict:
    """The verdict on findings; says no more than was checked."""
    exact_width = _exact_width(findings)
    one = findings.one_row_seconds
    cost_exact = (one, *(f.exact_seconds for f in findings.whole))
    cost_native = (one, *(f.native_seconds for f in findings.whole))
    draft = findings.draft_seconds
    taken: Literal["exact", "fast"] = "fast" if mode == "fast" else "exact"
    share = _share_kept(cost_exact[: exact_width + 1], cost_native, draft)
    if mode == "auto" and share < WORTH:
        taken = "fast"
    most = len(findings.whole)
    straight = exact_width > 0 and all(f.level == "native" for f in findings.whole[:exact_width])
    return Verdict(
        machine=machine,
        model=model,
        mode=mode,
        route="native" if taken == "fast" or straight else "detours" if exact_width else "none",
        routes=_routes_in_words(findings, exact_width),
        exact_width=exact_width,
        cost_exact=cost_exact[: exact_width + 1],
        cost_native=cost_native,
        cost_draft=draft,
        checked=_checked(findings, layers),
        words=_words(mode, taken, exact_width, most, straight, share, findings),
        taken=taken,
        width=most if taken == "fast" else exact_width,
    )


def routes_for(findings: Findings, verdict: Verdict) -> Routes | None:
    """The routes a verdict stands for; None where blocks run as mlx-lm runs them.

    Row counts that were not found exact have none, and would go row by row.
    """
    if verdict.taken == "fast":
        return None
    by_level: dict[Level, Routes] = {
        level: build_routes(findings.linear, findings.attention, level)
        for level in {f.level for f in findings.whole}
    }
    used = findings.whole[: verdict.exact_width]
    return Routes(other={f.rows: by_level[f.level] for f in used})


def _exact_width(findings: Findings) -> int:
    """Proposals up to which every block was exact; 0 when the same row came out differently."""
    width = 0
    for finding in findings.whole if findings.steady else ():
        if not finding.exact:
            break
        width = finding.rows - 1
    return width


def _share_kept(
    exact: tuple[float, ...], native: tuple[float, ...], draft: tuple[float, ...]
) -> float:
    """Throughput of exact over native at their best widths, if 3 of 4 proposals are right."""
    products = [TYPICAL_RATE**k for k in range(1, len(native))]
    plain = native[0]

    def rate(verify: tuple[float, ...]) -> float:
        costs = Costs(plain=plain, verify=verify, draft=draft or (0.0,) * len(verify))
        return max(1 / plain, best_width(products, costs)[1])

    return min(1.0, rate(exact) / rate(native)) if plain > 0 else 1.0


def _words(
    mode: VerifyMode,
    taken: str,
    width: int,
    most: int,
    straight: bool,
    share: float,
    findings: Findings,
) -> str:
    if not findings.steady:
        found = "the same token run twice gave different bits, so nothing can be exact here"
    elif width == 0:
        found = (
            "no way to check several proposed tokens in one pass gives the same bits as one at a "
            "time here"
        )
    elif straight:
        found = same_bits(width)
    else:
        kept = f" by detours, which keep {share:.0%} of the estimated throughput,"
        found = same_bits(width, kept)
    more = f"; more than {width} at once would not, and is not done" if 0 < width < most else ""
    if taken == "exact":
        end = ", so the text is the target's own" if width else "; so each token is decoded alone"
        return f"exact{' (auto)' if mode == 'auto' else ''}: {found}{end}{more}"
    why = (
        f"auto chose it, since exact would keep only {share:.0%} of the estimated throughput"
        if mode == "auto"
        else "as asked"
    )
    return (
        f"fast ({why}): proposed tokens are checked in one pass as it comes, and where two tokens "
        f"are nearly tied the text may differ from the target's own. For exact: {found}{more}"
    )


def _routes_in_words(findings: Findings, width: int) -> tuple[tuple[str, str], ...]:
    rows = range(2, width + 2)
    levels = {f.rows: f.level for f in findings.whole}
    by_shape: dict[str, dict[str, list[int]]] = {}
    for finding in findings.linear:
        if finding.rows in rows:
            route: str = finding.route(levels[finding.rows])
            by_shape.setdefault(f"linear {finding.shape}", {}).setdefault(route, []).append(
                finding.rows
            )
    for found in findings.attention:
        name = f"attention, {_segment_in_words(found.segment)}"
        for count in rows:
            if levels[count] not in ("native", "chosen"):
                route = "rows"
            elif count in found.exact_rows:
                route = "native"
            else:
                route = "split" if found.exact_rows and min(found.exact_rows) < count else "rows"
            by_shape.setdefault(name, {}).setdefault(route, []).append(count)
    return tuple(
        (name, ", ".join(f"{route} {_ranges(found_)}" for route, found_ in routes.items()))
        for name, routes in by_shape.items()
    )


def _segment_in_words(segment: int) -> str:
    low = BOUNDS[segment - 1] if segment else 1
    return (
        f"{low} keys and more" if segment == len(BOUNDS) else f"{low} to {BOUNDS[segment] - 1} keys"
    )


def _ranges(counts: Iterable[int]) -> str:
    """[2, 3, 4, 8] -> "2-4 8"."""
    out: list[list[int]] = []
    for count in sorted(counts):
        if out and count == out[-1][1] + 1:
            out[-1][1] = count
        else:
            out.append([count, count])
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in out)


def _checked(findings: Findings, layers: int) -> tuple[str, ...]:
    shapes = len({f.shape for f in findings.linear})
    rows = _ranges(f.rows for f in findings.whole)
    keys = sorted(k for f in findings.attention for k in f.keys)
    after = ", ".join(str(k) for k in findings.keys)
    return (
        f"{shapes} linear shapes at {rows} rows with {len(KINDS)} kinds of activations",
        f"attention at {rows} rows from {len(keys)} key counts between {keys[0]} and {keys[-1]}"
        if keys
        else "attention: nothing fits the context, so row by row",
        f"{', '.join(name for name, _ in findings.operations)} at {rows} rows",
        f"the whole model at {rows} rows after {after} tokens: logits, and keys and values of "
        f"all {layers} layers",
    )
