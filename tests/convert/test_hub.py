"""Downloads against a stand-in of the hub: whole, broken, refused, resumed, offline."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from dfly_core.convert.check import check
from dfly_core.convert.convert import convert
from dfly_core.engine.predict import KnownTarget
from dfly_core.model import download
from dfly_core.records.checked import Checked, check_lines
from dfly_core.records.commands import Convert
from dfly_core.records.errors import Busy, DflyError, Missing, Refused, Unavailable
from dfly_core.records.events import Cancelled, Converted, Event, Progress
from tests.convert import hub_standin
from tests.convert.hub_standin import COMMIT, Hub, files_of, serving
from tests.convert.small import SAMPLES, never, report, snapshot

REPOSITORY = "someone/dfly"
UNNEEDED = {
    "README.md": b"# a card",
    "training_state.pt": b"optimizer",
    "figures/curve.png": b"png",
    "optimizer.bin": b"more",
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The serving-bin sample as a repository, with files nobody needs beside it."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0.0)
    with serving(Hub(REPOSITORY, files_of(SAMPLES / "serving-bin") | UNNEEDED)) as served:
        set_endpoint(monkeypatch, served.url)
        yield served


def set_endpoint(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """What HF_ENDPOINT sets when the library is imported."""
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def from_hub(
    tmp_path: Path,
    source: str = REPOSITORY,
    revision: str | None = None,
    cancelled: Callable[[], bool] = never,
) -> list[Event]:
    """The events of a conversion from the hub."""
    return list(convert(Convert(str(tmp_path / "out"), source, revision), cancelled))


def refusal(tmp_path: Path, **how: Any) -> DflyError:
    """The error of one that fails, with nothing left behind."""
    with pytest.raises(DflyError) as caught:
        from_hub(tmp_path, **how)
    assert not (tmp_path / "out").exists()
    assert caught.value.remedy
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_repository_converts_as_its_folder_does(hub: Hub, tmp_path: Path) -> None:
    closing = from_hub(tmp_path)[-1]
    assert isinstance(closing, Converted)
    report(SAMPLES / "serving-bin", tmp_path / "local")
    ours, theirs = snapshot(tmp_path / "out"), snapshot(tmp_path / "local")
    card = ours.pop("README.md").decode()
    theirs.pop("README.md")
    assert ours == theirs
    assert closing.report["repository"] == REPOSITORY
    assert closing.report["revision"] == COMMIT
    (weights,) = closing.report["source_files"]
    assert len(weights["sha256"]) == 64
    assert all(text in card for text in (REPOSITORY, COMMIT, weights["sha256"]))


def test_only_the_needed_files_are_fetched_and_the_weights_last(hub: Hub, tmp_path: Path) -> None:
    from_hub(tmp_path)
    fetched = dict.fromkeys(hub.fetched())
    assert list(fetched) == [
        "License_AngelSlim_model_and_dataset.txt", "config.json", "pytorch_model.bin"
    ]  # fmt: skip


def test_a_wrong_config_is_refused_before_any_weights_come(hub: Hub, tmp_path: Path) -> None:
    hub.files["config.json"] = (SAMPLES / "bad-config-80-layers" / "config.json").read_bytes()
    assert "80 target layers" in refusal(tmp_path).what
    assert "pytorch_model.bin" not in hub.fetched()


def test_shards_are_chosen_by_their_index(hub: Hub, tmp_path: Path) -> None:
    del hub.files["pytorch_model.bin"]
    hub.files |= files_of(SAMPLES / "sharded-bin")
    closing = from_hub(tmp_path)[-1]
    assert isinstance(closing, Converted)
    assert closing.report["layout"] == "sharded checkpoint"
    assert len(closing.report["source_files"]) == 2


def test_a_shard_that_is_not_there_is_named(hub: Hub, tmp_path: Path) -> None:
    hub.files |= files_of(SAMPLES / "sharded-bin")
    del hub.files["pytorch_model-00002-of-00002.bin"]
    error = refusal(tmp_path)
    assert isinstance(error, Missing)
    assert "pytorch_model-00002-of-00002.bin" in error.what


def test_safetensors_are_preferred_to_a_pickle(hub: Hub, tmp_path: Path) -> None:
    hub.files["model.safetensors"] = (
        SAMPLES / "safetensors-export" / "model.safetensors"
    ).read_bytes()
    from_hub(tmp_path)
    assert "pytorch_model.bin" not in hub.fetched()


def test_progress_counts_bytes_up_to_the_total(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.piece = 1000
    monkeypatch.setattr(download, "EVENT_SECONDS", -1.0)
    size = len(hub.files["pytorch_model.bin"])
    events = [
        event
        for event in from_hub(tmp_path)
        if isinstance(event, Progress) and event.stage == "download" and event.total == size
    ]
    assert {event.unit for event in events} == {"bytes"}
    done = [event.done for event in events]
    assert done == sorted(done)
    assert len(set(done)) > 10
    assert done[-1] == size


def test_a_cut_connection_is_continued_where_it_broke(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = [10_000, 5_000]
    assert isinstance(from_hub(tmp_path)[-1], Converted)
    ranges = [r.range for r in hub.requests if r.path == "/content/pytorch_model.bin"]
    assert ranges == [None, "bytes=10000-", "bytes=15000-"]


def test_a_server_that_cannot_continue_is_asked_for_the_whole(hub: Hub, tmp_path: Path) -> None:
    hub.cuts, hub.whole_only = [10_000], True
    assert isinstance(from_hub(tmp_path)[-1], Converted)


def test_a_connection_that_never_holds_is_given_up_and_kept(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = [10_000] + [0] * 50
    error = refusal(tmp_path)
    assert isinstance(error, Unavailable)
    hub.cuts.clear()
    hub.requests.clear()
    assert isinstance(from_hub(tmp_path)[-1], Converted)
    (request,) = [r for r in hub.requests if r.path == "/content/pytorch_model.bin"]
    assert request.range == "bytes=10000-"


def test_a_cancelled_download_is_continued_by_the_next_run(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.piece = 1000
    calls = iter(range(1000))
    # Config and licence take two calls; then some chunks of the weights.
    events = from_hub(tmp_path, cancelled=lambda: next(calls) > 12)
    assert isinstance(events[-1], Cancelled)
    assert not (tmp_path / "out").exists()
    (part,) = (tmp_path / "cache").rglob("*.dfly-part")
    have = part.stat().st_size
    assert 0 < have < len(hub.files["pytorch_model.bin"])
    hub.requests.clear()
    assert isinstance(from_hub(tmp_path)[-1], Converted)
    (request,) = [r for r in hub.requests if r.path == "/content/pytorch_model.bin"]
    assert request.range == f"bytes={have}-"
    assert not list((tmp_path / "cache").rglob("*.dfly-part"))


def test_a_second_run_downloads_nothing_again(hub: Hub, tmp_path: Path) -> None:
    from_hub(tmp_path)
    hub.requests.clear()
    closing = list(convert(Convert(str(tmp_path / "again"), REPOSITORY), never))[-1]
    assert isinstance(closing, Converted)
    assert hub.fetched("GET") == []


def test_a_wrong_checksum_is_refused_and_its_bytes_thrown_away(hub: Hub, tmp_path: Path) -> None:
    hub.corrupt = True
    error = refusal(tmp_path)
    assert isinstance(error, Refused)
    assert "pytorch_model.bin has the checksum" in error.what
    assert not list((tmp_path / "cache").rglob("*.dfly-part"))
    hub.corrupt = False
    assert isinstance(from_hub(tmp_path)[-1], Converted)


def test_a_hub_without_hashes_is_no_hub(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_standin, "git_hash", lambda _: "../../../etc/evil")
    error = refusal(tmp_path)
    assert "states no hash for License_AngelSlim" in error.what
    assert not (tmp_path / "cache").exists()


def test_no_such_repository(hub: Hub, tmp_path: Path) -> None:
    error = refusal(tmp_path, source="someone/else")
    assert isinstance(error, Missing)
    assert "someone/else" in error.what


def test_no_such_revision(hub: Hub, tmp_path: Path) -> None:
    error = refusal(tmp_path, revision="v9")
    assert isinstance(error, Missing)
    assert f"{REPOSITORY} has no revision v9" in error.what


def test_a_gated_repository_says_what_to_do(hub: Hub, tmp_path: Path) -> None:
    hub.gated = True
    error = refusal(tmp_path)
    assert "gated" in error.what
    assert "accept its terms" in error.remedy


def test_a_token_goes_to_the_hub_and_to_nobody_else(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_right"
    assert "log in" in refusal(tmp_path).remedy
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    hub.requests.clear()
    assert isinstance(from_hub(tmp_path)[-1], Converted)
    content_host = hub.content_url.removeprefix("http://")
    tokens = {request.host: request.token for request in hub.requests}
    assert tokens.pop(content_host) is None
    assert set(tokens.values()) == {"hf_right"}


def test_a_wrong_token_is_named(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.token = "hf_right"
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    error = refusal(tmp_path)
    assert "token" in error.what
    assert "hf_wrong" not in str(error)


def test_without_network_the_cache_serves_and_else_it_is_said(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_hub(tmp_path, revision="5712926")
    set_endpoint(monkeypatch, "http://127.0.0.1:9")
    closing = list(convert(Convert(str(tmp_path / "again"), REPOSITORY, "5712926"), never))[-1]
    assert isinstance(closing, Converted)
    assert closing.report["revision"] == COMMIT
    assert len(closing.report["source_files"][0]["sha256"]) == 64
    assert snapshot(tmp_path / "again").keys() == snapshot(tmp_path / "out").keys()
    with pytest.raises(Unavailable) as caught:
        list(convert(Convert(str(tmp_path / "third"), "someone/else"), never))
    assert "http://127.0.0.1:9" in caught.value.what


def test_a_config_alone_in_the_cache_is_not_enough_offline(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_hub(tmp_path, revision="main")
    for path in (tmp_path / "cache").rglob("pytorch_model.bin"):
        path.unlink()
    set_endpoint(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(Missing):
        list(convert(Convert(str(tmp_path / "again"), REPOSITORY, "main"), never))


def test_a_full_disk_under_the_cache_is_told_as_that(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "_stream", full)
    error = refusal(tmp_path)
    assert isinstance(error, Unavailable)
    assert f"can't write {tmp_path / 'cache'} (No space left on device)" in error.what
    assert "HF_HOME" in error.remedy


def test_two_runs_do_not_write_one_part_file(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.piece = 1000
    monkeypatch.setattr(download, "EVENT_SECONDS", -1.0)
    first = convert(Convert(str(tmp_path / "one"), REPOSITORY), never)
    for event in first:
        if isinstance(event, Progress) and event.item == "pytorch_model.bin":
            break
    with pytest.raises(Busy):
        list(convert(Convert(str(tmp_path / "two"), REPOSITORY), never))
    assert isinstance(list(first)[-1], Converted)


def test_the_command_line_from_hub_to_folder_with_closed_streams(hub: Hub, tmp_path: Path) -> None:
    # As inside the app: no stderr to take a file number of, and HF_* settings from outside.
    program = (
        "import sys, io; sys.stderr = io.StringIO(); from dfly_core.cli.main import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "convert", "--output", str(tmp_path / "out"), "--json",
         "--draft", REPOSITORY, "--revision", "5712926"],
        env=os.environ | {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["revision"] == COMMIT
    assert (tmp_path / "out" / "model.safetensors").exists()


def checked(tmp_path: Path, source: str = REPOSITORY, **options: Any) -> Checked:
    """The page of a check."""
    command = Convert(str(tmp_path / "out"), source, check=True, **options)
    *_, found = check(command, never, None, lambda name, config: KnownTarget(name, config, False))
    assert isinstance(found, Checked)
    return found


def test_a_check_fetches_small_files_only_and_tells_sizes_layout_and_room(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    size = len(hub.files["pytorch_model.bin"])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 0, 10**9))
    found = checked(tmp_path)
    assert list(dict.fromkeys(hub.fetched())) == [
        "License_AngelSlim_model_and_dataset.txt", "config.json"
    ]  # fmt: skip
    assert found.refused == ()
    assert (found.layout, found.repository, found.revision) == (
        "serving folder", REPOSITORY, COMMIT
    )  # fmt: skip
    assert (found.source_bytes, found.download_bytes) == (size, size)
    assert found.unchecked[0] == "names, shapes and types of the tensors"
    assert "to download" in check_lines(found, None)[0]
    # The room for download and output together, where they share a disk.
    needed = size + found.sizes[0].output_bytes
    spare = 32 << 20
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 0, needed + spare - 1))
    (full,) = checked(tmp_path).refused
    assert "MB free where" in full
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 0, needed + spare))
    assert checked(tmp_path).refused == ()
    done = from_hub(tmp_path)[-1]
    assert isinstance(done, Converted)
    assert done.report["output_bytes"] == found.sizes[0].output_bytes
    shutil.rmtree(tmp_path / "out")
    hub.requests.clear()
    again = checked(tmp_path)  # it is all here now: looked at as a folder
    assert hub.fetched("GET") == []
    assert (again.download_bytes, again.source_bytes, again.sizes) == (0, size, found.sizes)
    assert again.notes == tuple(done.report["notes"])
    assert again.unchecked == found.unchecked[1:]


def test_a_check_names_what_a_repository_is_refused_for_without_its_weights(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = json.loads(hub.files["config.json"])
    bad = json.loads((SAMPLES / "bad-config-80-layers" / "config.json").read_bytes())
    for number, (config, why) in enumerate(
        (
            (bad, "80 target layers"),
            (good | {"architectures": ["DFlyDraftModel"]}, f"{REPOSITORY} is in the MLX format"),
            (good | {"block_size": 1}, f"{REPOSITORY}/config.json: block_size 1 leaves nothing"),
        )
    ):
        hub.files["config.json"] = json.dumps(config).encode()
        # A commit never changes, so each needs a cache of its own.
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / f"cache{number}"))
        (said,) = checked(tmp_path).refused
        assert why in said
    (said,) = checked(tmp_path, source="someone/else").refused
    assert said.startswith("no model someone/else on the hub")
    assert "pytorch_model.bin" not in hub.fetched()
    set_endpoint(monkeypatch, "http://127.0.0.1:9")
    (said,) = checked(tmp_path, source="someone/new").refused
    assert "at http://127.0.0.1:9 the hub can't be reached" in said
    assert "connect to the network" in said
    assert "\n" not in said
