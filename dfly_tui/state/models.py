"""Models on this machine, found by their config.json, and whether two of them fit."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dfly_core.records.commands import Load
from dfly_core.records.files import contents
from dfly_core.records.loaded import PairInfo
from dfly_core.records.memory import CONTEXT, Need, kv_bytes, usable
from dfly_core.records.sizes import Measure, measure_words, memory_words, number_words
from dfly_core.records.visible import one_line


@dataclass(frozen=True)
class Found:
    """A model folder. `name` is for people; sizes are bytes."""

    name: str
    path: Path
    where: str
    kind: Literal["target", "drafter"]
    size: int
    config: dict[str, Any]


# The target that is downloaded where none is named, as far as a drafter must fit it.
QWEN3_8B = Found(
    "Qwen3-8B", Path(), "hub", "target", 0,
    {"hidden_size": 4096, "vocab_size": 151936, "num_hidden_layers": 36},
)  # fmt: skip


def model_roots(data: Path, env: Mapping[str, str] = os.environ) -> list[tuple[str, Path]]:
    """Where models lie, in words and as folders; some may not exist."""
    home = Path(env.get("HOME") or Path.home())
    cache = Path(env.get("XDG_CACHE_HOME") or home / ".cache")
    hub = env.get("HF_HUB_CACHE") or Path(env.get("HF_HOME") or cache / "huggingface") / "hub"
    return [
        # One by one: a source tree has more beside them, what the pair was made of.
        *(("embedded", folder / part) for folder in embedded() for part in ("target", "drafter")),
        ("converted here", data / "models"),
        ("hub cache", Path(hub)),
        ("LM Studio", home / ".lmstudio" / "models"),
        ("LM Studio", cache / "lm-studio" / "models"),
    ]


def embedded() -> list[Path]:
    """The folder of the embedded pair; found without importing what lies beside it."""
    spec = importlib.util.find_spec("dfly_core")
    places = (spec.submodule_search_locations or ()) if spec else ()
    return [Path(place) / "embedded" for place in places]


def find_models(roots: list[tuple[str, Path]]) -> list[Found]:
    """All model folders under the roots, a few levels deep; unreadable ones are left out."""
    found: list[Found] = []
    for where, root in roots:
        for folder in _folders(root, 4):
            model = read_model(folder, where)
            if model is not None:
                found.append(model)
    return found


def read_model(folder: Path, where: str = "folder") -> Found | None:
    """The model in a folder, or None."""
    try:
        config = json.loads(contents(folder / "config.json"))
        weights = [p for p in folder.iterdir() if p.suffix in (".safetensors", ".bin", ".pt")]
        size = sum(p.stat().st_size for p in weights)
    except (OSError, ValueError):
        return None
    if not isinstance(config, dict) or not weights or not config.get("hidden_size"):
        return None
    drafter = bool(_layer_ids(config)) or "DFly" in str(config.get("architectures"))
    return Found(_name(folder), folder, where, "drafter" if drafter else "target", size, config)


def typed_fault(name: str, kind: str) -> str:
    """Why a typed name is no model of that kind; empty where it may be, as a hub id may."""
    try:
        path = Path(name).expanduser()
        if path.is_dir():
            model = read_model(path)
            if model is None:
                return f"there is no model in {name}: name the folder of a config.json"
            return "" if model.kind == kind else f"{name} is a {model.kind}, not a {kind}"
    except (OSError, RuntimeError, ValueError):  # not allowed, no such user, too long
        return f"{name} can't be read: name another folder"
    hub_id = name.count("/") == 1 and not name.startswith(("/", "./", "../", "~"))
    return "" if hub_id else f"there is no folder {name}: name one, or a hub id (owner/name)"


def misfit(target: Found, drafter: Found) -> str:
    """Why the two do not go together, naming both values; empty when they do."""
    ours, theirs = drafter.config, target.config
    pairs: tuple[tuple[Measure, object, str], ...] = (
        ("hidden size", ours.get("target_hidden_size", ours.get("hidden_size")), "hidden_size"),
        ("vocabulary", ours.get("vocab_size"), "vocab_size"),
        ("layers", ours.get("target_num_hidden_layers"), "num_hidden_layers"),
    )
    for measure, wanted, name in pairs:
        has = theirs.get(name)
        if wanted is not None and has is not None and wanted != has:
            words = (
                f"made for {measure_words(measure, wanted)}, this target has {number_words(has)}"
            )
            return one_line(words)
    layers, taps = theirs.get("num_hidden_layers"), _layer_ids(ours)
    if isinstance(layers, int) and taps and max(taps) >= layers:
        return f"reads layer {max(taps)}, this target has {layers}"
    return ""


def pairs(models: list[Found]) -> list[tuple[Found, Found]]:
    """Every target with every drafter that fits it, the embedded pair left out."""
    targets = [m for m in models if m.kind == "target" and m.where != "embedded"]
    drafters = [m for m in models if m.kind == "drafter" and m.where != "embedded"]
    return [(t, d) for t in targets for d in drafters if not misfit(t, d)]


def load_words(load: Load) -> str:
    """A pair to load in a few words."""
    if load.model is None and load.draft is None:
        return "embedded pair"
    model = "default target" if load.model is None else short_name(load.model)
    return f"{model} + {short_name(load.draft)}" if load.draft else f"{model}, alone"


def made_for_words(drafter: Found) -> str:
    """The target that a drafter asks for, in a few words."""
    ours = drafter.config
    hidden = ours.get("target_hidden_size", ours.get("hidden_size"))
    layers, vocabulary = ours.get("target_num_hidden_layers", "?"), ours.get("vocab_size")
    return f"{layers} layers, hidden size {hidden}, vocabulary {vocabulary}"


def too_large(target: Found, memory: int | None) -> str:
    """Why a target will not run here, even alone; empty when it will or nobody knows."""
    try:
        need = Need(target.size, kv_bytes(target.config))
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        need = Need(target.size, 0)
    if memory is None or need.at(CONTEXT) <= usable(memory):
        return ""
    return f"needs {need.words}, even alone; this machine has {memory_words(memory)}"


def on_mac() -> bool:
    """Whether MLX has Apple's GPU here; elsewhere its usual backend is the CPU."""
    return sys.platform == "darwin"


