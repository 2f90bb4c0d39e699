"""Downloads the needed files of a hub repository into huggingface_hub's own cache.

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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from dfly_core.convert.rate import Meter
from dfly_core.convert.source import (
    INDICES,
    SUFFIXES,
    WHOLE,
    Source,
    check_kind,
    find_source,
    from_hub,
    is_licence,
    layout_of,
    read_index,
)
from dfly_core.model.config import read_config
from dfly_core.model.locate import hub_fault
from dfly_core.records.errors import Busy, Missing, Refused, Stopped, Unavailable
from dfly_core.records.events import Progress

# The base of everything the HTTP client raises; its package was renamed between versions.
_HTTP_ERROR: type[Exception] = HfHubHTTPError.__mro__[1]
_FAULTS = (_HTTP_ERROR, OSError, HFValidationError)

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


@dataclass(frozen=True)
class Survey:
    """A repository's checkpoint before its weights are fetched; its small files are there.

    `revision` is the one asked for, `commit` the one it means.
    """

    repository: str
    revision: str
    commit: str
    layout: str
    config: Mapping[str, Any]
    weights: tuple[RemoteFile, ...]

    @property
    def bytes(self) -> int:
        """Of all weights files."""
        return _sizes(self.weights)

    @property
    def missing_bytes(self) -> int:
        """What is still to be downloaded."""
        blobs = _cache_folder(self.repository) / "blobs"
        missing = [file for file in self.weights if not (blobs / file.blob).exists()]
        return _sizes(missing) - sum(_part_size(blobs, file) for file in missing)

    @property
    def cache(self) -> Path:
        """Where the download goes."""
        return Path(constants.HF_HUB_CACHE)

    def check_room(self) -> None:
        """Raise Unavailable where the download does not fit."""
        _check_space(self.cache, self.missing_bytes)


def fetch(
    repository: str, revision: str, cancelled: Callable[[], bool]
) -> Generator[Progress, None, Source]:
    """Have a checkpoint in the cache: config first and checked, then what its layout needs.

    Raises Missing, Refused, Busy or Unavailable, each with one remedy, and Stopped.
    """
    found = yield from survey(repository, revision, cancelled)
    if isinstance(found, Source):
        return found
    yield from _get(found.weights, repository, found.commit, revision, cancelled)
    return _found(_folder(repository, found.commit), repository)


def survey(
    repository: str, revision: str, cancelled: Callable[[], bool]
) -> Generator[Progress, None, Survey | Source]:
    """Look at a checkpoint: its small files are fetched and checked, its weights are not.

    Without a network it is the source in the cache, if there is one. Raises as `fetch`.
    """
    try:
        commit, files = _list(repository, revision)
    except _FAULTS as error:
        cached = _cached(repository, revision)
        if cached is None or _has_answered(error):
            raise hub_fault(repository, revision, error) from error
        return _found(cached, repository)
    small = [name for name in files if name == "config.json" or is_licence(name)]
    if "config.json" not in files:
        raise Missing(f"{repository} has no config.json", "name a DFly checkpoint")
    small += [name for name in INDICES if name in files][:1]
    yield from _get([files[name] for name in small], repository, commit, revision, cancelled)
    folder = _folder(repository, commit)
    config = read_config(folder)
    check_kind(config, f"{repository}/config.json")
    names = _weights(files, folder, repository)
    layout = layout_of(config, list(files), names[0])
    weights = tuple(files[name] for name in names)
    return Survey(repository, revision, commit, layout, config, weights)


def _found(folder: Path, repository: str) -> Source:
    """The source in a snapshot folder, which is named by its commit."""
    source = find_source(folder)
    # The cache names a large file's blob by its SHA-256.
    blobs = {path.name: path.resolve().name for path in source.files}
    hashes = {name: blob for name, blob in blobs.items() if _SHA256.fullmatch(blob)}
    return from_hub(source, repository, folder.name, hashes)


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


def _has_answered(error: Exception) -> bool:
    """Whether the hub itself said no, so that the cache is no substitute."""
    return isinstance(error, HfHubHTTPError) and error.response.status_code < 500


def _weights(files: Mapping[str, RemoteFile], folder: Path, repository: str) -> Sequence[str]:
    for name in INDICES:
        if name in files:
            shards = sorted(set(read_index(folder / name).values()))
            for shard in shards:
                if shard not in files:
                    raise Missing(
                        f"the shard {shard} that {name} names is not in {repository}",
                        "tell its publisher",
                    )
            return shards
    for name in WHOLE:
        if name in files:
            return [name]
    singles = [n for n in files if "/" not in n and n.endswith(SUFFIXES)]
    if len(singles) != 1:
        raise Missing(
            f"{repository} has {len(singles)} weights files, none named {' or '.join(WHOLE)}",
            "name a DFly checkpoint, or download one file and name that",
        )
    return singles


def _cache_folder(repository: str) -> Path:
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type="model")


def _folder(repository: str, commit: str) -> Path:
    return _cache_folder(repository) / "snapshots" / commit


def _cached(repository: str, revision: str) -> Path | None:
    found = try_to_load_from_cache(
        repository, "config.json", revision=revision, cache_dir=constants.HF_HUB_CACHE
    )
    return Path(found).parent if isinstance(found, str) else None


def _get(
    files: Sequence[RemoteFile],
    repository: str,
    commit: str,
    revision: str,
    cancelled: Callable[[], bool],
) -> Iterator[Progress]:
    blobs = _cache_folder(repository) / "blobs"
    missing = [file for file in files if not (blobs / file.blob).exists()]
    parts = {file.name: _part_size(blobs, file) for file in missing}
    total = sum(file.size for file in files)
    meter = Meter("download", total, done=sum(parts.values()) + total - _sizes(missing))
    _check_space(Path(constants.HF_HUB_CACHE), _sizes(missing) - sum(parts.values()))
    try:
        for file in missing:
            blobs.mkdir(parents=True, exist_ok=True)
            yield from _download(file, blobs, repository, commit, meter, cancelled)
        for file in files:
            # The blob is there: this only links it into the snapshot and notes the revision.
            hf_hub_download(
                repository,
                file.name,
                revision=revision,
                endpoint=constants.ENDPOINT,
                cache_dir=constants.HF_HUB_CACHE,
            )
    except _FAULTS as error:
        if isinstance(error, OSError) and error.errno in _DISK:
            raise Unavailable(
                f"can't write {constants.HF_HUB_CACHE} ({error.strerror})",
                "free some space, or set HF_HOME to another disk",
            ) from error
        raise hub_fault(repository, revision, error) from error
    if files:
        yield meter.advance(files[-1].name, 0)


def _sizes(files: Sequence[RemoteFile]) -> int:
    return sum(file.size for file in files)


def _part(blobs: Path, file: RemoteFile) -> Path:
    return blobs / f"{file.blob}.dfly-part"


def _part_size(blobs: Path, file: RemoteFile) -> int:
    with contextlib.suppress(OSError):
        return min(_part(blobs, file).stat().st_size, file.size)
    return 0


def _check_space(cache: Path, needed: int) -> None:
    place = cache
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise Unavailable(
            f"{cache} has {free / 1e9:.2f} GB free where the download needs {needed / 1e9:.2f}",
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
                for amount in _stream(url, out, file):
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
                time.sleep(PAUSE_SECONDS * 2**failures)
            if cancelled():
                raise Stopped
        out.flush()
        _check_hash(part, file)
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


def _check_hash(part: Path, file: RemoteFile) -> None:
    if file.sha256:
        found = hashlib.sha256()
    else:
        found = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)  # git's
    with part.open("rb") as content:
        while chunk := content.read(1 << 22):
            found.update(chunk)
    if found.hexdigest() != file.blob:
        part.unlink()
        raise Refused(
            f"{file.name} has the checksum {found.hexdigest()[:12]}... where the hub states "
            f"{file.blob[:12]}...",
            "run it again; if it stays so, tell the publisher",
        )
