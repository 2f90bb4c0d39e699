"""The benchmark: rows that stand, rows withheld and why, and what an interruption leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dfly_core.bench import run as module
from dfly_core.bench.components import Components, Parts, rates
from dfly_core.bench.diagnose import diagnose, first_difference
from dfly_core.bench.run import benchmark
from dfly_core.bench.trials import run_trial
from dfly_core.model.pair import Pair
from dfly_core.model.prompt import prompt_ids
from dfly_core.records.commands import Bench, Message
from dfly_core.records.errors import Refused, TooLong, Unavailable, Usage
from dfly_core.records.events import Benchmarked, Progress, Rowed
from dfly_core.records.loaded import Costs
from dfly_core.records.stats import Stats
from tests.exact.hostile import near_tie_pair, spoil_linear
from tests.tiny import alone, make_pair

ROWS = {"a": "hello", "b": "12345", "c": "zebra"}
NEEDED = {
    "id", "category", "baseline_tps_median", "dfly_tps_median", "speedup",
    "mean_accepted_length_median", "acceptance_rate_median", "parity", "baseline_trials",
    "dfly_trials",
}  # fmt: skip


def never() -> bool:
    return False


@pytest.fixture
def job(tmp_path: Path) -> Bench:
    prompts = tmp_path / "p.jsonl"
    lines = [json.dumps({"id": id, "prompt": text}) for id, text in ROWS.items()]
    prompts.write_text("\n".join(lines))
    output = str(tmp_path / "out.json")
    return Bench(output=output, prompts=str(prompts), trials=2, max_tokens=12)


@pytest.fixture
def quick(job: Bench) -> Bench:
    """The same with as little decoding as there can be: for what becomes of the file."""
    return replace(job, trials=1, max_tokens=2)


def bench(job: Bench, pair: Pair, cancelled: Callable[[], bool] = never) -> Benchmarked:
    events = list(benchmark(job, pair, None, cancelled))
    assert all(isinstance(event, (Progress, Rowed)) for event in events[:-1])
    last = events[-1]
    assert isinstance(last, Benchmarked)
    return last


def output_of(job: Bench) -> Path:
    assert job.output is not None
    return Path(job.output)


def report_of(job: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output_of(job).read_text())
    return found


def test_the_report_says_what_was_measured_on_what(job: Bench) -> None:
    assert bench(job, make_pair()) == Benchmarked(str(output_of(job)), 3, 0, 0)
    report = report_of(job)
    for name in ("schema_version", "model", "draft", "trials", "max_tokens", "results"):
        assert report[name]
    assert report["hardware"].keys() >= {"chip", "memory_gb", "os", "python", "mlx", "mlx_lm"}
    assert report["finished"] is True
    assert [row["id"] for row in report["results"]] == list(ROWS)
    for row in report["results"]:
        assert row.keys() >= NEEDED
        assert row["parity"] is True
        assert len(row["baseline_trials"]) == len(row["dfly_trials"]) == 2
        assert row["speedup"] == pytest.approx(row["dfly_tps_median"] / row["baseline_tps_median"])
        assert row["dfly_trials"][0]["cycles"] > 0
        assert row["baseline_trials"][0]["cycles"] == 0
        assert row["baseline_trials"][0]["time_to_first_token"] > 0
        assert row["dfly_peak_memory_bytes"] > 0
        assert row["marks"][0] == "2 trials: no spread"
        assert row["company"]["cores"] >= 1
        assert row["company"]["own"] > 0
        assert row["company"]["average"] >= 0


def test_trials_are_in_turns_and_swap_who_goes_first(
    job: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[bool] = []

    def spy(pair: Pair, ids: Any, tokens: int, draft: bool, costs: Any, cancelled: Any) -> Any:
        order.append(draft)
        return run_trial(pair, ids, tokens, draft, costs, cancelled)

    monkeypatch.setattr(module, "run_trial", spy)
    bench(replace(job, trials=3), make_pair())
    assert order[:2] == [False, True]  # the warm-up of both paths
    assert order[2:8] == [False, True, True, False, False, True]


def spoiled() -> Pair:
    """A pair on which a block of 4 rows chooses other tokens than single rows."""
    pair = near_tie_pair()
    pair.target = spoil_linear(pair.target, lambda rows, _: rows == 6)
    return pair


def test_a_row_that_differs_is_withheld_with_its_diagnosis_and_the_others_stand(
    job: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, sound = spoiled(), near_tie_pair()
    monkeypatch.setattr(type(pair), "widest", property(lambda self: 5))
    oracle_for_b(monkeypatch, pair, sound)
    end = bench(job, pair)
    rows = {row["id"]: row for row in report_of(job)["results"]}
    assert end.withheld >= 1
    assert end.published + end.withheld == 3
    row = rows["b"]
    assert row["parity"] is False
    assert row["speedup"] is None
    found = row["withheld"]
    truth = alone(sound, prompt_of(pair, "b"), 12)
    assert found["expected"] == truth[found["index"]]
    assert found["got"] != found["expected"]
    assert found["logits"][0] >= found["logits"][1]
    assert found["gap"] == pytest.approx(found["logits"][0] - found["logits"][1])
    assert found["gap"] < 1e-3  # a near tie, as this target is made of
    assert found["step"] >= 1
    assert found["slot"] <= 5
    assert "a block of 6 rows as it comes" in found["route"]
    assert rows["a"]["parity"] is True
    assert rows["a"]["speedup"] > 0


def prompt_of(pair: Pair, id: str) -> list[int]:
    from dfly_core.bench.prompts import Prompt
    from dfly_core.model.prompt import prompt_ids

    return prompt_ids(pair.tokenizer, Prompt(id, ROWS[id]).messages)


def oracle_for_b(monkeypatch: pytest.MonkeyPatch, pair: Pair, sound: Pair) -> None:
    """A drafter right about row b alone: its blocks commit rows of the spoiled kernel."""
    from dfly_core.bench import trials
    from dfly_core.engine.generate import generate
    from tests.tiny import oracle, wrong

    truths = {id: alone(sound, prompt_of(pair, id), 30) for id in ROWS}

    def scripted(context: Any, ids: Any, options: Any, cancelled: Any, costs: Any) -> Any:
        id = next(i for i in ROWS if prompt_of(pair, i) == list(ids))
        # Where nothing is accepted only the anchor's row counts: narrow blocks are sound.
        if id != "b" and options.width is None:
            options = replace(options, width=1)
        drafter = (oracle if id == "b" else wrong)(truths[id], len(ids))
        return generate(context, ids, options, cancelled, drafter, costs)

    monkeypatch.setattr(trials, "generate", scripted)


def test_where_answers_end_at_different_places_the_diagnosis_says_so() -> None:
    pair = make_pair()
    prompt = [5, 17, 3]
    long = run_trial(pair, prompt, 10, False, None, never)
    short = run_trial(pair, prompt, 6, True, None, never)
    assert first_difference(long.ids, short.ids) == 6
    found = diagnose(pair, prompt, long, short, 0)
    assert (found.index, found.expected, found.got) == (6, long.ids[6], None)
    assert found.got_text == "(the end)"
    assert found.gap is None


def soon(report: Path) -> Callable[[], bool]:
    """Cancels once the first row has been written, however often that was asked before."""
    return report.exists


def test_a_run_that_is_stopped_before_its_first_row_leaves_no_file(job: Bench) -> None:
    output = output_of(job)
    before = sorted(output.parent.iterdir())
    assert bench(job, make_pair(), lambda: True) == Benchmarked(None, 0, 0, 3)
    assert sorted(output.parent.iterdir()) == before
    # A report that was there stays what it was.
    assert bench(job, make_pair()).path == str(output)
    whole = output.read_bytes()
    assert bench(job, make_pair(), lambda: True).path is None
    assert output.read_bytes() == whole


def test_an_interrupted_run_keeps_its_rows_and_is_taken_up_again(job: Bench) -> None:
    pair = make_pair()
    end = bench(job, pair, soon(output_of(job)))
    assert end.left > 0
    kept = report_of(job)
    assert kept["finished"] is False
    done = [row["id"] for row in kept["results"]]
    assert len(done) == 3 - end.left
    again = list(benchmark(job, pair, None, never))
    rows = [event.row["id"] for event in again if isinstance(event, Rowed)]
    assert rows == [id for id in ROWS if id not in done]
    report = report_of(job)
    assert [row["id"] for row in report["results"]] == list(ROWS)
    assert report["results"][: len(done)] == kept["results"]
    assert report["finished"] is True


def test_rows_of_other_settings_are_neither_mixed_in_nor_lost(job: Bench) -> None:
    pair = make_pair()
    assert 0 < bench(job, pair, soon(output_of(job))).left < 3
    with pytest.raises(Refused, match="unfinished benchmark with another max tokens"):
        bench(replace(job, max_tokens=5), pair)
    with pytest.raises(Refused, match="another verify mode"):
        bench(replace(job, verify="fast"), pair)
    output_of(job).write_text("my notes")
    with pytest.raises(Refused, match="no benchmark report"):
        bench(job, pair)
    assert output_of(job).read_text() == "my notes"


def test_a_finished_report_is_replaced(quick: Bench) -> None:
    pair = make_pair()
    bench(quick, pair)
    bench(replace(quick, max_tokens=3), pair)
    assert report_of(quick)["max_tokens"] == 3


def test_without_a_name_no_report_is_lost(
    quick: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pair, unnamed = make_pair(), replace(quick, output=None)
    assert bench(unnamed, pair).path == "benchmark.json"
    before = Path("benchmark.json").read_bytes()
    Path("benchmark-2.json").write_text("my notes")
    Path("benchmark-3.json").symlink_to("nowhere")
    assert bench(unnamed, pair, soon(Path("benchmark-4.json"))).path == "benchmark-4.json"
    # Of other settings: another run, and the interrupted one waits for its own.
    assert bench(replace(unnamed, max_tokens=3), pair).path == "benchmark-5.json"
    assert bench(unnamed, pair) == Benchmarked("benchmark-4.json", 3, 0, 0)
    assert bench(unnamed, pair).path == "benchmark-6.json"
    assert Path("benchmark.json").read_bytes() == before
    assert Path("benchmark-2.json").read_text() == "my notes"


def test_a_report_is_never_half_written(quick: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make_pair()
    bench(quick, pair)
    before = output_of(quick).read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Unavailable, match="No space left"):
        bench(quick, pair)
    assert output_of(quick).read_bytes() == before
    assert [p.name for p in output_of(quick).parent.iterdir()].count("out.json") == 1
    assert not list(output_of(quick).parent.glob(".out*"))


def test_a_prompt_that_does_not_fit_is_named_before_anything_runs(
    job: Bench, tmp_path: Path
) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"id": "long", "prompt": "x" * 400}))
    with pytest.raises(TooLong, match="prompt long: the conversation has"):
        bench(replace(job, prompts=str(path)), make_pair())
    assert not output_of(job).exists()


def test_what_can_not_be_benchmarked_is_refused(job: Bench) -> None:
    pair = make_pair()
    with pytest.raises(Usage, match="0 trials"):
        bench(replace(job, trials=0), pair)
    pair.drafter = None
    with pytest.raises(Usage, match="needs a drafter"):
        bench(job, pair)


def test_components_name_every_part_and_the_ideal(job: Bench) -> None:
    bench(replace(job, components=True), make_pair())
    parts = report_of(job)["components"]
    assert parts["seconds"].keys() == {"draft", "draft 1", "backbone", "head", "correction"}
    assert len(parts["verify_seconds_by_width"]) == 6
    assert all(seconds > 0 for seconds in parts["seconds"].values())
    assert parts["cycle_seconds"] > 0
    assert parts["ideal_tps"] > 0
    assert parts["achieved_tps"] > 0


def test_components_are_timed_between_the_trials_in_the_middle_of_answers(
    job: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    after: list[int] = []
    real = Components.time

    def time(self: Components, prompt: Sequence[int]) -> None:
        after.append(len(prompt))
        real(self, prompt)

    monkeypatch.setattr(Components, "time", time)
    job = replace(job, components=True)
    pair = make_pair()
    bench(job, pair)
    report = report_of(job)
    prompts = [len(prompt_ids(pair.tokenizer, (Message("user", text),))) for text in ROWS.values()]
    answers = [row["baseline_trials"][0]["tokens"] for row in report["results"]]
    middles = [sum(pair) for pair in zip(prompts, [n // 2 for n in answers], strict=True)]
    assert after == middles
    assert report["components"]["context_rows"] == sorted(middles)[1] - 1
    output_of(job).write_text(json.dumps(report | {"finished": False}))
    bench(job, pair)  # taken up again, with all rows there: no rate, but the parts
    assert after[len(ROWS) :] == [max(prompts)]
    assert report_of(job)["components"]["achieved_tps"] is None


def test_a_row_is_written_and_told_before_its_parts_are_timed(
    quick: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def time(self: Components, prompt: Sequence[int]) -> None:
        raise Unavailable("no memory")

    monkeypatch.setattr(Components, "time", time)
    events = benchmark(replace(quick, components=True), make_pair(), None, never)
    assert [type(next(events)) for _ in range(3)] == [Progress, Rowed, Progress]
    with pytest.raises(Unavailable):
        next(events)
    assert [row["id"] for row in report_of(quick)["results"]] == ["a"]


def test_a_stop_while_parts_are_timed_is_heard_and_leaves_the_rows(
    job: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[Parts] = []
    monkeypatch.setattr(Parts, "round", lambda self: rounds.append(self))
    bench(replace(job, components=True), make_pair(), lambda: bool(rounds))
    assert len(rounds) == 1
    report = report_of(job)
    assert len(report["results"]) == 1
    assert not report["finished"]
    assert report["components"] is None


def test_the_ideal_is_of_cycles_as_wide_as_those_that_ran() -> None:
    parts = {"draft": 0.7, "draft 1": 0.1} | {f"verify {w}": 1.0 + 0.1 * w for w in range(8)}
    # Two cycles of widths 2 and 3: at 2.5 a draft takes 0.25, a verification 1.25.
    stats = Stats(cycles=2, cycle_tokens=6, verified=5, decode_tokens=6, decode_seconds=4.0)
    found = rates(stats, parts, 7)
    assert found["mean_width"] == 2.5
    assert found["ideal_tps"] == pytest.approx(6 / (2 * 1.5))
    assert found["host_seconds"] == pytest.approx(0.5)


def test_a_trial_knows_nothing_of_what_was_answered_before() -> None:
    pair = make_pair(3, max_position_embeddings=600)
    costs = Costs(plain=1.0, verify=(1.0, 1.1, 1.2, 1.3, 1.35, 1.4), draft=(0.8,) * 6)
    runs = [run_trial(pair, [5, 6, 7], 100, True, costs, lambda: False).trial for _ in range(3)]
    assert len({(run.cycles, run.plain_steps) for run in runs}) == 1
    assert runs[0].cycles > 0
    assert pair.acceptance is None
