"""A hub id in a Load: fetched, cancelled in the middle, gone on with; the old pair stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from dfly_core import jobs
from dfly_core.jobs import Program
from dfly_core.model import download
from dfly_core.model.locate import EMBEDDED, cached_folder
from dfly_core.records.commands import Generate, GenerateOptions, Load, Message
from dfly_core.records.errors import Missing, Refused
from dfly_core.records.events import Cancelled, Event, Generated, Loaded, Progress
from tests.convert.hub_standin import Hub, files_of, serving
from tests.convert.test_hub import set_endpoint
from tests.tiny import make_pair

TARGET = "someone/target"
ASK = Generate((Message("user", "Hello"),), GenerateOptions(max_tokens=3))


def never() -> bool:
    return False


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The embedded target as a repository, with files that a chat does not need."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    # What ends early here ends because it was cancelled, not because the server was slow.
    monkeypatch.setattr(download, "TIMEOUT", 600.0)
    monkeypatch.setattr(jobs, "load_pair", lambda _: make_pair())
    shutil.copytree(EMBEDDED / "target", tmp_path / "files")
    files = files_of(tmp_path / "files") | {"consolidated.bin": b"x", "README.md": b"# a card"}
    with serving(Hub(TARGET, files)) as served:
        set_endpoint(monkeypatch, served.url)
        yield served


def load(program: Program, hub: Hub) -> list[Event]:
    """The events of loading from the hub, cancelled once an answer of its halts."""
    return list(program.run(Load(TARGET), hub.held.is_set))


def test_a_model_comes_from_the_hub_with_progress_in_bytes_and_only_once(hub: Hub) -> None:
    program = Program()
    *events, end = load(program, hub)
    assert isinstance(end, Loaded)
    told = [e for e in events if isinstance(e, Progress) and e.stage == "download"]
    assert told[-1].done == told[-1].total > 4_000_000
    assert told[-1].unit == "bytes"
    fetched = set(hub.fetched())
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= fetched
    assert not {"consolidated.bin", "README.md"} & fetched
    folder = cached_folder(TARGET)
    assert folder is not None
    for path in folder.iterdir():
        assert path.read_bytes() == hub.files[path.name]
    hub.requests.clear()
    assert isinstance(load(Program(), hub)[-1], Loaded)
    assert hub.requests == []


def test_a_download_that_hangs_is_cancelled_and_leaves_the_pair_and_a_part_to_go_on_with(
    hub: Hub, tmp_path: Path
) -> None:
    program, hub.hold = Program(), 1_000_000
    assert isinstance(list(program.run(Load(), never))[-1], Loaded)
    assert load(program, hub)[-1] == Cancelled()
    assert not hub.go.is_set()  # the server still holds the rest back
    assert isinstance(list(program.run(ASK, never))[-1], Generated)
    assert cached_folder(TARGET) is None
    (part,) = (tmp_path / "cache").rglob("*.dfly-part")
    have = part.stat().st_size
    assert 0 < have <= hub.hold

    hub.hold = 0  # not one byte more comes: nothing but the cancel can end it
    hub.held.clear()
    assert load(program, hub)[-1] == Cancelled()
    assert not hub.go.is_set()
    assert part.stat().st_size == have

    hub.hold = None
    hub.held.clear()
    hub.requests.clear()
    assert isinstance(load(program, hub)[-1], Loaded)
    assert [r.range for r in hub.requests if "/content/" in r.path] == [f"bytes={have}-"]
    assert not list((tmp_path / "cache").rglob("*.dfly-part"))


def test_a_hub_that_does_not_answer_at_all_is_left_at_once(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(*_: object) -> None:
        hub.held.set()
        hub.go.wait()

    monkeypatch.setattr(download, "_list", hang)
    assert load(Program(), hub)[-1] == Cancelled()
    assert not hub.go.is_set()


def test_what_the_hub_refuses_leaves_the_pair(hub: Hub) -> None:
    program = Program()
    list(program.run(Load(), never))
    with pytest.raises(Missing, match="no model someone/else on the hub"):
        list(program.run(Load("someone/else"), never))
    assert isinstance(list(program.run(ASK, never))[-1], Generated)


def test_that_two_do_not_fit_is_told_before_any_weights_come(hub: Hub, tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED / "drafter", tmp_path / "drafter")
    path = tmp_path / "drafter" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | {"target_num_hidden_layers": 7}), encoding="utf-8")
    with pytest.raises(Refused, match=f"target with 7 layers, {TARGET} has 5"):
        list(Program().run(Load(TARGET, str(tmp_path / "drafter")), never))
    assert set(hub.fetched()) == {"config.json"}
