"""What is done and said after a self-test, and how it is kept."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from dfly_core.exact import kept
from dfly_core.exact import verdict as module
from dfly_core.exact.findings import AttentionFinding, Findings, LinearFinding, WholeFinding
from dfly_core.exact.verdict import judge, prepare, routes_for
from dfly_core.model.machine import machine_facts, machine_fingerprint, model_fingerprint
from dfly_core.model.pair import Pair
from dfly_core.records.loaded import Verdict, VerifyMode
from dfly_core.records.wire import from_plain
from tests.tiny import BLOCK, make_pair


def findings(exact_cost: float = 1.0, exact_rows: int = 4) -> Findings:
    """Rows 2..4; native inexact from 3 rows on, exact by routes up to `exact_rows`."""
    return Findings(
        linear=tuple(
            LinearFinding("8x8 float32", rows, ("native",) if rows < 3 else ("tile",), (1.0,))
            for rows in (2, 3, 4)
        ),
        attention=(AttentionFinding(0, (2, 3), (1, 40)),),
        operations=(("norm", (2, 3, 4)),),
        whole=tuple(
            WholeFinding(
                rows,
                rows < 3,
                rows <= exact_rows,
                "native" if rows < 3 else "chosen",
                "",
                1.0,
                exact_cost,
            )
            for rows in (2, 3, 4)
        ),
        keys=(8,),
        one_row_seconds=1.0,
        draft_seconds=(0.2,) * 8,
        steady=True,
        seconds=0.1,
    )


def judged(found: Findings, mode: VerifyMode = "exact") -> Verdict:
    return judge(found, mode, "machine", "model", 2)


def test_exact_takes_the_detours_it_needs_and_names_them() -> None:
    verdict = judged(findings())
    assert (verdict.route, verdict.exact_width, verdict.width) == ("detours", 3, 3)
    assert dict(verdict.routes) == {
        "linear 8x8 float32": "native 2, tile 3-4",
        "attention, 1 to 320 keys": "native 2-3, split 4",
    }


def test_a_width_beyond_the_exact_ones_is_never_used() -> None:
    verdict = judged(findings(exact_rows=3))
    assert (verdict.exact_width, verdict.width) == (2, 2)
    assert "more than 2 at once would not" in verdict.words


def test_a_gap_in_the_exact_widths_ends_them() -> None:
    found = findings()
    gap = replace(found, whole=(replace(found.whole[0], exact=False), *found.whole[1:]))
    verdict = judged(gap)
    assert (verdict.exact_width, verdict.width, verdict.route) == (0, 0, "none")
    assert "so each token is decoded alone" in verdict.words
    assert verdict.routes == ()


def test_fast_runs_blocks_as_they_come_and_promises_nothing() -> None:
    found = findings(exact_rows=2)
    verdict = judged(found, "fast")
    assert (verdict.taken, verdict.width) == ("fast", 3)
    assert "may differ" in verdict.words
    assert routes_for(found, verdict) is None


@pytest.mark.parametrize(
    ("cost", "taken", "said"), [(1.02, "exact", "auto"), (2.5, "fast", "auto chose it")]
)
def test_auto_keeps_exact_unless_it_costs_a_tenth(cost: float, taken: str, said: str) -> None:
    verdict = judged(findings(exact_cost=cost), "auto")
    assert verdict.taken == taken
    assert said in verdict.words
    assert (verdict.width == 3) is True


def test_findings_survive_a_file() -> None:
    found = findings()
    assert from_plain(Findings, json.loads(json.dumps(asdict(found))), "findings") == found


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    made = make_pair()
    made.target_folder = tmp_path / "target"
    made.target_folder.mkdir()
    (made.target_folder / "config.json").write_text("{}")
    return made


def run(pair: Pair, folder: Path, mode: VerifyMode = "exact") -> tuple[int, Verdict | None]:
    """(checks made, verdict)."""
    steps, made = prepare(pair, mode, folder), 0
    while True:
        try:
            next(steps)
            made += 1
        except StopIteration as end:
            return made, end.value


def test_a_second_load_takes_the_kept_findings(pair: Pair, tmp_path: Path) -> None:
    made, first = run(pair, tmp_path)
    assert made > 0
    assert run(pair, tmp_path) == (0, first)
    assert first is not None
    assert first.width == pair.widest == BLOCK - 1
    assert first.cost_draft is not None


def test_another_machine_model_or_block_size_is_tested_anew(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(pair, tmp_path)
    monkeypatch.setattr(module, "machine_fingerprint", lambda: "another machine")
    assert run(pair, tmp_path)[0] > 0
    (pair.target_folder / "config.json").write_text('{"a": 1}')
    assert run(pair, tmp_path)[0] > 0
    monkeypatch.setattr(kept, "VERSION", kept.VERSION + 1)
    assert run(pair, tmp_path)[0] > 0


def test_a_corrupt_cache_is_tested_again_and_mended(pair: Pair, tmp_path: Path) -> None:
    run(pair, tmp_path)
    (kept,) = (tmp_path / "selftest").iterdir()
    for content in (b"", b"{", b"[]", b'{"linear": 3}', b"\xff\xfe"):
        kept.write_bytes(content)
        assert run(pair, tmp_path)[0] > 0, content
        assert run(pair, tmp_path)[0] == 0, content


def test_a_cache_that_cannot_be_written_is_no_fault(pair: Pair, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder is needed")
    made, verdict = run(pair, blocked)
    assert made > 0
    assert verdict is not None


def test_a_distrusted_verdict_is_not_taken_again(pair: Pair, tmp_path: Path) -> None:
    run(pair, tmp_path)
    pair.distrust()
    assert run(pair, tmp_path)[0] > 0


def test_a_target_alone_needs_no_verdict(pair: Pair, tmp_path: Path) -> None:
    pair.drafter = None
    assert run(pair, tmp_path) == (0, None)


def test_fingerprints_follow_files_and_threads(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    before = model_fingerprint(pair.target_folder)
    (pair.target_folder / "model.safetensors").write_bytes(bytes(100_000))
    after = model_fingerprint(pair.target_folder)
    (pair.target_folder / "model.safetensors").write_bytes(bytes(99_999) + b"x")
    assert len({before, after, model_fingerprint(pair.target_folder)}) == 3
    here = machine_fingerprint()
    assert here == machine_fingerprint()
    for name in ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "7")
            assert here != machine_fingerprint(), name


def test_machine_facts_hold_what_reports_need() -> None:
    facts = machine_facts()
    for name in ("chip", "memory_gb", "os", "python", "mlx", "mlx_lm"):
        assert facts[name]
