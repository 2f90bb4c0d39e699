"""Brings what a conversion needs from a hub repository: config first and checked, then weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError

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
from dfly_core.model.download import (
    FAULTS,
    RemoteFile,
    cache_folder,
    check_space,
    get_files,
    list_files,
    part_size,
    sizes,
    snapshot_folder,
)
from dfly_core.model.locate import hub_fault
from dfly_core.records.errors import Missing
from dfly_core.records.events import Progress

_SHA256 = re.compile("[0-9a-f]{64}")


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
        return sizes(self.weights)

    @property
    def missing_bytes(self) -> int:
        """What is still to be downloaded."""
        blobs = cache_folder(self.repository) / "blobs"
        missing = [file for file in self.weights if not (blobs / file.blob).exists()]
        return sizes(missing) - sum(part_size(blobs, file) for file in missing)

    @property
    def cache(self) -> Path:
        """Where the download goes."""
        return Path(constants.HF_HUB_CACHE)

    def check_room(self) -> None:
        """Raise Unavailable where the download does not fit."""
        check_space(self.cache, self.missing_bytes)


def fetch(
    repository: str, revision: str, cancelled: Callable[[], bool]
) -> Generator[Progress, None, Source]:
    """Have a checkpoint in the cache: config first and checked, then what its layout needs.

    Raises Missing, Refused, Busy or Unavailable, each with one remedy, and Stopped.
    """
    found = yield from survey(repository, revision, cancelled)
    if isinstance(found, Source):
        return found
    yield from get_files(found.weights, repository, found.commit, revision, cancelled)
    return _found(snapshot_folder(repository, found.commit), repository)


def survey(
    repository: str, revision: str, cancelled: Callable[[], bool]
) -> Generator[Progress, None, Survey | Source]:
    """Look at a checkpoint: its small files are fetched and checked, its weights are not.

    Without a network it is the source in the cache, if there is one. Raises as `fetch`.
    """
    try:
        commit, files = list_files(repository, revision, cancelled)
    except FAULTS as error:
        cached = _cached(repository, revision)
        if cached is None or _has_answered(error):
            raise hub_fault(repository, revision, error) from error
        return _found(cached, repository)
    small = [name for name in files if name == "config.json" or is_licence(name)]
    if "config.json" not in files:
        raise Missing(f"{repository} has no config.json", "name a DFly checkpoint")
    small += [name for name in INDICES if name in files][:1]
    yield from get_files([files[name] for name in small], repository, commit, revision, cancelled)
    folder = snapshot_folder(repository, commit)
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


def _cached(repository: str, revision: str) -> Path | None:
    found = try_to_load_from_cache(
        repository, "config.json", revision=revision, cache_dir=constants.HF_HUB_CACHE
    )
    return Path(found).parent if isinstance(found, str) else None
