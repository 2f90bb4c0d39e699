"""A small drafter with group-64 sizes, its weights, and ways to lay it out as a checkpoint."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dfly_core.convert.cast import cast
from dfly_core.convert.convert import convert
from dfly_core.convert.names import RENAMED
from dfly_core.model.config import drafter_config, tensor_shapes
from dfly_core.records.commands import Convert
from dfly_core.records.events import Converted, Event
from tests.convert.torchlike import WIDTH, View, state_dict, text, write_legacy, write_zip

SAMPLES = Path(__file__).parents[1] / "data" / "checkpoints"
CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3DFlyModel"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "head_dim": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 512,
    "rope_theta": 1000000.0,
    "num_target_layers": 3,
    "target_hidden_size": 64,
    "target_num_hidden_layers": 8,
    "target_layer_ids": [1, 3, 6],
    "mask_token_id": 90,
    "block_size": 4,
    "enable_hidden_correction": True,
    "hidden_correction_intermediate_size": None,
}

Weights = dict[str, npt.NDArray[np.float32]]


def upstream(name: str) -> str:
    """The upstream name of an MLX name."""
    for theirs, ours in RENAMED.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def small_weights(config: dict[str, Any] = CONFIG, seed: int = 7) -> Weights:
    """Random weights in upstream names that bfloat16 and float16 hold exactly, with the copy."""
    rng = np.random.default_rng(seed)
    shapes = {upstream(n): s for n, s in tensor_shapes(drafter_config(config)).items()}
    shapes["embed_tokens.weight"] = (config["vocab_size"], config["hidden_size"])
    return {
        # Seven significant bits within six powers of two fit both 16-bit types.
        name: (rng.integers(-127, 128, shape) * 2.0 ** rng.integers(-12, -6, shape)).astype(
            np.float32
        )
        for name, shape in shapes.items()
    }


def raw(array: npt.NDArray[np.float32], dtype: str) -> bytes:
    """An array's bytes in a float type."""
    return cast(np.ascontiguousarray(array).view(np.uint32), "F32", dtype).tobytes()


def dense(key: str, shape: tuple[int, ...], dtype: str, **extra: Any) -> View:
    """A view that is its whole storage."""
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return View(key, dtype, math.prod(shape), shape, strides, **extra)


def write_bin(
    path: Path,
    weights: Weights,
    dtype: str = "BF16",
    legacy: bool = False,
    prefix: str = "",
    wrapper: str = "",
    parameter: bool = False,
) -> None:
    """A torch file in the zip or the legacy form."""
    views = {
        prefix + name: dense(str(i), array.shape, dtype, parameter=parameter)
        for i, (name, array) in enumerate(weights.items())
    }
    body = state_dict(views, legacy)
    if wrapper:
        body = b"}" + text(wrapper) + body + b"s"
    blobs = {str(i): raw(array, dtype) for i, array in enumerate(weights.values())}
    if legacy:
        write_legacy(path, body, {k: (len(b) // WIDTH[dtype], b) for k, b in blobs.items()})
    else:
        write_zip(path, body, {key: [blob] for key, blob in blobs.items()})


def write_safetensors(path: Path, weights: Weights, dtype: str = "BF16") -> None:
    """A safetensors file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    position = 0
    blobs = [raw(array, dtype) for array in weights.values()]
    for (name, array), blob in zip(weights.items(), blobs, strict=True):
        end = position + len(blob)
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [position, end]}
        position = end
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(blobs))


def make_folder(
    folder: Path, config: dict[str, Any] = CONFIG, weights: Weights | None = None, **how: Any
) -> Path:
    """A serving folder: config, torch file, licence."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "License_AngelSlim_model_and_dataset.txt").write_text("terms stand here\n")
    write_bin(folder / "pytorch_model.bin", small_weights() if weights is None else weights, **how)
    return folder


def never() -> bool:
    """A job nobody cancels."""
    return False


def run(
    source: Path, output: Path, cancelled: Callable[[], bool] = never, **options: Any
) -> Iterator[Event]:
    """The events of a conversion."""
    return convert(Convert(output=str(output), source=str(source), **options), cancelled)


def report(source: Path, output: Path, **options: Any) -> dict[str, Any]:
    """The report of a conversion that succeeds."""
    closing = list(run(source, output, **options))[-1]
    assert isinstance(closing, Converted)
    return closing.report


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and its content; folders as empty entries."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }
