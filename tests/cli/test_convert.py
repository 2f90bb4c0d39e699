"""`dfly-mlx convert` from the outside: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pexpect
import pytest

from dfly_core.cli.main import main
from dfly_core.model.headers import read_headers
from tests.convert.small import SAMPLES, make_folder


def test_a_conversion_says_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make_folder(tmp_path / "in")
    output = tmp_path / "out"
    assert main(["convert", "--draft", str(source), "--output", str(output)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{output}: 31 tensors, bf16, 0.2 MB in ")
    assert "(from a serving folder)" in out
    assert "dropped, the target has its own: embed_tokens.weight" in out
    assert err == ""
    assert len(read_headers(output)) == 31


def test_a_quantised_conversion_says_what_that_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make_folder(tmp_path / "in")
    arguments = ["--draft", str(source), "--output", str(tmp_path / "out"), "--quantize", "4"]
    assert main(["convert", *arguments]) == 0
    out = capsys.readouterr().out
    assert "largest relative error 0." in out
    assert "hidden states agree with the unquantised drafter: mean cosine 0.9" in out


def test_json_is_the_report_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--draft", str(SAMPLES / "legacy-bin"), "--output", str(tmp_path / "out")]
    assert main(["convert", *arguments, "--json", "--dtype", "f32"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["dtype"], said["tensors"], said["bits"]) == ("f32", 42, None)
    assert said["output"] == str(tmp_path / "out")


def test_a_refusal_is_one_line_on_stderr_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--draft", str(SAMPLES / "bad-nan"), "--output", str(tmp_path / "out")]
    assert main(["convert", *arguments, "--json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == ("dfly-mlx: final_norm.weight holds NaN or infinity: take another checkpoint\n")


@pytest.mark.parametrize(
    "arguments",
    [[], ["--output", "x", "--quantize", "3"], ["--output", "x", "--dtype", "f64"]],
)
def test_usage_errors_end_with_2(arguments: list[str]) -> None:
    assert main(["convert", *arguments]) == 2


def test_a_terminal_shows_progress_and_a_name_cannot_steer_it(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    command = ["-m", "dfly_core.cli.main", "convert", "--draft", str(source), "--output"]
    child = pexpect.spawn(
        sys.executable,
        [*command, str(tmp_path / "o\x1b[31mut")],
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        timeout=60,
    )
    shown = child.read().decode()
    child.close()
    assert child.exitstatus == 0
    assert "convert" in shown
    assert "verify" in shown
    assert "\x1b[31mut" not in shown
    assert "31 tensors" in shown