def memory_size() -> int | None:
    """Bytes of memory in this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _layer_ids(config: dict[str, Any]) -> list[int]:
    inner = config.get("dflash_config")
    places = [config, inner if isinstance(inner, dict) else {}]
    for place in places:
        ids = place.get("target_layer_ids")
        if isinstance(ids, list) and all(isinstance(i, int) for i in ids):
            return ids
    return []


def _folders(root: Path, depth: int) -> Iterator[Path]:
    if (root / "config.json").is_file():
        yield root
        return
    if depth == 0:
        return
    with contextlib.suppress(OSError):
        for child in sorted(root.iterdir()):
            if child.is_dir() and not child.name.startswith("."):
                yield from _folders(child, depth - 1)


def short_name(name: str) -> str:
    """A path or hub id in a few words."""
    path = Path(name)
    return f"embedded {path.name}" if path.parent.name == "embedded" else path.name


def pair_words(pair: PairInfo) -> str:
    """A loaded pair in a few words."""
    if pair.embedded:
        return "embedded pair" if pair.draft else "embedded target alone"
    name = short_name(pair.model)
    return f"{name} + {short_name(pair.draft)}" if pair.draft else f"{name}, alone"


def _name(folder: Path) -> str:
    """`org/name` for a hub cache snapshot, else the last two parts of the path."""
    for part in reversed(folder.parts):
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    if folder.parent.name == "embedded":
        return short_name(str(folder))
    return folder.name if len(folder.parts) < 2 else f"{folder.parent.name}/{folder.name}"
