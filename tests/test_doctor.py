"""The doctor's page: what it holds, when it says that chat would work, and its advice."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dfly_core import doctor as module
from dfly_core.cli.main import main
from dfly_core.doctor import examine, pass_bytes, predict, rate_of_mean, route_costs
from dfly_core.exact.verdict import judge
from dfly_core.model.locate import EMBEDDED
from dfly_core.model.machine import machine_facts
from dfly_core.model.pair import Pair
from dfly_core.records.commands import Doctor, Load
from dfly_core.records.errors import Refused
from dfly_core.records.events import Examined, Progress
from dfly_core.records.loaded import PairInfo
from dfly_core.records.memory import kv_bytes, need_of, official_need
from dfly_core.records.page import page_lines
from dfly_core.records.wire import from_plain
from dfly_tui.state.checking import first_run_words
from tests.exact.test_verdict import findings
from tests.tiny import BLOCK, make_pair


def judged(pair: Pair) -> Pair:
    pair.verdict = judge(findings(), "exact", "m", "t", 2)
    return pair


def loading(pair: Pair | None, asked: list[Load] | None = None) -> Any:
    """A loader that hands out `pair`, or fails as a bad checkpoint does."""

    def load(request: Load) -> Generator[Progress, None, Pair]:
        if asked is not None:
            asked.append(request)
        yield Progress("load", "x", 0, 1, "models")
        if pair is None:
            raise Refused("the drafter is off", "convert it again")
        return pair

    return load


def page_of(job: Doctor, load: Any) -> Examined:
    last = list(examine(job, load))[-1]
    assert isinstance(last, Examined)
    assert last.page["healthy"] is last.healthy
    assert page_lines(last.page)
    return last


EMBEDDED_JOB = Doctor(context=1000)
FOLDERS = Doctor(str(EMBEDDED / "target"), str(EMBEDDED / "drafter"), 1000)


def test_the_page_holds_all_that_a_bug_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--context", "1000"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["healthy"] is True
    assert page["machine"]["mlx"]
    assert {m["name"]: m["found"] for m in page["models"]}["embedded"] is True
    assert page["memory"]["pair"]["fits"] is True
    assert page["memory"]["pair"]["context"] == 1000
    # What the loaded pair needs is told as the app's panel tells it, and what it takes now.
    pair = from_plain(PairInfo, page["pair"], "pair")
    assert page["memory"]["pair"]["needed_bytes"] == need_of(pair).at(1000)
    assert pair.target_bytes < page["memory"]["pair"]["now_bytes"]
    assert page["verdict"]["exact_width"] == 7
    assert page["verdict"]["words"]
    assert page["route_seconds"].keys() == {"native", "exact", "tile", "rows"}
    assert all(len(seconds) == 8 for seconds in page["route_seconds"].values())
    assert page["bandwidth_bytes_per_second"] > 1e8
    ceiling = page["bandwidth_bytes_per_second"] / page["pass_bytes"]
    assert page["plain_ceiling_tps"] == pytest.approx(ceiling)
    assert [p["assumption"] for p in page["predicted"]]
    text = "\n".join(page_lines(page))
    for said in (
        "all well",
        "Self-test",
        "exact width 7",
        "GB/s",
        "No problems",
        "fits",
        "MB with 1,000 tokens of context",
        "loaded, the models take",
        "is for the program itself",
        "bit for bit the same numbers as one at",
    ):
        assert said in text
    assert len(text.splitlines()) < 70
    # What is assumed comes first, and a ceiling that a cache lifts is none.
    row = {"assumption": "so many proposals right", "width": 7, "speedup": 1.5}
    on, off = ("\n".join(page_lines(page | {"predicted": [row | {"width": w}]})) for w in (7, 0))
    assert "\n  with so many proposals right: width 7 gives 1.50 times plain decoding\n" in on
    assert "\n  with so many proposals right: drafting does not pay\n" in off
    small = " ".join(" ".join(page_lines(page | {"pass_bytes": 1e6})).split())
    assert "tokens/s without drafting, more where so small a model stays" in small
    assert ": at most " in " ".join(" ".join(page_lines(page | {"pass_bytes": 1e9})).split())


def test_the_text_is_one_page_of_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("dfly-tui ")
    assert "\x1b" not in captured.out


def test_a_model_that_is_not_here_is_told_and_never_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def cached_only(*_: Any, local_files_only: bool = False, **__: Any) -> str:
        assert local_files_only
        raise huggingface_hub.errors.LocalEntryNotFoundError("not here")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached_only)
    asked: list[Load] = []
    found = page_of(Doctor("owner/model", "owner/draft"), loading(make_pair(), asked))
    assert found.healthy is False
    assert asked == []
    said = [problem["what"] for problem in found.page["problems"]]
    assert said[:2] == [
        "the target owner/model is not on this machine",
        "the drafter owner/draft is not on this machine",
    ]
    # A drafter alone means the official target, which is looked for and not fetched either.
    alone = page_of(Doctor(None, str(EMBEDDED / "drafter")), loading(make_pair(), asked))
    assert "Qwen3-8B-4bit is not on this machine" in alone.page["problems"][0]["what"]
    assert asked == []
    empty = page_of(Doctor(None, str(tmp_path)), loading(make_pair(), asked)).page["problems"][1]
    assert empty["what"] == f"the drafter {tmp_path} holds no config.json"
    # Nothing is downloaded for a name that is no hub id, so that is not the remedy.
    typo = page_of(Doctor(None, "./drafer"), loading(make_pair(), asked)).page["problems"][1]
    assert typo["what"] == "the drafter: no folder ./drafer"
    assert typo["remedy"] == "name a model folder or a hub id such as owner/model"
    for name in ("~nouser-here/x", "a" * 300):  # the file system itself takes no such name
        fault = page_of(Doctor(None, name), loading(make_pair(), asked)).page["problems"][1]
        assert fault["what"].startswith(f"the drafter: {name} can't be read (")


def test_too_little_memory_is_told_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "usable_memory", lambda: 100_000_000)
    asked: list[Load] = []
    found = page_of(FOLDERS, loading(make_pair(), asked))
    assert found.healthy is False
    assert asked == []
    problem = found.page["problems"][0]
    assert "since 100 MB can be used here" in problem["what"]
    assert "too much at 1,000 tokens" in problem["what"]
    assert "--quantize" in problem["remedy"]
    assert "does NOT fit" in "\n".join(page_lines(found.page))


def test_a_pair_that_cannot_be_loaded_is_a_problem_and_not_an_error() -> None:
    found = page_of(FOLDERS, loading(None))
    assert found.healthy is False
    assert found.page["problems"] == [
        {"what": "the drafter is off", "remedy": "convert it again", "fatal": True}
    ]
    assert "! the drafter is off: convert it again" in "\n".join(page_lines(found.page))


def test_a_broken_folder_makes_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(EMBEDDED / "target", tmp_path / "t")
    (tmp_path / "t" / "model.safetensors").write_bytes(b"short")
    assert main(["doctor", "--model", str(tmp_path / "t")]) == 1
    out = capsys.readouterr().out
    assert "chat would not work" in out
    assert "can't be read" in " ".join(out.split())


def test_the_json_is_valid_also_where_stdout_is_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    folder = tmp_path / "漢é"
    assert main(["doctor", "--json", "--model", str(folder)]) == 1
    narrow.seek(0)
    assert "漢é" in str(json.loads(narrow.read()))


def test_widths_that_are_not_exact_are_a_problem_that_stops_nothing() -> None:
    found = page_of(EMBEDDED_JOB, loading(judged(make_pair())))
    (problem,) = [p for p in found.page["problems"] if "as one at a time" in p["what"]]
    assert problem["fatal"] is False
    assert found.healthy is True


def test_low_power_mode_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = machine_facts() | {"power_mode": "low power"}
    monkeypatch.setattr(module, "machine_facts", lambda: facts)
    found = page_of(EMBEDDED_JOB, loading(judged(make_pair())))
    assert any("low power mode" in problem["what"] for problem in found.page["problems"])
    assert found.healthy is True
    assert "power low power" in "\n".join(page_lines(found.page))


def test_a_pass_reads_every_matrix_once_and_an_untied_embedding_not_at_all() -> None:
    pair = make_pair()
    layer = 32 * 64 + 2 * 32 * 32 + 64 * 32 + 3 * 32 * 48
    assert pass_bytes(pair) == 4 * (4 * layer + 96 * 32)
    tied = make_pair(tie_word_embeddings=True)
    assert pass_bytes(tied) == pass_bytes(pair)


def test_every_route_is_timed_at_every_width() -> None:
    costs = route_costs(judged(make_pair()))
    assert {len(seconds) for seconds in costs.values()} == {BLOCK}
    assert all(value > 0 for seconds in costs.values() for value in seconds)


def test_a_prediction_names_its_assumption_and_parks_where_drafting_costs_more() -> None:
    verdict = judge(findings(), "exact", "m", "t", 2)
    cheap = predict(replace(verdict, cost_exact=(1.0, 1.0, 1.0, 1.0), cost_draft=(0.5,) * 4))
    assert [p["width"] for p in cheap] == [3, 3]
    tokens = 1 + 0.75 + 0.75**2 + 0.75**3
    assert cheap[0]["speedup"] == pytest.approx(tokens / 1.5)
    assert "75%" in cheap[0]["assumption"]
    dear = predict(replace(verdict, cost_exact=(1.0, 4.0, 4.0, 4.0), cost_draft=(0.5,) * 4))
    assert [(p["width"], p["speedup"]) for p in dear] == [(0, 1.0), (0, 1.0)]


def test_the_rate_behind_a_mean_accepted_length() -> None:
    rate = rate_of_mean(5.41, 7)
    assert 1 + sum(rate**k for k in range(1, 8)) == pytest.approx(5.41)


def test_the_official_models_kv_bytes_are_the_known_147_kb() -> None:
    config = {
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 128, "hidden_size": 4096,
    }  # fmt: skip
    assert kv_bytes(config) == 147_456


def test_the_need_of_qwen3_8b_is_told_alike_wherever_it_is_told() -> None:
    need = official_need()
    assert need.words == "5.78 GB + 168 MB per 1,000 tokens of context"
    assert need.at(0) + 8 * 1000 * need.kv == need.at(8000)
    assert need.words in (Path(__file__).parents[1] / "README.md").read_text("utf-8").replace(
        " of memory", ""
    )
    for mac in (True, False):
        assert need.words in first_run_words(16_000_000_000, mac)
    found = page_of(Doctor(), loading(make_pair()))
    lines = page_lines(found.page)
    at = next(at for at, line in enumerate(lines) if "drafter at 4 bit" in line)
    assert lines[at + 1].strip() == need.words
    line = lines[at]
    assert line.strip().startswith("Qwen3-8B 4 bit, drafter at 4 bit: 7.16 GB with 8,192 tokens")
