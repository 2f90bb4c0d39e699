"""Prompt files: ours is what it says, and a bad one is refused by line number."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from dfly_core.bench.prompts import Prompt, read_prompts
from dfly_core.records.errors import Missing, Refused


def test_our_own_set_is_eight_of_each_kind() -> None:
    prompts = read_prompts()
    assert Counter(p.category for p in prompts) == {"code": 8, "math": 8, "chat": 8}
    assert len({p.prompt for p in prompts}) == 24


def test_a_folder_a_device_or_a_pipe_without_a_writer_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path, r"can't be read \(Is a directory\)"),
        (Path("/dev/zero"), r"can't be read \(more than 67.1 MB\)"),
        (tmp_path / "pipe", "pipe holds no prompt"),
    ):
        with pytest.raises(Refused, match=said):
            read_prompts(path)


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "p.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_field_is_read_and_blank_lines_are_nothing(tmp_path: Path) -> None:
    text = (
        '\ufeff{"id": "a", "prompt": "x\u2028y", "category": "c", "system": "s"}\r\n\n'
        '{"id": "b", "prompt": "z"}'
    )
    found = read_prompts(written(tmp_path, text))
    assert found == [Prompt("a", "x\u2028y", "c", "s"), Prompt("b", "z", "none")]
    assert [m.role for m in found[0].messages] == ["system", "user"]
    assert [m.role for m in found[1].messages] == ["user"]


def test_a_prompt_without_an_id_is_called_by_its_line(tmp_path: Path) -> None:
    found = read_prompts(written(tmp_path, '{"prompt": "x"}\n\n{"prompt": "y"}'))
    assert found == [Prompt("line-1", "x"), Prompt("line-3", "y")]


def test_a_text_file_holds_a_prompt_a_line(tmp_path: Path) -> None:
    path = tmp_path / "p.TXT"
    path.write_bytes(b'What is 1 + 1?\r\n\n{"prompt": 1}\n')
    assert read_prompts(path) == [
        Prompt("line-1", "What is 1 + 1?"),
        Prompt("line-3", '{"prompt": 1}'),
    ]


GOOD = '{"id": "a", "prompt": "x"}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + '{"id": "a", "prompt": "y"}', "line 2: id 'a' was used in line 1"),
        (GOOD + "\n{nonsense", "line 3: not JSON"),
        (GOOD + "[1]", "line 2: not a JSON object"),
        (GOOD + '{"id": "line-3", "prompt": "x"}\n{"prompt": "y"}', "line 3: id 'line-3' was used"),
        (GOOD + '{"id": "b"}', "line 2: no prompt"),
        (GOOD + '{"id": "", "prompt": "y"}', "line 2: id is ''"),
        (GOOD + '{"id": 7, "prompt": "y"}', "line 2: id is 7"),
        (GOOD + '{"id": "b", "prompt": " "}', "line 2: prompt is ' '"),
        (GOOD + '{"id": "b", "prompt": "y", "promt": "z"}', "line 2: unknown field 'promt'"),
        ("", "holds no prompt"),
        ("\n \n", "holds no prompt"),
        (b"\xff\xfe{}", "can't be read"),
    ],
)
def test_a_bad_file_is_refused_by_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(Refused, match=said):
        read_prompts(written(tmp_path, text))


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "p.txt").write_text("Hello\n")
    assert [prompt.prompt for prompt in read_prompts(Path("~/p.txt"))] == ["Hello"]
    with pytest.raises(Missing, match=r"no prompt file ~/q\.txt"):
        read_prompts(Path("~/q.txt"))
    with pytest.raises(Missing, match=r"no prompt file ~nouser-here/q\.txt"):
        read_prompts(Path("~nouser-here/q.txt"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="no prompt file"):
        read_prompts(tmp_path / "none.jsonl")
