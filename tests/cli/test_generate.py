"""`dfly-mlx generate` on the embedded pair: streams, sums up, and says in one line what is off."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dfly_core.cli.main import main
from dfly_core.model.locate import EMBEDDED

PROMPTS = ["What is 12 + 30?", "Write a python function that adds two numbers.", "Hello!"]
FIELDS = {
    "text", "token_ids", "prompt_tokens", "generated_tokens", "finish_reason", "cycles",
    "drafted", "accepted", "mean_accepted_length", "acceptance_rate", "position_acceptance",
    "prefill_seconds", "decode_seconds", "draft_seconds", "verify_seconds",
    "tokens_per_second", "time_to_first_token", "peak_memory_bytes", "model", "draft",
}  # fmt: skip


def generate(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["generate", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_ids_equal_the_targets_alone(capsys: pytest.CaptureFixture[str], prompt: str) -> None:
    alone = generate(capsys, "--no-draft", "--prompt", prompt, "--max-tokens", "60")
    full = generate(capsys, "--prompt", prompt, "--max-tokens", "60", "--width", "7")
    assert full["token_ids"] == alone["token_ids"]
    assert full["text"] == alone["text"]
    assert alone["cycles"] == 0
    assert alone["mean_accepted_length"] is None
    assert alone["draft"] is None


def test_the_object_has_the_fields_and_they_agree(capsys: pytest.CaptureFixture[str]) -> None:
    found = generate(capsys, "--prompt", PROMPTS[1], "--max-tokens", "50", "--width", "7")
    assert found.keys() >= FIELDS
    assert found["generated_tokens"] == len(found["token_ids"])
    assert found["drafted"] == 7 * found["cycles"]
    assert found["accepted"] == sum(ok for ok, _ in found["position_acceptance"])
    assert [seen for _, seen in found["position_acceptance"]] == [found["cycles"]] * 7
    # The first token is the prompt's, not a cycle's.
    emitted = found["generated_tokens"] - 1
    assert found["mean_accepted_length"] == pytest.approx(emitted / found["cycles"])
    assert found["acceptance_rate"] == pytest.approx(found["accepted"] / found["drafted"])
    assert found["tokens_per_second"] == pytest.approx(emitted / found["decode_seconds"])
    assert found["peak_memory_bytes"] > 1_000_000
    assert found["model"] == found["draft"] == "embedded"


def test_a_seed_draws_the_same_text_with_and_without_a_drafter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    story = ("--prompt", "Tell me a story.", "--max-tokens", "40")
    # The embedded target is sure of itself: at 1.5 every seed tells the same story.
    options = (*story, "--temperature", "3", "--top-k", "40")
    full = generate(capsys, *options, "--seed", "5")
    assert generate(capsys, *options, "--seed", "5", "--no-draft")["text"] == full["text"]
    assert generate(capsys, *options, "--seed", "6")["text"] != full["text"]
    assert main(["generate", "--prompt", "x", "--top-p", "2"]) == 2
    assert "top-p 2.0 was asked for: give more than 0" in capsys.readouterr().err


def test_every_step_is_a_line_of_the_steps_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "steps.jsonl"
    options = ("--prompt", PROMPTS[2], "--max-tokens", "20", "--width", "3", "--steps", str(path))
    found = generate(capsys, *options)
    steps = [json.loads(line) for line in path.read_text().splitlines()]
    assert [step["index"] for step in steps] == list(range(len(steps)))
    assert "".join(text for step in steps for text in step["texts"]) == found["text"]
    assert sum(step["kept"] for step in steps) == found["generated_tokens"]
    assert {len(step["proposals"]) for step in steps[1:]} <= {0, 1, 2, 3}


def test_text_goes_to_stdout_and_everything_else_to_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = generate(capsys, "--prompt", PROMPTS[0], "--max-tokens", "20")["text"]
    stdin = io.TextIOWrapper(io.BytesIO(PROMPTS[0].encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["generate", "--prompt", "-", "--max-tokens", "20"]) == 0
    found = capsys.readouterr()
    assert found.out == expected + "\n"
    assert "using the embedded pair" in found.err
    assert "mean accepted length" in found.err


@pytest.mark.parametrize(
    ("stdin", "why"),
    [
        ("/dev/zero", "more than 67.1 MB"),
        ("{}/latin", "not UTF-8 at byte 3"),
    ],
)
def test_a_stdin_that_holds_no_text_is_one_line(tmp_path: Path, stdin: str, why: str) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    for command in (["dfly_core", "generate", "--prompt", "-"], ["dfly_tui", "--plain"]):
        with open(os.open(stdin.format(tmp_path), os.O_RDONLY), "rb") as given:  # noqa: PTH123
            done = subprocess.run(
                [sys.executable, "-m", *command], stdin=given, capture_output=True, text=True,
                check=False, env=os.environ | {"HOME": str(tmp_path)},
            )  # fmt: skip
        name = "dfly-tui" if "--plain" in command else "dfly-mlx"
        said = f"{name}: stdin can't be read ({why}): give a pipe or a file of UTF-8 text\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_steps_into_a_pipe_that_nobody_reads_are_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        assert main(["generate", "--prompt", "x", "--steps", str(path)]) == 2
        assert f"{path} can't be written (" in capsys.readouterr().err


def pair_copy(tmp_path: Path, **changes: Any) -> Path:
    """The embedded drafter with a changed config."""
    folder = tmp_path / "changed"
    shutil.copytree(EMBEDDED / "drafter", folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


TARGET = str(EMBEDDED / "target")
BAD: list[tuple[list[str], int, str]] = [
    (["--prompt", ""], 2, "the prompt is empty"),
    (["--prompt", "   "], 2, "the prompt is empty"),
    ([], 2, "--prompt"),
    (["--prompt", "x", "--max-tokens", "-1"], 2, "'-1' is no whole number"),
    (["--prompt", "x", "--max-tokens", "ten"], 2, "'ten' is no whole number"),
    (["--prompt", "x", "--width", "8"], 2, "width 8 was asked for, this pair can verify 0 to 7"),
    (["--prompt", "x", "--width", "wide"], 2, "'wide' is no whole number"),
    (["--prompt", "x", "--draft", "a/b", "--no-draft"], 2, "exclude each other"),
    (["--prompt", "x", "--draft-bits", "5"], 2, "--draft-bits"),
    (["--prompt", "x", "--model", "/nowhere/at all"], 1, "no folder /nowhere/at all"),
    (["--prompt", "x", "--model", "not a hub id"], 1, "no folder not a hub id"),
    (["--prompt", "x", "--model", TARGET, "--draft", TARGET], 1, "is missing where"),
    (["--prompt", "x", "--model", __file__], 1, "is a file where a model folder is needed"),
    (["--prompt", "x", "--steps", "/nowhere/steps"], 2, "/nowhere/steps can't be written"),
    (["--prompt", "word " * 3000], 1, "tokens, the model's context holds"),
    (["--prompt", "x", "--nonsense"], 2, "there is no option --nonsense"),
    (["--prompt", "x", "--\x1b[2J\n"], 2, "there is no option --\u241b[2J (see"),
    (["--prompt", "x", "--max-tokens", "9" * 5000], 2, "\u2026 (see"),
    (["--prompt", "x", "--model", "/\x1b[2J\nx"], 1, "no folder /\u241b[2J x"),
    (["--prompt", "caf\udce9"], 2, "--prompt is not UTF-8"),
    (["--prompt", "x", "--steps", "/dev/full"], 1, "/dev/full can't be written (No space left"),
]


@pytest.mark.parametrize(("options", "code", "said"), BAD, ids=[said for _, _, said in BAD])
def test_bad_input_is_one_line_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], options: list[str], code: int, said: str
) -> None:
    found = main(["generate", *options])
    err = capsys.readouterr().err
    faults = [line for line in err.splitlines() if line.startswith("dfly-mlx")]
    assert found == code
    assert len(faults) == 1
    assert said in faults[0]
    assert "Traceback" not in err


def test_a_drafter_for_another_target_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = pair_copy(tmp_path, target_num_hidden_layers=36)
    code = main(["generate", "--prompt", "x", "--model", TARGET, "--draft", str(folder)])
    assert code == 1
    assert "36 layers, target has" in capsys.readouterr().err


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--debug", "--prompt", "x", "--model", "/nowhere"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_without_network_a_hub_id_that_is_not_cached_says_so(tmp_path: Path) -> None:
    env = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "dfly_core.cli.main", "generate", "--prompt", "x", "--draft", "a/b"],
        capture_output=True, text=True, env=env, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "a/b is not in the local cache" in done.stderr


def test_a_drafter_that_misses_the_official_target_is_told_without_having_that(
    tmp_path: Path,
) -> None:
    env = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    draft = str(EMBEDDED / "drafter")
    done = subprocess.run(
        [sys.executable, "-m", "dfly_core.cli.main", "generate", "--prompt", "x", "--draft", draft],
        capture_output=True, text=True, env=env, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "made for a target with 5 layers, mlx-community/Qwen3-8B-4bit has 36" in done.stderr


def test_ctrl_c_keeps_the_partial_text_and_its_summary() -> None:
    command = [
        sys.executable,
        "-m",
        "dfly_core.cli.main",
        "generate",
        "--prompt",
        "Tell me a story.",
    ]
    child = subprocess.Popen(
        [*command, "--max-tokens", "1900", "--width", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.read(1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    # A very short answer may end by itself before the signal is seen.
    assert (child.returncode, b"(cancelled)" in err) in [(130, True), (0, False)]
    assert b"tokens" in err
    assert b"Traceback" not in err
    assert out.endswith(b"\n")


def test_an_argument_the_locale_could_not_read_is_read_as_utf8(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--max-tokens", "4", "--prompt")
    broken = "caf\u00e9".encode().decode("ascii", "surrogateescape")
    assert (
        generate(capsys, *options, broken)["token_ids"]
        == (generate(capsys, *options, "caf\u00e9")["token_ids"])
    )


class OddTokenizer:
    """Answers in characters that an ASCII terminal has not."""

    chat_template, eos_token_id = "odd", None

    def apply_chat_template(self, *_: Any, **__: Any) -> list[int]:
        return [70, 71, 72]

    def decode(self, ids: Any, **_: Any) -> str:
        return "\u6f22" * len(ids)

    def get_vocab(self) -> dict[str, int]:
        return {}


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_what_stdout_cannot_encode_is_written_escaped(
    monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setattr("dfly_core.model.pair.load_tokenizer", lambda _: OddTokenizer())
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["generate", "--prompt", "x", "--max-tokens", "2", "--no-draft", *options]) == 0
    if options:
        assert json.loads(written.getvalue())["text"] == "\u6f22\u6f22"
    else:
        assert written.getvalue() == b"\\u6f22\\u6f22\n"


def test_closed_streams_are_empty_ones(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["generate", "--prompt", "-"]) == 2
    assert "the prompt is empty" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["generate", "--prompt", "x", "--max-tokens", "2"]) == 0


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("| true", ""),
        ("> /dev/full", "dfly-mlx: stdout can't be written (No space left on device)"),
    ],
)
@pytest.mark.parametrize("options", ["", "--json"])
def test_a_reader_that_leaves_or_a_full_disk_is_an_exit_code_and_no_noise(
    shell: str, said: str, options: str
) -> None:
    command = (
        f"{sys.executable} -m dfly_core.cli.main generate --prompt Hi --max-tokens 9 {options}"
    )
    env = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["bash", "-c", f"{command} {shell}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, env=env, timeout=60, check=False,
    )  # fmt: skip
    faults = [line for line in done.stderr.splitlines() if "dfly-mlx" in line or "Error" in line]
    assert done.returncode == 1
    assert all(line.startswith(said) for line in faults)
    assert len(faults) == bool(said)


def test_an_engine_that_cannot_be_imported_sends_to_the_doctor() -> None:
    code = (
        "import sys; sys.modules['mlx'] = None\n"
        "from dfly_core.cli.main import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "generate", "--prompt", "x"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(
        "dfly-mlx: the engine can't be imported (No module named 'mlx.core'"
    )
    assert "pip install" in done.stderr


def test_a_fault_within_the_answer_begins_its_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--prompt", PROMPTS[2], "--steps", "/dev/full"]) == 1
    assert capsys.readouterr().out == "\n"


def test_the_summary_tells_plain_steps_apart_from_cycles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["generate", "--prompt", PROMPTS[0], "--no-draft", "--max-tokens", "5"]) == 0
    assert "0 cycles and 4 plain steps" in capsys.readouterr().err
    options = ["--no-draft", "--max-tokens", "5", "--json"]
    assert main(["generate", "--prompt", PROMPTS[0], *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cycles"], found["plain_steps"]) == (0, 4)


def test_what_may_not_be_read_is_named_with_its_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(args: object) -> int:
        raise PermissionError(13, "Permission denied", "/some/folder")

    monkeypatch.setattr("dfly_core.cli.generate.run", forbidden)
    assert main(["generate", "--prompt", "x"]) == 1
    said = capsys.readouterr().err
    assert said == "dfly-mlx: /some/folder: Permission denied: check its permissions\n"
