"""Where a model lies: a folder, the embedded pair, or a hub repository (fetched or cached)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from dfly_core.records.errors import DflyError, Missing, Refused, Unavailable
from dfly_core.records.events import Progress
from dfly_core.records.files import contents

EMBEDDED = Path(__file__).resolve().parent.parent / "embedded"
REVISION = "main"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_NAME_ONE = "name a model folder or a hub id such as owner/model"
FILES = ["*.json", "model*.safetensors", "*.jinja", "*.txt", "tokenizer.model", "License*"]

# Of the HTTP client, whose package has two names.
_UNREACHED = ("ConnectError", "ConnectTimeout")


def locate(name: str) -> Path:
    """The folder of a model named by path or hub id; downloads what is not cached.

    Raises Missing, Refused or Unavailable with one remedy.
    """
    events = fetched(name, lambda: False)
    while True:
        try:
            next(events)
        except StopIteration as end:
            folder: Path = end.value
            return folder


def fetched(
    name: str, cancelled: Callable[[], bool], wanted: Sequence[str] = FILES
) -> Generator[Progress, None, Path]:
    """As `locate`; yields the progress of a download, and raises Stopped soon after a cancel.

    Of a repository that is not cached as a whole, only files named by `wanted` are fetched.
    """
    folder = folder_here(name)
    return folder if folder is not None else (yield from _from_hub(name, cancelled, wanted))


def folder_here(name: str) -> Path | None:
    """The folder of that name; None if there is none and it may be a hub id, else raises."""
    try:
        folder = Path(name).expanduser()
        if folder.is_dir():
            return folder
        if folder.is_file():
            raise Refused(f"{name} is a file where a model folder is needed", "name its folder")
    except (OSError, RuntimeError, ValueError) as error:  # not allowed, too long, no such user
        raise Missing(f"{name} can't be read ({error})", _NAME_ONE) from error
    if name.startswith(("/", "./", "../", "~")) or not HUB_ID.fullmatch(name):
        raise Missing(f"no folder {name}", _NAME_ONE)
    return None


def cached_folder(name: str, revision: str | None = None) -> Path | None:
    """The folder of a hub repository that is in the local cache with its weights; no network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        cached = Path(
            snapshot_download(name, revision=revision, allow_patterns=FILES, local_files_only=True)
        )
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        return None
    return cached if _complete(cached) else None


def _complete(folder: Path) -> bool:
    """Whether no weights are missing, as they are after a download that was interrupted."""
    there = {path.name for path in folder.glob("model*.safetensors")}
    try:
        index = json.loads(contents(folder / "model.safetensors.index.json"))
        return bool(there) and there.issuperset(index["weight_map"].values())
    except FileNotFoundError:
        return bool(there)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _from_hub(
    name: str, cancelled: Callable[[], bool], wanted: Sequence[str]
) -> Generator[Progress, None, Path]:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import filter_repo_objects, validate_repo_id

    from dfly_core.model.download import FAULTS, get_files, list_files, snapshot_folder

    cached = cached_folder(name)
    if cached is not None:
        return cached
    try:
        validate_repo_id(name)
        commit, files = list_files(name, REVISION, cancelled)
    except (*FAULTS, HFValidationError) as error:
        raise hub_fault(name, REVISION, error) from error
    chosen = [files[file] for file in filter_repo_objects(files, allow_patterns=list(wanted))]
    yield from get_files(chosen, name, commit, REVISION, cancelled)
    return snapshot_folder(name, commit)


def hub_fault(name: str, revision: str | None, error: Exception) -> DflyError:
    """One line and one remedy for whatever the hub client raised."""
    from huggingface_hub import constants, errors

    if isinstance(error, errors.HFValidationError):
        return Missing(f"{name} is no hub id", _NAME_ONE)
    if isinstance(error, errors.GatedRepoError):
        return Refused(
            f"{name} is gated", "accept its terms on the hub and log in with `hf auth login`"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return Missing(f"{name} has no revision {revision}", "check the revision")
    if isinstance(error, errors.RepositoryNotFoundError):
        return Missing(
            f"no model {name} on the hub, or it is private",
            "check the name; for a private one log in with `hf auth login`",
        )
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        if status == 401:
            return Refused(
                f"the hub does not take your token ({name})", "run `hf auth login` again"
            )
        return Unavailable(f"the hub answers {status} for {name}", "try again later")
    offline = isinstance(error, (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled))
    if offline or type(error).__name__ in _UNREACHED:
        return Unavailable(
            f"{name} is not in the local cache, and at {constants.ENDPOINT} "
            "the hub can't be reached",
            "connect to the network, or name a folder that holds the model",
        )
    said = str(error).partition("\n")[0]
    return Unavailable(
        f"{name} could not be fetched from {constants.ENDPOINT} ({type(error).__name__}: {said})",
        "check the network, and HF_ENDPOINT if you set it",
    )
