"""Fetches files of a hub repository into huggingface_hub's own cache, and stops when told to.

The client, cache layout, tokens and HF_* settings are huggingface_hub's. The transfer itself is
here, because since 2.x the library starts over when a process was stopped: a part file under
the blob's hash survives a cut, a cancel or a kill, is continued by the next run, and becomes the
blob only when its hash is right.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from dfly_core.model.locate import hub_fault
from dfly_core.model.polling import polled, waited
from dfly_core.model.rate import Meter
from dfly_core.records.errors import Busy, Refused, Stopped, Unavailable
from dfly_core.records.events import Progress
from dfly_core.records.sizes import size_words

# The base of everything the HTTP client raises; its package was renamed between versions.
_HTTP_ERROR: type[Exception] = HfHubHTTPError.__mro__[1]
FAULTS = (_HTTP_ERROR, OSError, HFValidationError)

_SHA256, _BLOB = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{64}|[0-9a-f]{40}")
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO)

TIMEOUT = 10.0  # seconds without a byte
RETRIES = 5  # without a byte in between
PAUSE_SECONDS = 0.2
EVENT_SECONDS = 0.1


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository: its size, and the hash that names its blob (SHA-256 or git's)."""

    name: str
    size: int
    blob: str

    @property
    def sha256(self) -> str | None:
        """The SHA-256 the hub states, for files it keeps apart from git."""
        return self.blob if _SHA256.fullmatch(self.blob) else None


def list_files(
    repository: str, revision: str, cancelled: Callable[[], bool]
) -> tuple[str, dict[str, RemoteFile]]:
    """The commit a revision means, and its files by name; raises one of FAULTS, or Stopped."""
    return waited(partial(_list, repository, revision), cancelled)


def _list(repository: str, revision: str) -> tuple[str, dict[str, RemoteFile]]:
    info = HfApi(endpoint=constants.ENDPOINT).model_info(
        repository, revision=revision, files_metadata=True, timeout=TIMEOUT
    )
    files = {}
    for sibling in info.siblings or []:
        lfs: Any = sibling.lfs
        blob: str = (lfs["sha256"] if lfs else sibling.blob_id) or ""
        if not _BLOB.fullmatch(blob):
            raise Refused(
                f"{constants.ENDPOINT} states no hash for {sibling.rfilename}",
                "check HF_ENDPOINT: it must speak the hub's interface",
            )
        files[sibling.rfilename] = RemoteFile(sibling.rfilename, sibling.size or 0, blob)
    return info.sha or revision, files


def cache_folder(repository: str) -> Path:
    """Where the cache keeps a repository."""
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type="model")


def snapshot_folder(repository: str, commit: str) -> Path:
    """Where the cache keeps a repository's files as of a commit."""
    return cache_folder(repository) / "snapshots" / commit


def get_files(
    files: Sequence[RemoteFile],
    repository: str,
    commit: str,
    revision: str,
    cancelled: Callable[[], bool],
) -> Iterator[Progress]:
    """Have these files in the cache; yields progress in bytes of all of them.

    Raises Unavailable, Busy, Refused or Missing with one remedy; Stopped within a fraction of a
    second after a cancel, with a part file that the next run goes on with.
    """
    blobs = cache_folder(repository) / "blobs"
    missing = [file for file in files if not (blobs / file.blob).exists()]
    parts = {file.name: part_size(blobs, file) for file in missing}
    total = sum(file.size for file in files)
    meter = Meter("download", total, done=sum(parts.values()) + total - sizes(missing))
    check_space(Path(constants.HF_HUB_CACHE), sizes(missing) - sum(parts.values()))
    try:
        for file in missing:
            blobs.mkdir(parents=True, exist_ok=True)
            yield from _download(file, blobs, repository, commit, meter, cancelled)
        for file in files:
            # The blob is there: this only links it into the snapshot and notes the revision.
            link = partial(
                hf_hub_download,
                repository,
                file.name,
                revision=revision,
                endpoint=constants.ENDPOINT,
                cache_dir=constants.HF_HUB_CACHE,
            )
            waited(link, cancelled)
    except FAULTS as error:
        if isinstance(error, OSError) and error.errno in _DISK:
            raise Unavailable(
                f"can't write {constants.HF_HUB_CACHE} ({error.strerror})",
                "free some space, or set HF_HOME to another disk",
            ) from error
        raise hub_fault(repository, revision, error) from error
    if files:
        yield meter.advance(files[-1].name, 0)


