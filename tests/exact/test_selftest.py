"""The self-test finds kernels that are not row-exact and the way around each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest

from dfly_core.exact.attention import stretches
from dfly_core.exact.findings import Findings
from dfly_core.exact.selftest import build_routes, self_test
from dfly_core.exact.verdict import judge, routes_for
from dfly_core.model.kernels import BOUNDS, segment
from dfly_core.model.machine import blas
from dfly_core.model.routes import Routes
from dfly_core.model.target import Target
from dfly_core.records.events import Progress
from dfly_core.records.loaded import Verdict, VerifyMode
from tests.exact.hostile import (
    quantized_target,
    spoil_attention,
    spoil_linear,
    spoil_quantized,
)
from tests.tiny import LAYERS, make_target

MOST = 6  # rows
TIMED = (0.0,) * MOST
LONG = {"max_position_embeddings": 2048}


def findings_of(target: Target) -> Findings:
    steps = self_test(target, MOST, lambda: TIMED)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Findings = end.value
            return found


def verdict_of(found: Findings, mode: VerifyMode = "exact") -> Verdict:
    return judge(found, mode, "machine", "model", LAYERS)


def routes_at(verdict: Verdict, name: str) -> dict[str, str]:
    return {work: route for work, route in verdict.routes if work.startswith(name)}


@pytest.mark.parametrize("sizes", [{}, LONG])
def test_an_exact_kernel_is_found_exact_and_takes_no_detour(sizes: dict[str, Any]) -> None:
    verdict = verdict_of(findings_of(make_target(**sizes)))
    assert verdict.exact_width == MOST - 1
    if "openblas" not in blas():
        assert verdict.route == "native"
        assert "detours" not in verdict.words
        assert verdict.cost_exact == verdict.cost_native
        assert all(route == f"native 2-{MOST}" for _, route in verdict.routes)


def test_where_native_is_exact_blocks_run_as_mlx_lm_runs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = findings_of(make_target())
    verdict = verdict_of(found)
    if verdict.route != "native":
        pytest.skip("this BLAS is not row-exact, so there are detours")
    assert found.draft_seconds == ()
    routes, target = routes_for(found, verdict), make_target()

    def detour(*_: Any) -> Any:
        raise AssertionError("took a detour")

    monkeypatch.setattr(Routes, "layer", detour)
    for count in range(2, MOST + 1):
        target.forward(mx.array([[1] * count]), target.make_cache(), routes)


def test_progress_is_told_and_ends_at_its_total() -> None:
    steps = list(self_test(make_target(), MOST))
    assert all(isinstance(step, Progress) and step.stage == "self-test" for step in steps)
    assert [s.done for s in steps] == list(range(1, steps[-1].total + 1))


ROW_FAULTS: dict[str, Callable[[int, int], bool]] = {
    "at every row count": lambda rows, _: True,
    "from 4 rows on": lambda rows, _: rows >= 4,
    "at 3 rows only": lambda rows, _: rows == 3,
    "at even row counts": lambda rows, _: rows % 2 == 0,
}


@pytest.mark.parametrize("fault", list(ROW_FAULTS))
def test_a_linear_kernel_that_is_off_is_found_and_routed_around(fault: str) -> None:
    spoils = ROW_FAULTS[fault]
    target = spoil_linear(make_target(), spoils)
    found = findings_of(target)
    spoiled = [f for f in found.linear if spoils(f.rows, 0) and f.shape != "32x96 float32"]
    assert spoiled
    assert all("native" not in f.exact for f in spoiled)
    assert all(f.cheapest in ("chunk", "tile", "rows") for f in spoiled)
    for whole in found.whole:
        assert whole.exact
        assert whole.level in ("native", "chosen")
        assert not (spoils(whole.rows, 0) and whole.native)
    assert found.draft_seconds == TIMED  # auto has a choice to make
    verdict = verdict_of(found)
    assert verdict.exact_width == MOST - 1
    assert verdict.route == "detours"
    assert "by detours" in verdict.words


@pytest.mark.parametrize("fault", ["none", *ROW_FAULTS])
def test_a_quantised_target_is_tested_and_routed_alike(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = quantized_target()
    spoils = ROW_FAULTS.get(fault, lambda rows, _: False)
    spoil_quantized(monkeypatch, spoils)
    found = findings_of(target)
    assert {f.shape.split()[1] for f in found.linear} == {"q4/32"}
    for finding in found.linear:
        assert ("native" in finding.exact) is not spoils(finding.rows, 0)
        assert finding.exact
    assert all(whole.exact for whole in found.whole)
    verdict = verdict_of(found)
    assert verdict.exact_width == MOST - 1
    if fault != "none":
        assert verdict.route == "detours"


def test_one_bad_layer_shape_sends_only_that_shape_around() -> None:
    target = spoil_linear(make_target(), lambda rows, _: rows > 1, ("down_proj",))
    found = findings_of(target)
    bad = {f.shape for f in found.linear if "native" not in f.exact and f.rows <= 3}
    assert "48x32 float32" in bad
    assert found.whole[0].where == "keys of layer 1"  # down_proj of layer 0 reaches them first


ATTENTION_FAULTS: dict[str, Callable[[int, int], bool]] = {
    "everywhere": lambda rows, keys: True,
    "from 4 rows on": lambda rows, keys: rows >= 4,
    "from 1024 keys on": lambda rows, keys: keys >= 1024,
    "under 1024 keys": lambda rows, keys: keys < 1024,
    "5 rows, 300 to 400 keys": lambda rows, keys: rows == 5 and 300 <= keys <= 400,
}


@pytest.mark.parametrize("fault", list(ATTENTION_FAULTS))
def test_attention_that_is_off_is_found_and_routed_around(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoils = ATTENTION_FAULTS[fault]
    target = make_target(**LONG)
    spoil_attention(monkeypatch, spoils)
    found = findings_of(target)
    for finding in found.attention:
        for rows in finding.exact_rows:
            assert not any(spoils(rows, key + rows - 1) for key in finding.keys)
    assert any(len(f.exact_rows) < MOST - 1 for f in found.attention)
    assert all(whole.exact and whole.level in ("native", "chosen") for whole in found.whole)
    routes = routes_for(found, verdict_of(found))
    assert routes is not None
    for before in (3, 350, 1021, 1500):
        for a, b in routes.runs(before, MOST - 1):
            assert b - a == 1 or not spoils(b - a, before + b)


def test_attention_off_where_no_probe_looked_is_caught_by_the_whole_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = make_target(**LONG)
    spoil_attention(monkeypatch, lambda rows, keys: keys in range(254, 262) and rows == 2)
    found = findings_of(target)
    seen = {key for f in found.attention for key in f.keys}
    assert not seen & set(range(251, 259))
    whole = {f.rows: f for f in found.whole}
    assert whole[2].level == "attention by row"
    assert all(finding.exact for finding in whole.values())
    routes = routes_for(found, verdict_of(found))
    assert routes is not None
    assert routes.at(2).runs(300, 2) == [(0, 1), (1, 2)]


def test_where_no_route_is_exact_nothing_is_claimed_and_width_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = make_target()
    for layer in target.layers:
        real = layer.self_attn.rope

        def noisy(x: Any, offset: int, real: Any = real) -> Any:
            return real(x, offset=offset) * (1.0 if x.shape[2] < 3 else 1.0 + 1e-5)

        layer.self_attn.rope = noisy
    found = findings_of(target)
    assert dict(found.operations)["rope"] == (2,)
    verdict = verdict_of(found)
    assert verdict.exact_width == 1
    assert verdict.width == 1
    assert len(verdict.cost_exact) == 2
    assert "more than 1 at once would not" in verdict.words
    assert all(" 2" in f" {route}" and "3" not in route for _, route in verdict.routes)


def test_a_device_that_does_not_repeat_itself_gets_no_promise() -> None:
    target, calls = make_target(), 0
    real = target.layers[0].mlp

    def unsteady(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return real(x) * (1.0 + 1e-5 * calls)

    for name in ("gate_proj", "up_proj", "down_proj"):
        setattr(unsteady, name, getattr(real, name))
    target.layers[0].mlp = unsteady
    found = findings_of(target)
    assert not found.steady
    verdict = verdict_of(found)
    assert (verdict.exact_width, verdict.width, verdict.route) == (0, 0, "none")
    assert "nothing can be exact here" in verdict.words
    assert "each token is decoded alone" in verdict.words


def test_a_verdict_names_all_that_was_checked_and_no_more() -> None:
    found = findings_of(make_target())
    text = " | ".join(verdict_of(found).checked)
    assert "6 linear shapes at 2-6 rows" in text
    assert f"all {LAYERS} layers" in text
    assert "after 8 tokens" in text  # the context of 160 has no room for the longer checks
    keys = [k for f in found.attention for k in f.keys]
    assert max(keys) <= 160
    assert f"{len(keys)} key counts between 1 and {max(keys)}" in text


@pytest.mark.parametrize("limit", [64, 300, 2048, 41_000])
def test_attention_is_probed_at_every_remainder_of_key_counts(limit: int) -> None:
    """A kernel that takes keys in fours or sixteens is off at some key counts only."""
    remainders: dict[int, set[int]] = {}
    for where, befores in stretches(limit, MOST):
        assert all(segment(before + row) == where for before in befores for row in (1, MOST))
        # So few keys that nothing is left over say nothing.
        remainders.setdefault(where, set()).update(b % 16 for b in befores if b > MOST)
    for where, found in remainders.items():
        low = BOUNDS[where - 1] if where else 1
        high = min(BOUNDS[where] if where < len(BOUNDS) else limit, limit)
        assert high - low < 16 + MOST or found == set(range(16)), where


def test_attention_beyond_the_probed_keys_is_left_to_single_rows() -> None:
    found = findings_of(make_target())
    routes = build_routes(found.linear, found.attention)
    assert routes.runs(1500, 3) == [(0, 1), (1, 2), (2, 3)]
