"""Line mode over a scripted engine, piped and in a terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pexpect

SCRIPT = Path(__file__).with_name("engine_script.py")
ROOT = Path(__file__).parents[2]
RUN = (
    "import sys; from dfly_tui.cli import main; "
    "sys.exit(main(sys.argv[3:], (sys.executable, sys.argv[1], *sys.argv[2].split())))"
)


def environment(home: Path) -> dict[str, str]:
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    env.pop("XDG_DATA_HOME", None)
    return env


def piped(home: Path, scenario: str, text: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, str(SCRIPT), scenario, "--plain", *args],
        input=text, capture_output=True, text=True, env=environment(home), timeout=60, check=False,
    )  # fmt: skip


def test_a_pipe_is_one_message_and_only_the_answer_is_on_stdout(tmp_path: Path) -> None:
    done = piped(tmp_path, "echo", "one\ntwo\n")
    assert done.returncode == 0
    assert done.stdout.startswith("You said: one\ntwo\n\nThe fox")
    assert "mean accepted length" in done.stderr


def chats(home: Path) -> list[Path]:
    return sorted(home.rglob("chats/*.jsonl"))


def test_a_pipe_leaves_no_chat_behind_unless_it_goes_on_with_one(tmp_path: Path) -> None:
    assert piped(tmp_path, "echo", "first").returncode == 0
    assert piped(tmp_path, "echo", "", "--prompt", "second").returncode == 0
    assert chats(tmp_path) == []
    at = tmp_path / ".local/share/dfly-tui/chats/000003.jsonl"
    if sys.platform == "darwin":
        at = tmp_path / "Library/Application Support/dfly-tui/chats/000003.jsonl"
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text('{"did": "begin", "created": "", "system": ""}\n')
    done = piped(tmp_path, "echo", "third", "--resume")
    assert done.stdout.startswith("You said: third")
    assert "Chat 3: New chat (0 messages)" in done.stderr
    assert chats(tmp_path) == [at]
    assert "third" in at.read_text()
    done = piped(tmp_path, "abort", "x")
    assert "is saved" not in done.stderr


def test_a_pipe_without_a_message_or_with_other_bytes_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, str(SCRIPT), "echo", "--plain"]
    for given, said in ((b"", "stdin is empty"), (b" \n", "is empty"), (b"a\xff", "not UTF-8")):
        done = subprocess.run(
            command, input=given, capture_output=True, env=environment(tmp_path),
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stdout == b""
        assert done.stderr.count(b"\n") == 1
        assert said in done.stderr.decode()
    closed = " ".join(map(shlex.quote, command)) + " <&-"
    done = subprocess.run(
        ["/bin/sh", "-c", closed], capture_output=True, env=environment(tmp_path),
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


def test_faults_are_one_line_and_a_code(tmp_path: Path) -> None:
    for scenario, said in (
        ("noweights", "no weights in /nowhere"),
        ("toolong", "3000 tokens"),
        ("abort", "SIGABRT"),
    ):
        done = piped(tmp_path, scenario, "x")
        assert done.returncode == 1
        assert said in done.stderr
        assert done.stderr.splitlines()[-1].startswith("dfly-tui: ")
    assert piped(tmp_path, "story", "", "--resume", "77").returncode == 2


def test_wrong_options_and_a_home_that_cannot_be_made_are_one_line(tmp_path: Path) -> None:
    done = piped(tmp_path, "story", "", "--bogus")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "dfly-tui: there is no option --bogus (see dfly-tui --help)"
    ]
    for options, said in (
        (["--model", ""], "--model is empty"),
        (["why is", "it"], "write --prompt 'why is it' (see dfly-tui --help)"),
        (["--draft", "x", "--no-draft"], "exclude each other"),
        (["--resume", "²"], "there is no chat ²"),
        (["--prompt", "a\udcff"], "--prompt is not UTF-8"),
    ):
        done = piped(tmp_path, "story", "", *options)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr
    (tmp_path / "file").touch()
    done = piped(tmp_path / "file", "story", "hi")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "set XDG_DATA_HOME" in done.stderr


def test_lines_in_a_terminal_are_turns_and_controls_stay_harmless(tmp_path: Path) -> None:
    child = pexpect.spawn(
        sys.executable, ["-c", RUN, str(SCRIPT), "controls", "--plain"],
        env=environment(tmp_path), timeout=60, encoding="utf-8",
    )  # fmt: skip
    child.expect("> ")
    child.sendline("hello")
    child.expect("end \\[/\\]")
    assert "\x1b]52" not in (child.before or "")
    child.expect("> ")
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_line_mode_obeys_slash_commands_and_names_them_for_an_unknown_one(tmp_path: Path) -> None:
    child = pexpect.spawn(
        sys.executable, ["-c", RUN, str(SCRIPT), "echo", "--plain"],
        env=environment(tmp_path), timeout=60, encoding="utf-8",
    )  # fmt: skip

    def say(line: str, *expected: str) -> None:
        child.expect("> ")
        child.sendline(line)
        for words in expected:
            child.expect_exact(words)

    say("/help", "/new: begin another chat", "/system [TEXT]: say or set", "/quit: leave")
    say("/nonsense", "There is no /nonsense: there are /help /new /chats /resume /again")
    say("/new now", "/new takes nothing after it")
    say("/chats", "There is no chat yet")
    say("/again", "Nothing was asked yet")
    say("/continue", "There is no stopped answer to go on with")
    say("/export", "There is nothing to export yet")
    say("/stats", "There is no answer yet")
    say("/model", "--model and --draft choose another")
    say("hello there", "You said: hello there", "mean accepted length")
    say("/again", "You said: hello there")
    say("/stats", "cycles", "mean accepted length")
    say("/system Be brief", "System prompt set")
    say("/system", "Be brief")
    say("/system -", "No system prompt")
    out = tmp_path / "out.md"
    say(f"/export {out}", f"Exported to {out}")
    say(f"/export {out}", "exists: choose another name")
    say("/new", "A new chat")
    say(" /new is a message here", "You said:  /new is a message here")
    say("/chats", "2:  /new is".replace("  ", " "), "open here", "1: hello there (2 messages")
    say("/resume 77", "There is no chat 77: /chats lists them")
    say("/resume 1", "Chat 1: hello there (2 messages)")
    say("/quit")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert "## Answer" in out.read_text()
    assert len(chats(tmp_path)) == 2