def sizes(files: Sequence[RemoteFile]) -> int:
    """Bytes of all of them."""
    return sum(file.size for file in files)


def _part(blobs: Path, file: RemoteFile) -> Path:
    return blobs / f"{file.blob}.dfly-part"


def part_size(blobs: Path, file: RemoteFile) -> int:
    """Bytes that a download that was cut short has left."""
    with contextlib.suppress(OSError):
        return min(_part(blobs, file).stat().st_size, file.size)
    return 0


def check_space(cache: Path, needed: int) -> None:
    """Raise Unavailable where that many bytes do not fit."""
    place = cache
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise Unavailable(
            f"{cache} has {size_words(free)} free where the download needs {size_words(needed)}",
            "free some space, or set HF_HOME to another disk",
        )


def _download(
    file: RemoteFile,
    blobs: Path,
    repository: str,
    commit: str,
    meter: Meter,
    cancelled: Callable[[], bool],
) -> Iterator[Progress]:
    url = hf_hub_url(repository, file.name, revision=commit, endpoint=constants.ENDPOINT)
    part = _part(blobs, file)
    with part.open("ab") as out:
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"another run is downloading {file.name}", "wait for it to end") from error
        failures, said = 0, 0.0
        while out.tell() < file.size:
            before = out.tell()
            try:
                for amount in polled(_stream(url, out, file), cancelled):
                    if cancelled():
                        raise Stopped
                    event = meter.advance(file.name, amount)
                    if time.monotonic() - said > EVENT_SECONDS:
                        said = time.monotonic()
                        yield event
            except HfHubHTTPError:
                raise
            except _HTTP_ERROR:
                failures = 0 if out.tell() > before else failures + 1
                if failures >= RETRIES:
                    raise
                waited(partial(time.sleep, PAUSE_SECONDS * 2**failures), cancelled)
            if cancelled():
                raise Stopped
        out.flush()
        _check_hash(part, file, cancelled)
        part.replace(blobs / file.blob)


def _stream(url: str, out: BinaryIO, file: RemoteFile) -> Iterator[int]:
    """Append what is missing of a file; yields the bytes of each chunk, negative if undone."""
    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    have = out.tell()
    if have:
        headers["Range"] = f"bytes={have}-"
    with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT) as response:
        if response.status_code >= 400:
            response.read()
        hf_raise_for_status(response)
        if have and response.status_code != 206:
            out.truncate(0)  # the server does not continue: begin again
            yield -have
        for chunk in response.iter_bytes():  # in the pieces they come in, so that none is lost
            out.write(chunk)
            yield len(chunk)
    if out.tell() > file.size:
        out.truncate(0)
        raise Refused(f"{file.name} is longer than the hub states", "try again")


def _check_hash(part: Path, file: RemoteFile, cancelled: Callable[[], bool]) -> None:
    if file.sha256:
        found = hashlib.sha256()
    else:
        found = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)  # git's
    with part.open("rb") as content:
        while chunk := content.read(1 << 22):
            found.update(chunk)
            if cancelled():  # gigabytes take many seconds
                raise Stopped
    if found.hexdigest() != file.blob:
        part.unlink()
        raise Refused(
            f"{file.name} has the checksum {found.hexdigest()[:12]}... where the hub states "
            f"{file.blob[:12]}...",
            "run it again; if it stays so, tell the publisher",
        )
