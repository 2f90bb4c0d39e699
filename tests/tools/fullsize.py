"""Memory and speed of a conversion at the release's true size.

    python -m tests.tools.fullsize [--folder DIR] [--runs 3] [--quantize 4]

Makes Qwen3-8B-DFly's shapes in bf16 with the embedding copy (3.5 GB, removed at the end), then
times `cp` of the file and `dfly-mlx convert` in turn, each whole command from outside, and takes
medians. Peak memory is the converting process's own high-water mark above what it held when the
interpreter had started, before anything of ours was imported.

Measure on an idle machine: the converter needs about 1.6 s of processor time on two threads
where cp needs 1.1, so with both cores busy it waits longer. With two cores to itself (raised
priority, AMD EPYC), nine
runs: cp 1.11 s, convert 1.51 s, ratio 1.37; 24 MB above the start, 292 MB quantising to 4 bits.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dfly_core.convert.names import RENAMED
from dfly_core.model.config import drafter_config, tensor_shapes
from tests.convert.torchlike import View, state_dict, write_zip

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3DFlyModel"],
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "head_dim": 128,
    "num_hidden_layers": 5,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 40960,
    "rope_theta": 1000000,
    "num_target_layers": 5,
    "target_hidden_size": 4096,
    "target_num_hidden_layers": 36,
    "target_layer_ids": [1, 9, 17, 25, 33],
    "mask_token_id": 151669,
    "block_size": 8,
    "enable_hidden_correction": True,
    "hidden_correction_intermediate_size": None,
}
CHILD = """
import json, resource, sys, time
unit = 1 if sys.platform == "darwin" else 1024
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
from dfly_core.cli.main import main
code = main(sys.argv[2:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
open(sys.argv[1], "w").write(json.dumps({"above": peak - start, "start": start}))
sys.exit(code)
"""


def make(folder: Path) -> Path:
    """Write the checkpoint folder; returns its weights file."""
    (folder / "config.json").write_text(json.dumps(CONFIG))
    shapes: dict[str, tuple[int, ...]] = {
        "embed_tokens.weight": (CONFIG["vocab_size"], CONFIG["hidden_size"])
    }
    shapes |= {_upstream(n): s for n, s in tensor_shapes(drafter_config(CONFIG)).items()}
    views, storages = {}, {}
    for key, (name, shape) in enumerate(shapes.items()):
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        views[name] = View(str(key), "BF16", math.prod(shape), shape, strides)
        storages[str(key)] = _weights(2 * math.prod(shape), key)
    path = folder / "pytorch_model.bin"
    write_zip(path, state_dict(views), storages)
    return path


def _upstream(name: str) -> str:
    for upstream, ours in RENAMED.items():
        if name.startswith(ours):
            return upstream + name.removeprefix(ours)
    return name


def _weights(nbytes: int, seed: int) -> Iterator[bytes]:
    """bf16 values between 2**-7 and 2**-5 with either sign, never NaN."""
    source = random.Random(seed)
    low = source.randbytes(1 << 20)
    high = bytes(0x3C | (byte & 0x80) for byte in source.randbytes(1 << 20))
    piece = bytes(byte for pair in zip(low, high, strict=True) for byte in pair)
    while nbytes > 0:
        yield piece[:nbytes]
        nbytes -= len(piece)


def convert(source: Path, output: Path, extra: list[str]) -> tuple[float, dict[str, int]]:
    """Seconds and memory of one whole command."""
    note = output.with_suffix(".json")
    command = [sys.executable, "-c", CHILD, str(note), "convert", "--draft", str(source)]
    start = time.perf_counter()
    subprocess.run([*command, "--output", str(output), *extra], check=True)
    seconds = time.perf_counter() - start
    return seconds, json.loads(note.read_text())


def copy(path: Path, target: Path) -> float:
    """Seconds of a plain cp."""
    start = time.perf_counter()
    subprocess.run(["cp", str(path), str(target)], check=True)
    seconds = time.perf_counter() - start
    target.unlink()
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quantize", type=int, choices=(4, 8))
    args = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="dfly-fullsize-", dir=args.folder))
    extra = ["--quantize", str(args.quantize)] if args.quantize else []
    try:
        source = work / "source"
        source.mkdir()
        path = make(source)
        print(f"made {path.stat().st_size / 1e9:.2f} GB")
        copy(path, work / "copy")  # both sides from a warm page cache
        copies, conversions, above = [], [], 0
        for run in range(args.runs):
            copies.append(copy(path, work / "copy"))
            seconds, memory = convert(source, work / f"out{run}", extra)
            shutil.rmtree(work / f"out{run}")
            conversions.append(seconds)
            above = max(above, memory["above"])
            print(
                f"run {run + 1}: cp {copies[-1]:.2f} s, convert {seconds:.2f} s, "
                f"peak {memory['above'] / 1e6:.0f} MB above {memory['start'] / 1e6:.0f} MB"
            )
        ratio = statistics.median(conversions) / statistics.median(copies)
        print(
            f"median cp {statistics.median(copies):.2f} s, convert "
            f"{statistics.median(conversions):.2f} s: ratio {ratio:.2f}; "
            f"peak {above / 1e6:.0f} MB above the start"
        )
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
