"""Where a model lies: a folder, the embedded pair, or a hub repository (fetched or cached)."""

from __future__ import annotations

import json
import re
from pathlib import Path

from dfly_core.records.errors import DflyError, Missing, Refused, Unavailable

EMBEDDED = Path(__file__).resolve().parent.parent / "embedded"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_NAME_ONE = "name a model folder or a hub id such as owner/model"
_FILES = ["*.json", "model*.safetensors", "*.jinja", "*.txt", "tokenizer.model", "License*"]


def locate(name: str, revision: str | None = None) -> Path:
    """The folder of a model named by path or hub id; downloads what is not cached.

    Raises Missing, Refused or Unavailable with one remedy.
    """
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
    return _from_hub(name, revision)


def cached_folder(name: str, revision: str | None = None) -> Path | None:
    """The folder of a hub repository that is in the local cache with its weights; no network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        cached = Path(
            snapshot_download(name, revision=revision, allow_patterns=_FILES, local_files_only=True)
        )
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        return None
    return cached if _complete(cached) else None


def _complete(folder: Path) -> bool:
    """Whether no weights are missing, as they are after a download that was interrupted."""
    there = {path.name for path in folder.glob("model*.safetensors")}
    try:
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        return bool(there) and there.issuperset(index["weight_map"].values())
    except FileNotFoundError:
        return bool(there)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _from_hub(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download

    cached = cached_folder(name, revision)
    if cached is not None:
        return cached
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=_FILES))
    except Exception as error:
        raise hub_fault(name, revision, error) from error


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
    if isinstance(error, errors.LocalEntryNotFoundError):
        return Unavailable(
            f"{name} is not in the local cache and the hub can't be reached",
            "connect to the network, or name a folder that holds the model",
        )
    said = str(error).partition("\n")[0]
    return Unavailable(
        f"{name} could not be fetched from {constants.ENDPOINT} ({type(error).__name__}: {said})",
        "check the network, and HF_ENDPOINT if you set it",
    )
