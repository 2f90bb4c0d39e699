"""Chats on disk survive crashes, odd titles and a full disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from dfly_tui.state.conversation import Conversation, Run, Turn, as_markdown, code_blocks
from dfly_tui.state.settings import Settings, load_settings, save_settings
from dfly_tui.state.store import Store, matches


def chat_with(*texts: str) -> Conversation:
    chat = Conversation()
    for number, text in enumerate(texts, 1):
        chat.turns.append(Turn(number, "user" if number % 2 else "assistant", text, "stop"))
    return chat


def test_a_chat_comes_back_as_it_was(tmp_path: Path) -> None:
    store, chat = Store(tmp_path), chat_with("q [/]\x1b", "a\n漢字\ud800")
    store.create(chat)
    answer = Turn(4, "assistant")
    store.say(chat, Turn(3, "user", "more", "stop"))
    store.say(chat, answer)
    store.grow(chat, answer, [Run("one ", True), Run("two", False)])
    answer.end, answer.figures = "stop", {"mean": 5.5}
    store.end(chat, answer)
    back = store.load(chat.number)
    assert [t.text for t in back.turns] == ["q [/]\x1b", "a\n漢字\ud800", "more", "one two"]
    assert back.turns[-1].figures == {"mean": 5.5}
    assert [(r.text, r.draft) for r in back.turns[-1].runs] == [("one ", True), ("two", False)]


def test_fault_21_a_file_cut_anywhere_opens_and_loses_at_most_the_last_record(
    tmp_path: Path,
) -> None:
    store, chat = Store(tmp_path), chat_with("first", "answer one", "second", "answer two")
    store.create(chat)
    whole = store.path(1).read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == 10]
    for cut in range(len(whole) + 1):
        store.path(1).write_bytes(whole[:cut])
        complete = sum(1 for end in ends if end <= cut)
        back = store.load(1)
        assert len(back.turns) >= max(complete - 1, 0)
    store.path(1).write_bytes(whole[:-5])
    store.say(chat, Turn(5, "user", "after the crash", "stop"))
    assert store.load(1).turns[-1].text == "after the crash"


def test_an_answer_without_an_end_was_stopped(tmp_path: Path) -> None:
    store, chat = Store(tmp_path), chat_with("q")
    store.create(chat)
    answer = Turn(2, "assistant")
    store.say(chat, answer)
    store.grow(chat, answer, [Run("half", True)])
    assert store.load(1).turns[-1].end == "stopped"
    assert store.load(1).turns[-1].text == "half"


def test_fault_20_odd_titles_never_become_names(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for title in ("a|b", "[/] 1", "../../etc", "x" * 500):
        chat = chat_with("q")
        chat.title = title
        store.create(chat)
        assert store.load(chat.number).title == title
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"00000{n}.jsonl" for n in range(1, 5)]


def test_list_search_rename_delete(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for text in ("about foxes", "about lanterns", "About BOTH foxes and lanterns"):
        store.create(chat_with(text))
    assert len(store.summaries()) == 3
    found = {
        w: [s.number for s in store.summaries() if matches(s, w)]
        for w in ("lanterns", "foxes both")
    }
    assert {w: sorted(ns) for w, ns in found.items()} == {"lanterns": [2, 3], "foxes both": [3]}
    store.add(store.load(2), {"did": "title", "title": "renamed"})
    assert store.load(2).shown_title == "renamed"
    store.delete(1)
    assert store.numbers() == [2, 3]


def test_a_stranger_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("x")
    (tmp_path / "000007.jsonl").write_bytes(b'{"did":"nope"}\n[1]\n\xff\xfe\n{"did":"turn"}\n')
    assert Store(tmp_path).load(7).turns == []
    assert Store(tmp_path).numbers() == [7]


def test_export_and_code_blocks() -> None:
    chat = chat_with("q", "text\n```py\nx = 1\n```\n~~~\na\n```\n~~~\n````\nopen")
    chat.turns[-1].end = "stopped"
    text = as_markdown(chat)
    assert text.startswith("# q\n\n## You\n\nq\n\n## Answer (stopped)\n\ntext")
    assert code_blocks(chat.turns[-1].text) == ["x = 1", "a\n```", "open"]


def test_settings_come_back_and_a_broken_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "settings.json"
    save_settings(path, Settings(model="m", width=3, keys={"a": "b"}))
    assert load_settings(path) == (Settings(model="m", width=3, keys={"a": "b"}), "")
    path.write_text('{"width": "wide", "model": "m", "new": 1}')
    settings, said = load_settings(path)
    assert settings == Settings(model="m")
    assert "width" in said
    path.write_text("{")
    assert "defaults" in load_settings(path)[1]


def test_broken_settings_are_kept_aside_before_the_first_write(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for broken, name in (
        ("{", "settings.json.bad"),
        ("[]", "settings.json.bad2"),
        ('{"width": "wide"}', "settings.json.bad3"),
    ):
        path.write_text(broken)
        assert name in load_settings(path)[1]
        assert save_settings(path, Settings(model="m")) == tmp_path / name
        assert (tmp_path / name).read_text() == broken
        assert save_settings(path, Settings(model="m")) is None
        assert load_settings(path) == (Settings(model="m"), "")
    assert (tmp_path / "settings.json.bad").read_text() == "{"


@pytest.mark.parametrize(
    ("platform", "env", "ends"),
    [
        ("linux", {"HOME": "/h"}, "/h/.local/share/dfly-tui"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/dfly-tui"),
        ("darwin", {"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/dfly-tui"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "relative"}, "/h/.local/share/dfly-tui"),
    ],
)
def test_where_data_lies(platform: str, env: dict[str, str], ends: str) -> None:
    from dfly_tui.state.places import data_dir

    assert str(data_dir(env, platform)) == ends
