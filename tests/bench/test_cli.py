"""`dfly-mlx bench` as its users meet it."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dfly_core.bench.trials import run_trial
from dfly_core.cli.main import main

PROMPTS = ["--trials", "1", "--max-tokens", "16"]


def two_prompts(folder: Path) -> Path:
    path = folder / "p.jsonl"
    path.write_text(
        '{"id": "x", "prompt": "What is 12 + 30?", "category": "math"}\n'
        '{"id": "[red]y", "prompt": "Hello!", "category": "chat"}\n'
    )
    return path


def test_it_prints_the_path_writes_the_report_and_shows_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, page = tmp_path / "b.json", tmp_path / "b.md"
    options = ["--prompts", str(two_prompts(tmp_path)), "--output", str(output), *PROMPTS]
    assert main(["bench", *options, "--markdown", str(page), "--check-baseline"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"report: {output}\n"
    assert "by category" in captured.err
    assert "[red]y" in captured.err
    assert "(1 trial: no spread" in captured.err
    assert "2 of 2 rows doubtful (?), and so are" in captured.err
    report = json.loads(output.read_text())
    assert report["model"] == "embedded"
    assert [row["parity"] for row in report["results"]] == [True, True]
    check = report["baseline_check"]
    assert check["same_ids"] is True
    assert check["rounds"] >= 5
    assert check["holds"] == (check["ratio"] >= 0.98)
    assert check["ratio"] > 0.5
    assert "| x |" in page.read_text()


def test_without_output_the_last_line_names_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prompts = str(two_prompts(tmp_path))
    for name in ("benchmark.json", "benchmark-2.json"):
        assert main(["bench", "--prompts", prompts, "--trials", "1", "--max-tokens", "2"]) == 0
        assert capsys.readouterr().out == f"report: {name}\n"
        assert json.loads(Path(name).read_text())["finished"] is True


def test_a_run_stopped_before_a_row_says_that_nothing_was_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dfly_core.bench import run as module

    pressed: list[bool] = []

    def stopped(*given):  # type: ignore[no-untyped-def]
        if not pressed:  # a second time would leave at once
            os.kill(os.getpid(), signal.SIGINT)
        pressed.append(True)
        return run_trial(*given)

    monkeypatch.setattr(module, "run_trial", stopped)
    output = tmp_path / "b.json"
    options = ["--prompts", str(two_prompts(tmp_path)), "--output", str(output), *PROMPTS]
    assert main(["bench", *options]) == 130
    captured = capsys.readouterr()
    assert (captured.out, output.exists()) == ("", False)
    assert "Stopped before a row was finished: nothing was kept" in captured.err


def test_a_run_stopped_between_rows_says_how_many_are_left_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "b.json"
    options = ["--prompts", str(two_prompts(tmp_path)), "--output", str(output), *PROMPTS]
    shown, rows = Console.print, [1]

    def press_after_the_first_row(self: Console, *what: Any, **how: Any) -> None:
        shown(self, *what, **how)
        if rows:
            os.kill(os.getpid(), signal.SIGINT)
        rows.clear()

    with monkeypatch.context() as patch:
        patch.setattr(Console, "print", press_after_the_first_row)
        assert main(["bench", *options]) == 130
    captured = capsys.readouterr()
    assert "\nstopped, 1 prompt left: the same command goes on\n" in captured.err
    assert captured.out == f"report: {output}\n"
    assert main(["bench", *options]) == 0
    captured = capsys.readouterr()
    assert "stopped" not in captured.err
    assert [row["id"] for row in json.loads(output.read_text())["results"]] == ["x", "[red]y"]


def test_a_withheld_row_makes_the_exit_code_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dfly_core.bench import run as module

    def off(pair, ids, tokens, draft, costs, cancelled):  # type: ignore[no-untyped-def]
        run = run_trial(pair, ids, tokens, draft, costs, cancelled)
        if draft:
            run.ids[3] += 1
        return run

    monkeypatch.setattr(module, "run_trial", off)
    output = tmp_path / "b.json"
    options = ["--prompts", str(two_prompts(tmp_path)), "--output", str(output), *PROMPTS]
    assert main(["bench", *options, "--json"]) == 3
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert [row["parity"] for row in report["results"]] == [False, False]
    assert "WITHHELD" in captured.err
    assert "x withheld: token 3 is" in captured.err


def test_the_json_is_valid_also_where_stdout_is_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('{"id": "漢é", "prompt": "Hi"}\n', encoding="utf-8")
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    options = ["--prompts", str(prompts), "--output", str(tmp_path / "b.json"), *PROMPTS]
    assert main(["bench", *options, "--json"]) == 0
    narrow.seek(0)
    assert json.loads(narrow.read())["results"][0]["id"] == "漢é"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--no-draft"], 2, "needs a drafter"),
        (["--prompts", "/none"], 1, "no prompt file"),
        (["--trials", "x"], 2, "no whole number"),
        (["--prompts", ""], 2, "--prompts is empty"),
        (["--model", ""], 2, "--model is empty"),
        (["--output", "/dev/full"], 1, "/dev/full is no file"),
        (["--markdown", "/none/x.md"], 1, "/none/x.md can't be written"),
        (["--markdown", "/"], 1, "/ can't be written"),
        (["--prompts", "p.jsonl", "--markdown", "./p.jsonl"], 2, "would write over another file"),
        (["--model", "/none"], 1, "no folder /none"),
    ],
)
def test_faults_are_one_line(
    options: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["bench", "--output", str(tmp_path / "b.json"), *options]
    assert main(arguments) == code
    lines = [line for line in capsys.readouterr().err.splitlines() if "dfly-mlx" in line]
    assert len(lines) == 1
    assert said in lines[0]
