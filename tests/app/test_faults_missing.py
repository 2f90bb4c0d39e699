"""Fault 17: what is missing is said in one line with the one thing to do, and the app is there."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from dfly_core.records.commands import Load
from dfly_tui.app import DflyApp, Start
from dfly_tui.engine import Engine
from dfly_tui.state.conversation import Conversation
from dfly_tui.state.store import Store
from tests.app.app_driving import Driver, Opener, wait_until

# The real worker; a folder named `locked` can't be read, by root neither.
WORKER = """
import errno, sys

def deny(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and "/locked" in str(arguments[0]):
        raise PermissionError(errno.EACCES, "Permission denied", str(arguments[0]))

sys.addaudithook(deny)
from dfly_core.worker import main
main()
"""
CONFIG = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
          "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 64,
          "rms_norm_eps": 1e-6, "head_dim": 32, "max_position_embeddings": 100}  # fmt: skip


async def test_fault_17_what_cannot_be_loaded_is_said_and_another_pair_can_be_chosen(
    home: Path, engines: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens: no network
    monkeypatch.setenv("HF_HUB_CACHE", str(home / "hub"))
    for name in ("bare", "locked"):
        (home / name).mkdir()
        (home / name / "config.json").write_text(json.dumps(CONFIG))
    engine = Engine(home / "engine.log", (sys.executable, "-c", WORKER))
    engines.append(engine)
    app = DflyApp(engine, Start(home / "data", Load(str(home / "bare"))))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        d = Driver(app, pilot)
        cases = (
            (home / "bare", "no model*.safetensors in"),
            (home / "locked", "Permission denied"),
            (home / "nowhere", "no folder"),
            ("somebody/model", "the hub can't be reached: connect to the network"),
        )

        def says(words: str) -> bool:
            return words in app.chat_screen.notice.words

        for at, (model, said) in enumerate(cases):
            if at:
                app.load(Load(str(model)))
            await wait_until(partial(says, said), 90)
            words = app.chat_screen.notice.words
            assert str(model) in words
            assert words.count(": ") >= 1
            assert "F6 chooses another pair" in words
            assert not app.desk.busy
            await d.ask("hello")
            assert "choose one with F6" in app.chat_screen.notice.words
            assert not app.talk.chat.turns
        app.load(Load())
        await wait_until(lambda: d.ready, 90)
        assert not app.chat_screen.notice.words


async def test_fault_17_a_disk_that_fills_while_chatting_is_said_and_once_freed_all_is_kept(
    open_app: Opener, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, add = [0], Store.add

    def filling(store: Store, *arguments: object) -> None:
        writes[0] += 1
        if writes[0] > 3:
            raise OSError(28, os.strerror(28))
        add(store, *arguments)  # type: ignore[arg-type]

    def full(store: Store, chat: Conversation) -> None:
        raise OSError(28, os.strerror(28))

    async with open_app("echo") as d:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "add", filling)
            patch.setattr(Store, "rewrite", full)
            await d.ask("first")
            await d.answered()
            words = d.app.chat_screen.notice.words
            assert "No space left on device): free some space, or export it" in words
            await d.ask("second")
            assert "You said: second" in await d.answered(4)
        await d.ask("third")
        await d.answered(6)
        chat = d.app.talk.chat
    kept = Store(home / "data/chats").load(1)
    assert [(t.who, t.text, t.end) for t in kept.turns] == [
        (t.who, t.text, t.end) for t in chat.turns
    ]
    assert [t.runs for t in kept.turns] == [t.runs for t in chat.turns]
    assert sorted(p.name for p in (home / "data/chats").iterdir()) == ["000001.jsonl"]


async def test_fault_17_a_full_disk_refuses_export_and_settings_in_one_line(
    open_app: Opener, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, really = home / "full", Path.open

    def opened(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if self == full and mode == "x":
            really(self, "x").close()
            return really(Path("/dev/full"), "w", **options)
        return really(self, mode, *rest, **options)

    monkeypatch.setattr(Path, "open", opened)
    async with open_app("echo") as d:
        await d.ask("first")
        await d.answered()
        await d.ask("/export")
        d.app.screen.query_one(Input).value = str(full)
        await d.pilot.press("enter")
        await d.sees("No space left on device")
        assert not full.exists()
