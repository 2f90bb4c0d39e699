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
from tests.convert.small import CONFIG, SAMPLES, make_folder


def test_a_conversion_says_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make_folder(tmp_path / "in")
    output = tmp_path / "out"
    assert main(["convert", "--draft", str(source), "--output", str(output)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{output}: 31 tensors, bf16, 214 kB in ")
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


def test_only_a_check_can_do_without_an_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_folder(tmp_path / "in")
    monkeypatch.chdir(source)
    assert main(["convert", "--draft", "."]) == 2
    assert capsys.readouterr().err == (
        "dfly-mlx: no output is named: name the folder to make with --output\n"
    )
    assert main(["convert", "--draft", ".", "--check"]) == 0
    out = capsys.readouterr().out
    assert "result 214 kB\n" in out
    assert "free where it goes" not in out


LONG = "x" * 5000


@pytest.mark.parametrize("check", [[], ["--check"]])
@pytest.mark.parametrize(
    ("source", "output", "said"),
    [
        (LONG, "out", "xxx\u2026 can't be read (File name too long)"),
        ("~nouser-here/x", "out", "~nouser-here/x can't be read ("),
        ("a\0b", "out", "no checkpoint at a\u2400b"),
        ("a\ud800b", "out", "can't be read (it is no valid name)"),
        ("in", LONG, "can't be a folder (File name too long)"),
        ("in", "~nouser-here/x", "the output ~nouser-here/x can't be a folder ("),
        ("in", "a\0b", "the output a\u2400b can't be a folder (it is no valid name)"),
        ("in", "a\ud800b", "the output a<D800>b can't be a folder (it is no valid name)"),
    ],
)
def test_a_path_that_is_none_is_told_in_one_line(
    source: str,
    output: str,
    said: str,
    check: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    make_folder(tmp_path / "in")
    assert main(["convert", "--draft", source, "--output", output, *check]) == 1
    captured = capsys.readouterr()
    (line,) = (line for line in (captured.out + captured.err).splitlines() if said in line)
    assert len(line) < 400
    assert line.strip().startswith(("can't convert: ", "dfly-mlx: "))
    assert "unexpected" not in captured.err
    assert captured.err.count("\n") == (0 if check else 1)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("check", [[], ["--check"]])
@pytest.mark.parametrize("key", ["rms_norm_eps", "rope_theta"])
def test_a_number_too_large_for_a_float_is_refused(
    key: str, check: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make_folder(tmp_path / "in")
    (source / "config.json").write_text(json.dumps(CONFIG | {key: 10**400}))
    arguments = ["--draft", str(source), "--output", str(tmp_path / "out"), *check]
    assert main(["convert", *arguments]) == 1
    captured = capsys.readouterr()
    assert f"{key} is 1000" in captured.out + captured.err
    assert "where a positive number is needed" in captured.out + captured.err
    assert "0" * 100 not in captured.out + captured.err
    assert not (tmp_path / "out").exists()


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
