"""Finds out what kind of checkpoint a path is, and which of its files hold the weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dfly_core.convert.safefile import read_safetensors
from dfly_core.convert.stored import StoredTensor
from dfly_core.convert.torchfile import read_torch
from dfly_core.model.config import DEFAULT_DRAFT, DEFAULT_REVISION, read_config
from dfly_core.records.errors import Missing, Refused
from dfly_core.records.files import contents

MLX_ARCHITECTURE = "DFlyDraftModel"
UPSTREAM_ARCHITECTURE = "Qwen3DFlyModel"
OLDER_ARCHITECTURE = "DSparkDraftModel"  # with model_arch "dfly": the same tensors

SERVING, EXPORT, SHARDED = "serving folder", "safetensors export", "sharded checkpoint"
TRAINING, MLX = "training file", "MLX folder"

TORCH_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
SUFFIXES = (*TORCH_SUFFIXES, ".safetensors")
INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
WHOLE = ("model.safetensors", "pytorch_model.bin")
_MAX_INDEX = 16 << 20
MAX_NAME = 200  # characters of a tensor or shard; the longest real one has 52


@dataclass(frozen=True)
class Source:
    """A checkpoint: its config and the files with its weights; `given` is what was named.

    `index` says which file holds which tensor, for sharded ones. `repository`, `revision` and
    `hashes` (file name to SHA-256) are known for what came from the hub.
    """

    layout: str
    given: Path
    folder: Path
    files: tuple[Path, ...]
    config: Mapping[str, Any]
    licences: tuple[Path, ...]
    index: Mapping[str, str] | None = None
    repository: str | None = None
    revision: str | None = None
    hashes: Mapping[str, str] | None = None


def find_source(path: Path) -> Source:
    """Name the layout of a folder or file and the files in use; reads the config only.

    Raises Missing for what is not there and Refused for what is no DFly checkpoint.
    """
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise Refused(f"{path.name} is no weights file", f"name one of {', '.join(SUFFIXES)}")
        folder = path.parent
        names = [path.name]
        files: tuple[Path, ...] = (path,)
        index: Mapping[str, str] | None = None
    elif path.is_dir():
        folder = path
        names = [file.name for file in folder.iterdir()]
        files, index = _look(folder)
    else:
        raise Missing(f"no checkpoint at {path}", "name a folder, a file or a hub id")
    config = read_config(folder)
    check_kind(config, str(folder / "config.json"))
    layout = layout_of(config, names, files[0].name)
    return Source(layout, path, folder, files, config, _licences(folder), index)


def from_hub(source: Source, repository: str, revision: str, hashes: Mapping[str, str]) -> Source:
    """The same source, with where it was downloaded from."""
    return replace(source, repository=repository, revision=revision, hashes=hashes)


def read_tensors(source: Source) -> dict[str, StoredTensor]:
    """Name every tensor of every file and where it lies; headers only.

    Raises Refused for a damaged file, a tensor in two shards, or shards against their index.
    """
    tensors: dict[str, StoredTensor] = {}
    for path in source.files:
        read = read_safetensors if path.suffix == ".safetensors" else read_torch
        for name, tensor in read(path).items():
            if len(name) > MAX_NAME or not name.isprintable():
                raise Refused(
                    f"{path.name} holds a tensor with an impossible name: {name[:40]!r}",
                    "the file is damaged: download it again",
                )
            if name in tensors:
                raise Refused(
                    f"{name} is in {tensors[name].region.path.name} and in {path.name}",
                    "download the shards again",
                )
            if source.index is not None and source.index.get(name) != path.name:
                raise Refused(
                    f"{name} is in {path.name} where the index says "
                    f"{source.index.get(name, 'nothing')}",
                    "download the shards again",
                )
            tensors[name] = tensor
    for name in source.index or ():
        if name not in tensors:
            raise Refused(
                f"the index names {name}, which {(source.index or {})[name]} does not hold",
                "download the shards again",
            )
    return tensors


def check_kind(config: Mapping[str, Any], where: str) -> None:
    """Refuse configs of other drafters, and the one that was published by mistake."""
    architectures = config.get("architectures") or [UPSTREAM_ARCHITECTURE]
    arch = config.get("model_arch", "dfly")
    known = [UPSTREAM_ARCHITECTURE], [MLX_ARCHITECTURE], [OLDER_ARCHITECTURE]
    older_without_word = architectures == [OLDER_ARCHITECTURE] and "model_arch" not in config
    if architectures not in known or arch != "dfly" or older_without_word:
        said = f"architectures {architectures!r}"
        if "model_arch" in config:
            said += f", model_arch {arch!r}"
        raise Refused(f"{where} has {said}: not a DFly drafter", "name a DFly checkpoint")
    if config.get("target_num_hidden_layers") == 80 and config.get("vocab_size") == 120832:
        raise Refused(
            f"{where} describes another model than these weights (80 target layers, taps "
            f"{config.get('target_layer_ids')}, mask {config.get('mask_token_id')}, vocabulary "
            f"120832), as the latest revision of {DEFAULT_DRAFT} does",
            f"take the config.json of revision {DEFAULT_REVISION} (--revision {DEFAULT_REVISION})",
        )


def layout_of(config: Mapping[str, Any], names: Sequence[str], first: str) -> str:
    """The layout of a checkpoint with files of these names, whose weights begin in `first`."""
    if config.get("architectures") == [MLX_ARCHITECTURE]:
        return MLX
    if any(index in names for index in INDICES):
        return SHARDED
    if first not in WHOLE:
        return TRAINING
    return EXPORT if first.endswith(".safetensors") else SERVING


def _look(folder: Path) -> tuple[tuple[Path, ...], Mapping[str, str] | None]:
    for name in INDICES:
        if (folder / name).exists():
            index = read_index(folder / name)
            return _shards(folder, index, name), index
    for name in WHOLE:
        if (folder / name).exists():
            return (folder / name,), None
    _refuse_fsdp(folder)
    singles = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    if len(singles) > 1:
        raise Refused(
            f"{folder} holds {len(singles)} weights files "
            f"({', '.join(path.name for path in singles[:4])})",
            "name one of the files",
        )
    if not singles:
        raise Missing(
            f"no weights in {folder} ({', '.join(WHOLE)}, an index or one *.pt)",
            "name a checkpoint folder",
        )
    return (singles[0],), None


def _refuse_fsdp(folder: Path) -> None:
    for pattern in ("*.distcp", "*.metadata", "*_world_size_*_rank_*", "*_rank_*.pt"):
        found = next(iter(sorted(folder.glob(pattern))), None)
        if found is not None:
            raise Refused(
                f"{folder} holds FSDP shards ({found.name}): each is a part of every tensor",
                "consolidate them with torch.distributed.checkpoint's dcp_to_torch_save",
            )


def read_index(path: Path) -> Mapping[str, str]:
    """Which shard holds which tensor; raises Refused for no index or names outside its folder."""
    fault = Refused(f"{path.name} is no shard index", "download it again")
    try:
        if path.stat().st_size > _MAX_INDEX:
            raise fault
        content = json.loads(contents(path))
    except (OSError, ValueError, RecursionError) as error:
        raise fault from error
    index = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(index, dict) or not index:
        raise fault
    for shard in index.values():
        if not isinstance(shard, str) or len(shard) > MAX_NAME or not shard.isprintable():
            raise Refused(f"{path.name} names a shard that is no file name", "download it again")
        if Path(shard).name != shard or "\\" in shard:
            raise Refused(
                f"{path.name} names a shard outside its folder: {shard!r}",
                "take the checkpoint from its publisher",
            )
        if Path(shard).suffix not in SUFFIXES:
            raise Refused(
                f"{path.name} names {shard!r}, which is no weights file", "download it again"
            )
    return index


def _shards(folder: Path, index: Mapping[str, str], index_name: str) -> tuple[Path, ...]:
    shards = tuple(folder / shard for shard in sorted(set(index.values())))
    for shard in shards:
        if not shard.is_file():
            raise Missing(
                f"the shard {shard.name} that {index_name} names is missing", "download it again"
            )
    return shards


def _licences(folder: Path) -> tuple[Path, ...]:
    return tuple(
        sorted(path for path in folder.iterdir() if path.is_file() and is_licence(path.name))
    )


def is_licence(name: str) -> bool:
    """Whether a file in a checkpoint's folder states terms, and so goes with the weights."""
    return "/" not in name and name.lower().startswith(("license", "licence", "notice"))
