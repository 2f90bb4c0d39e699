"""What can be told about a conversion before it starts: sizes, disk, memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfly_tui.state.progress import amount

OFFICIAL = "AngelSlim/Qwen3-8B-DFly-Block8"
OFFICIAL_BYTES = 2_264_000_000  # 1.132 B parameters in 16 bit
OFFICIAL_TARGET = "mlx-community/Qwen3-8B-4bit"
TARGET_BYTES = 4_600_000_000
# Bytes a 16-bit byte becomes, group 64 with its scale and bias in 16 bit.
SHARES: dict[int | None, float] = {None: 1.0, 8: 0.53, 4: 0.28}

# What a draft of the official drafter costs, in steps of Qwen3-8B in 4 bit: bytes read.
DRAFT_COSTS: dict[int | None, float] = {None: 0.84, 8: 0.48, 4: 0.29}


@dataclass(frozen=True)
class Check:
    """Lines for the check page; `refused` is the first reason not to start, or empty."""

    lines: tuple[str, ...]
    size: int | None
    refused: str = ""


def check(source: str | None, output: Path, bits: int | None) -> Check:
    """Look at a source without reading weights; the converter's own gates come after."""
    if source is None:
        return _with_disk(
            [f"{OFFICIAL}, revision 5712926: {amount(OFFICIAL_BYTES, 'bytes')} to download"],
            OFFICIAL_BYTES,
            OFFICIAL_BYTES,
            output,
            bits,
        )
    path = Path(source).expanduser()
    if not path.exists():
        if source.startswith(("/", ".", "~")) or source.count("/") != 1:
            return Check(
                (), None, f"There is nothing at {source}: name a folder, a file or a hub id"
            )
        return _with_disk(
            [f"Hub id {source}: its size is known once it is asked"], None, 0, output, bits
        )
    files = [path] if path.is_file() else sorted(path.iterdir())
    weights = [f for f in files if f.suffix in (".bin", ".safetensors", ".pt", ".pth")]
    if not weights:
        return Check((), None, f"No weights in {source}: choose the folder that holds them")
    size = sum(f.stat().st_size for f in weights)
    lines = [f"{len(weights)} weight file{'s' * (len(weights) > 1)}, {amount(size, 'bytes')}"]
    lines += _config_lines(path if path.is_dir() else path.parent)
    return _with_disk(lines, size, 0, output, bits)


def _config_lines(folder: Path) -> list[str]:
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        made_for = (
            f"{config['target_num_hidden_layers']} layers"
            if ("target_num_hidden_layers" in config)
            else "a target it does not name"
        )
        return [
            f"{config.get('num_hidden_layers')} draft layers, width {config.get('hidden_size')}, "
            f"vocabulary {config.get('vocab_size')}, made for {made_for}"
        ]
    except (OSError, ValueError, TypeError):
        return ["No config.json that can be read: it will be refused without one"]


def _with_disk(
    lines: list[str], size: int | None, download: int, output: Path, bits: int | None
) -> Check:
    made = None if size is None else round(size * SHARES[bits])
    if made is not None:
        lines.append(f"Result: about {amount(made, 'bytes')}")
    there = output.expanduser()
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        free = shutil.disk_usage(there).free
    except OSError:
        return Check(tuple(lines), made)
    lines.append(f"Free disk at {there}: {amount(free, 'bytes')}")
    need = (made or 0) + download
    refused = ""
    if need > free:
        refused = f"Needs {amount(need, 'bytes')} of disk, {amount(free, 'bytes')} are free"
    return Check(tuple(lines), made, refused)


def first_run_words(memory: int | None, mac: bool) -> str:
    """Whether Qwen3-8B would fit here and be of use, before any download."""
    need = TARGET_BYTES + OFFICIAL_BYTES * SHARES[4] + 1_200_000_000
    if not mac:
        return (
            f"Qwen3-8B in 4 bit needs about {amount(need, 'bytes')} of memory and a Mac: with "
            "MLX's CPU backend, which this system has by default, it takes seconds per token."
        )
    if memory is None:
        return f"Qwen3-8B in 4 bit needs about {amount(need, 'bytes')} of memory."
    fits = need * 1.25 <= memory
    return (
        f"Qwen3-8B in 4 bit needs about {amount(need, 'bytes')} of memory; "
        f"this machine has {memory / 1e9:.0f} GB: it {'fits' if fits else 'does not fit'}."
    )
