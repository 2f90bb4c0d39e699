"""Attention that is probed before the models are there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dfly_core import jobs
from dfly_core.exact import ahead, selftest
from dfly_core.exact.ahead import attention_ahead
from dfly_core.exact.attention import AttentionSeen, AttentionShape, probe_attention
from dfly_core.exact.probe import attention_shape
from dfly_core.exact.selftest import self_test
from dfly_core.exact.verdict import prepare
from dfly_core.model.pair import load_pair
from dfly_core.records.commands import Load
from dfly_core.records.errors import Missing
from dfly_core.records.events import CLOSING, Loaded, Progress
from dfly_core.records.wire import decode, encode
from tests.tiny import make_target

MOST = 3


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ahead, "cache_folder", lambda: tmp_path)
    return tmp_path


def test_the_embedded_pair_is_probed_as_its_load_would_once(empty_cache: Path) -> None:
    seen = attention_ahead(Load())
    assert seen is not None
    pair = load_pair(Load())
    assert seen == probe_attention(attention_shape(pair.target, pair.block_size))
    list(prepare(pair, "auto", empty_cache, seen))
    assert attention_ahead(Load()) is None  # what was found is kept


@pytest.mark.parametrize("load", [Load(model="x"), Load(draft="x"), Load(no_draft=True)])
def test_of_another_pair_nothing_is_probed_ahead(load: Load, empty_cache: Path) -> None:
    assert attention_ahead(load) is None


def test_what_cannot_be_read_is_left_to_the_load(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "EMBEDDED", empty_cache)
    assert attention_ahead(Load()) is None
    with pytest.raises(Missing):
        load_pair(Load(model=str(empty_cache)))


def test_a_cache_that_cannot_be_looked_into_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "cache_folder", lambda: tmp_path / ("x" * 300))
    assert attention_ahead(Load()) is not None


def test_only_the_very_attention_that_was_seen_is_not_probed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = make_target()
    probed: list[AttentionShape] = []

    def probe(shape: AttentionShape) -> AttentionSeen:
        probed.append(shape)
        return probe_attention(shape)

    monkeypatch.setattr(selftest, "probe_attention", probe)
    mine = attention_shape(target, MOST)
    seen = probe_attention(mine)
    list(self_test(target, MOST, ahead=seen))
    assert probed == []
    for other in (
        replace(mine, most=MOST + 1),
        replace(mine, limit=mine.limit - 1),
        replace(mine, scale=1.0),
    ):
        list(self_test(target, MOST, ahead=AttentionSeen(other, seen.findings)))
    assert probed == [mine] * 3


def test_a_pair_tested_again_is_probed_again(
    monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    given: list[AttentionSeen | None] = []

    def prepare(pair: Any, mode: str, ahead: AttentionSeen | None) -> Iterator[Progress]:
        given.append(ahead)
        yield Progress("self-test", "", 0, 1, "checks")

    monkeypatch.setattr(jobs, "prepare", prepare)
    seen = AttentionSeen(attention_shape(make_target(), MOST), ())
    program = jobs.Program(seen)
    for _ in range(2):
        list(program.run(Load(), lambda: False))
    assert given == [seen, None]


WATCHED = """
import sys
from dfly_core.exact import attention
real = attention.probe_attention
def probe(shape):
    print("probed", "mlx_lm" in sys.modules, file=sys.stderr)
    return real(shape)
attention.probe_attention = probe
from dfly_core.worker import main
main()
"""


def test_a_worker_probes_once_before_it_has_mlx_lm_and_never_again(tmp_path: Path) -> None:
    # The second start must know the machine by what is there before mlx-lm, too.
    assert [_probes_of_a_start(tmp_path) for _ in range(2)] == [["probed False"], []]


def _probes_of_a_start(folder: Path) -> list[str]:
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    log = folder / "log"
    with log.open("wb") as stderr:
        worker = subprocess.Popen(
            [sys.executable, "-c", WATCHED], env=os.environ | home,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(encode(1, Load()))
    worker.stdin.flush()
    events = (decode(line).body for line in worker.stdout)
    assert isinstance(next(e for e in events if isinstance(e, CLOSING)), Loaded)
    worker.kill()
    worker.communicate()
    return [line for line in log.read_text().splitlines() if line.startswith("probed")]
