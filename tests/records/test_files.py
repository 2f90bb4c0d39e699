"""What a user names may be anything: reading it ends, and says why."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from dfly_core.records.files import contents, drained, to_write, why_unread


def test_reading_a_folder_an_endless_device_or_a_long_file_ends_with_a_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / "long").write_bytes(b"x" * 2_000_001)
    for path, why in (
        (tmp_path, "Is a directory"),
        (Path("/dev/zero"), "more than 2.00 MB"),
        (tmp_path / "long", "more than 2.00 MB"),
        (tmp_path / "none", "No such file or directory"),
    ):
        with pytest.raises(OSError, match=why) as fault:
            contents(path, 2_000_000)
        assert why_unread(fault.value) == why
    assert len(contents(tmp_path / "long", 2_000_001)) == 2_000_001


def test_a_pipe_that_nobody_writes_is_empty_and_one_that_nobody_reads_is_a_fault(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert contents(tmp_path / "pipe") == b""
    with pytest.raises(OSError, match="a pipe that nobody reads"):
        to_write(tmp_path / "pipe")


def test_a_stream_is_read_to_its_end_and_no_further_than_allowed() -> None:
    assert drained(io.BytesIO(b"abc").read) == b"abc"
    with pytest.raises(OSError, match="more than 2 B"):
        drained(io.BytesIO(b"abc").read, 2)
    folder = os.open(".", os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        drained(lambda count: os.read(folder, count))
    os.close(folder)
    with pytest.raises(UnicodeDecodeError) as fault:
        b"ab\xff".decode("utf-8")
    assert why_unread(fault.value) == "not UTF-8 at byte 2"
