"""The destination is absent or whole: kills, full disks, leftovers, replacements, cancels."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from dfly_core.convert import follow, staging, stored, write
from dfly_core.convert.staging import exchange
from dfly_core.records.errors import Busy, Refused, Unavailable
from dfly_core.records.events import Cancelled, Converted, Progress
from dfly_core.records.wire import Envelope, decode, encode
from tests.convert.killing import HOWS, Case
from tests.convert.small import SAMPLES, make_folder, report, run, snapshot

SOURCE = SAMPLES / "serving-bin"


@pytest.fixture
def leftover(tmp_path: Path) -> Path:
    """What a killed run leaves beside the output."""
    folder = tmp_path / ".out.dfly-new-0badcafe"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"half")
    return folder


@pytest.mark.parametrize("how", HOWS)
def test_killed_around_the_rename_the_output_is_old_or_whole(how: str, tmp_path: Path) -> None:
    case = Case(SOURCE, tmp_path / "place", how)
    total = case.total()
    # The last lines sync, rename and clean up; python -m tests.tools.kill_convert does them all.
    states = [case.kill_at(line) for line in (total // 2, total - 24, total - 2)]
    assert states[-1] == "new"
    assert states[0] == ("absent" if how == "new" else "old")


def test_leftovers_of_a_dead_run_are_cleared(leftover: Path, tmp_path: Path) -> None:
    report(SOURCE, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_leftovers_of_other_outputs_are_left_alone(leftover: Path, tmp_path: Path) -> None:
    report(SOURCE, tmp_path / "other")
    assert leftover.exists()


def test_a_live_run_is_not_disturbed(leftover: Path, tmp_path: Path) -> None:
    lock = os.open(leftover, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with pytest.raises(Busy, match="another conversion is writing"):
            report(SOURCE, tmp_path / "out")
        assert leftover.exists()
    finally:
        os.close(lock)


def test_an_output_moved_aside_by_a_run_that_died_is_put_back(tmp_path: Path) -> None:
    report(SOURCE, tmp_path / "out")
    before = snapshot(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.dfly-old-0badcafe")
    with pytest.raises(Refused, match="exists"):
        report(SOURCE, tmp_path / "out")
    assert snapshot(tmp_path / "out") == before


def test_two_folders_change_places_in_one_step(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert snapshot(tmp_path) == {"a": b"", "a/b": b"", "b": b"", "b/a": b""}
    assert not exchange(tmp_path / "a", tmp_path / "missing")


@pytest.mark.parametrize("one_step", [True, False])
def test_force_replaces_a_converted_drafter(
    one_step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(SOURCE, tmp_path / "out", dtype="f32")
    if not one_step:
        monkeypatch.setattr(staging, "exchange", lambda *_: False)
    with pytest.raises(Refused, match="exists"):
        report(SOURCE, tmp_path / "out")
    report(SOURCE, tmp_path / "out", force=True)
    report(SOURCE, tmp_path / "fresh")
    assert snapshot(tmp_path / "out") == snapshot(tmp_path / "fresh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh", "out"]


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"thesis.tex": b""}, "thesis.tex"),
        ({"config.json": b"{}"}, "config.json"),
        ({"config.json": b'{"architectures":["Qwen3ForCausalLM"]}', "model.safetensors": b""}, ""),
        ({"config.json": b'{"architectures":["DFlyDraftModel"]}', "notes.txt": b""}, "notes.txt"),
    ],
)
def test_force_replaces_nothing_else(files: dict[str, bytes], named: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name, content in files.items():
        (tmp_path / "out" / name).write_bytes(content)
    before = snapshot(tmp_path)
    with pytest.raises(Refused, match="no converted drafter") as caught:
        report(SOURCE, tmp_path / "out", force=True)
    assert named in caught.value.what
    assert snapshot(tmp_path) == before


def test_an_empty_folder_and_missing_parents_are_fine_outputs(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    report(SOURCE, tmp_path / "empty")
    report(SOURCE, tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c" / "config.json").exists()


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    report(SOURCE, tmp_path / "real", dtype="f32")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    report(SOURCE, tmp_path / "link", force=True, dtype="bf16")
    assert (tmp_path / "link").is_symlink()
    assert b'"bfloat16"' in (tmp_path / "real" / "config.json").read_bytes()


@pytest.mark.parametrize(
    "output", ["in", "in/out", "in/deep/out", "."], ids=["equal", "inside", "deep", "around"]
)
@pytest.mark.parametrize("force", [False, True])
def test_output_and_source_may_not_share_a_folder(output: str, force: bool, tmp_path: Path) -> None:
    make_folder(tmp_path / "in")
    before = snapshot(tmp_path)
    with pytest.raises(Refused):
        report(tmp_path / "in", tmp_path / output, force=force)
    assert snapshot(tmp_path) == before


def test_a_linked_source_is_recognised_behind_its_link(tmp_path: Path) -> None:
    make_folder(tmp_path / "in")
    (tmp_path / "alias").symlink_to(tmp_path / "in")
    with pytest.raises(Refused, match="share a folder"):
        report(tmp_path / "alias", tmp_path / "in" / "out")


def test_the_output_of_a_file_may_lie_beside_it(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "prefixed-pt", tmp_path / "in")
    report(tmp_path / "in" / "draft.pt", tmp_path / "in" / "out")


def failing(after: int, error: OSError) -> object:
    """An os.pwrite that works `after` times."""
    calls = iter(range(after))
    real = os.pwrite

    def pwrite(*arguments: object) -> int:
        if next(calls, None) is None:
            raise error
        return real(*arguments)  # type: ignore[arg-type]

    return pwrite


@pytest.mark.parametrize("after", [0, 1, 20, 41])
@pytest.mark.parametrize("old", [False, True])
def test_a_full_disk_leaves_what_was_there(
    after: int, old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if old:
        report(SOURCE, tmp_path / "out", dtype="f32")
    before = snapshot(tmp_path)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(write.os, "pwrite", failing(after, full))  # type: ignore[attr-defined]
    with pytest.raises(Unavailable, match="No space left on device") as caught:
        report(SOURCE, tmp_path / "out", force=True)
    assert "free some space" in caught.value.remedy
    assert snapshot(tmp_path) == before


def test_a_disk_that_fails_when_synced_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing_sync(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(follow, "sync", failing_sync)
    with pytest.raises(Unavailable, match=r"can't write .*out \(Input/output error\)"):
        report(SOURCE, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_too_little_space_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 9))
    with pytest.raises(
        Unavailable, match=r"has 9 B free where 33.6 MB are needed, 33.6 MB of them to"
    ):
        report(SOURCE, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_read_error_in_the_source_is_one_clean_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path / "in")
    before = snapshot(tmp_path)
    calls = iter(range(20))
    real = stored.mmap.mmap  # type: ignore[attr-defined]

    def failing_map(*arguments: object, **named: object) -> object:
        if next(calls, None) is None:
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments, **named)

    monkeypatch.setattr(stored.mmap, "mmap", failing_map)  # type: ignore[attr-defined]
    with pytest.raises(Unavailable, match=r"can't read .*pytorch_model\.bin \(Input/output error"):
        report(tmp_path / "in", tmp_path / "out")
    assert snapshot(tmp_path) == before


def test_a_source_cut_short_while_it_is_read_is_one_clean_error(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    events = run(source, tmp_path / "out")
    for event in events:
        if isinstance(event, Progress) and event.stage == "convert":
            break
    os.truncate(source / "pytorch_model.bin", 9000)
    with pytest.raises(Refused, match="ends at byte 9000"):
        list(events)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_bytes_that_read_back_differently_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = write._put

    def spoil(file: BinaryIO, data: bytes | memoryview, position: int) -> None:
        # One bit of one tensor, as a bad disk would have it.
        real(file, bytes([data[0] ^ 1]) + bytes(data[1:]) if position > 20_000 else data, position)

    monkeypatch.setattr(write, "_put", spoil)
    with pytest.raises(Unavailable, match="reads back with other bytes"):
        report(SOURCE, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_write_protected_place_is_one_clean_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(Unavailable, match="Permission denied"):
        report(SOURCE, tmp_path / "out")


def cancel_after(count: int) -> Iterator[bool]:
    """False `count` times, then True."""
    yield from [False] * count
    while True:
        yield True


@pytest.mark.parametrize(("quantize", "stride"), [(None, 7), (4, 45)])
def test_cancelled_anywhere_nothing_is_left_and_the_next_run_works(
    quantize: int | None, stride: int, tmp_path: Path
) -> None:
    source = make_folder(tmp_path / "in")
    before = snapshot(tmp_path)
    count = 0
    while True:
        answers = cancel_after(count)
        events = list(
            run(source, tmp_path / "out", lambda a=answers: next(a), quantize=quantize)  # type: ignore[misc]
        )
        if isinstance(events[-1], Converted):
            break
        assert isinstance(events[-1], Cancelled)
        assert snapshot(tmp_path) == before
        count += stride
    assert count > 30  # between any two tensors


def test_a_consumer_that_walks_away_leaves_nothing(tmp_path: Path) -> None:
    events = run(SOURCE, tmp_path / "out")
    for _ in range(10):
        next(events)
    events.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


def test_every_event_goes_over_the_wire_and_comes_back(tmp_path: Path) -> None:
    for event in run(make_folder(tmp_path / "in"), tmp_path / "out", quantize=8):
        assert decode(encode(7, event)) == Envelope(7, event)


def test_events_count_bytes_to_the_total_of_each_stage(tmp_path: Path) -> None:
    events = list(run(SOURCE, tmp_path / "out"))
    assert isinstance(events[-1], Converted)
    size = events[-1].report["output_bytes"]
    for stage in ("convert", "verify"):
        done = [e.done for e in events if isinstance(e, Progress) and e.stage == stage]
        assert done == sorted(done)
        assert done[-1] == size
    assert len([e for e in events if isinstance(e, Progress) and e.stage == "convert"]) == 42
