"""Two windows on one chat: the second has a copy, and neither spoils the other's file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dfly_tui.state.conversation import Conversation, Turn
from dfly_tui.state.store import Store
from tests.app.app_driving import Opener
from tests.app.test_plain import piped

HOLD = (
    "import sys; from pathlib import Path; from dfly_tui.state.store import Store; "
    "store = Store(Path(sys.argv[1])); print(store.hold(1), flush=True); sys.stdin.read()"
)


def chats_with_one(folder: Path) -> Store:
    store = Store(folder)
    store.create(Conversation(turns=[Turn(1, "user", "first", "stop")]))
    store.release()
    return store


async def test_a_chat_that_another_window_has_opens_as_a_copy(open_app: Opener, home: Path) -> None:
    other = chats_with_one(home / "data/chats")
    assert other.hold(1)
    before = other.path(1).read_bytes()
    async with open_app("echo", resume=1) as d:
        assert "this chat is open in another window: this is a copy" in d.shown
        await d.ask("mine")
        await d.answered(3)
        assert d.app.talk.chat.number == 2
    assert other.path(1).read_bytes() == before
    assert [t.text for t in other.load(2).turns][:2] == ["first", "mine"]
    assert other.load(2).title == "first (copy)"


async def test_the_list_neither_deletes_nor_renames_what_another_window_has(
    open_app: Opener, home: Path
) -> None:
    other = chats_with_one(home / "data/chats")
    assert other.hold(1)
    before = other.path(1).read_bytes()
    async with open_app() as d:
        await d.pilot.press("ctrl+o", "f8", "y")
        await d.sees("Not deleted: it is open in another window")
        await d.pilot.press("f2", "!", "enter")
        await d.sees("Not renamed: it is open in another window")
    assert other.path(1).read_bytes() == before


async def test_a_window_gives_its_chat_back_when_it_opens_another_or_ends(
    open_app: Opener, home: Path
) -> None:
    other = chats_with_one(home / "data/chats")
    async with open_app(resume=1) as d:
        assert not other.hold(1)
        await d.pilot.press("ctrl+n")
        await d.pilot.pause()
        assert other.hold(1)
        other.release()
        d.app.open_chat(1)
        assert not d.app.chat_screen.notice.words
        assert not other.hold(1)
    assert other.hold(1)


def test_the_hold_outlives_a_rewrite_and_covers_a_chat_just_made(tmp_path: Path) -> None:
    mine, other, chat = Store(tmp_path), Store(tmp_path), Conversation()
    mine.create(chat)
    assert not other.hold(1)
    mine.rewrite(chat)
    assert not other.hold(1)
    with pytest.raises(OSError, match="another window"):
        other.delete(1)
    mine.delete(1)
    assert other.numbers() == []


def test_a_window_that_is_killed_leaves_no_hold(tmp_path: Path) -> None:
    store = chats_with_one(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as window:  # fmt: skip
        assert window.stdout is not None
        assert window.stdout.readline() == "True\n"
        assert not store.hold(1)
        os.kill(window.pid, signal.SIGKILL)
    assert store.hold(1)


def test_line_mode_goes_on_in_a_copy_too(tmp_path: Path) -> None:
    store = chats_with_one(tmp_path / ".local/share/dfly-tui/chats")
    assert store.hold(1)
    done = piped(tmp_path, "echo", "mine\n", "--resume", "1")
    assert done.returncode == 0
    assert "this chat is open in another window: this is a copy" in done.stderr
    assert [len(store.load(number).turns) for number in (1, 2)] == [1, 3]
