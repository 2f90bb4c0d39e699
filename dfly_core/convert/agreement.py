"""How close a quantised drafter's hidden states are to its unquantised self's, on sample states.

Both run in float32 through `model.drafter`, with linear layers that read their weights from
the files a block of rows at a time: two full drafters would not fit in a conversion's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from dfly_core.convert.cast import cast
from dfly_core.convert.place import WEIGHTS
from dfly_core.convert.plan import GROUP_SIZE, Item, Plan
from dfly_core.convert.quantize import dequantize_rows, from_bits
from dfly_core.convert.safefile import read_safetensors
from dfly_core.convert.stored import StoredTensor, blocks
from dfly_core.model.config import DrafterConfig
from dfly_core.model.drafter import Drafter
from dfly_core.records.errors import Stopped
from dfly_core.records.events import Progress

CONTEXT_ROWS = 4
SEED = 5712926

Rows = Callable[[], Iterator[mx.array]]  # a weight as float32 blocks of rows, read anew each time


def compare_quantised(
    plan: Plan, folder: Path, cancelled: Callable[[], bool], found: dict[str, Any]
) -> Iterator[Progress]:
    """Fill `found` with {rows, cosine_mean, cosine_least} over corrected hidden rows 1..K-1."""
    outputs = read_safetensors(folder / WEIGHTS)
    yield Progress("compare", "unquantised", 0, 2, "passes")
    plain = {item.name: _stopping(plain_rows(item), cancelled) for item in plan.items}
    one = sample_hidden(streamed_drafter(plan.config, plain))
    yield Progress("compare", "quantised", 1, 2, "passes")
    packed = {
        item.name: _stopping(quantised_rows(item, outputs, plan.bits or 0), cancelled)
        for item in plan.items
    }
    other = sample_hidden(streamed_drafter(plan.config, packed))
    yield Progress("compare", "quantised", 2, 2, "passes")
    norms = mx.linalg.norm(one, axis=-1) * mx.linalg.norm(other, axis=-1)
    cosines = (one * other).sum(axis=-1) / norms
    found |= {
        "rows": cosines.size,
        "cosine_mean": cosines.mean().item(),
        "cosine_least": cosines.min().item(),
    }


class _Streamed:
    """A linear layer without bias whose weight stays in the file; `columns` cuts its inputs."""

    def __init__(self, parts: list[Rows], columns: slice = slice(None)) -> None:
        self._parts, self._columns = parts, columns

    def __call__(self, x: mx.array) -> mx.array:
        out = []
        for part in self._parts:
            for rows in part():
                out.append(x @ rows[:, self._columns].T)
                mx.eval(out[-1])
        mx.clear_cache()
        return mx.concatenate(out, axis=-1)


def sample_hidden(drafter: Drafter) -> mx.array:
    """Corrected hidden rows (K-1, D) of a float32 drafter on the sample states."""
    config = drafter.config
    hidden, rows = config.hidden_size, config.block_size
    keys = mx.random.split(mx.random.key(SEED), 3)
    taps = mx.random.normal((config.taps, 1, CONTEXT_ROWS, hidden), key=keys[0])
    # Embeddings are some fifty times smaller than residual streams (Qwen3's are about 0.02).
    block = 0.02 * mx.random.normal((1, rows, hidden), key=keys[1])
    before = 0.02 * mx.random.normal((rows - 1, hidden), key=keys[2])
    out = drafter.backbone(block, drafter.make_cache(), list(taps))[1:]
    if config.enable_hidden_correction:
        correction = drafter.hidden_correction
        out = correction(out, correction.prepare(out), correction.told(before))
    mx.eval(out)
    return out


def streamed_drafter(config: DrafterConfig, weights: dict[str, Rows]) -> Drafter:
    """A float32 drafter whose matrices stay in the file."""
    drafter = Drafter(config)
    vectors = [
        (name, mx.concatenate(list(rows())))
        for name, rows in weights.items()
        if name.endswith("norm.weight") or not name.endswith(".weight")
    ]
    drafter.load_weights(vectors, strict=False)
    for path, module in drafter.named_modules():
        if isinstance(module, nn.Linear):
            owner, name = _owner(drafter, path)
            setattr(owner, name, _linear(path, config, weights))
    return drafter


def _linear(path: str, config: DrafterConfig, weights: dict[str, Rows]) -> _Streamed:
    stem, _, name = path.rpartition(".")
    if name not in ("from_hidden", "from_token"):
        return _Streamed([weights[f"{path}.weight"]])
    # The published gate and up read both halves (see model.drafter.split_correction).
    cut = config.hidden_size
    columns = slice(cut) if name == "from_hidden" else slice(cut, None)
    return _Streamed(
        [weights[f"{stem}.gate_proj.weight"], weights[f"{stem}.up_proj.weight"]], columns
    )


def _owner(module: Any, path: str) -> tuple[Any, str]:
    *steps, name = path.split(".")
    for step in steps:
        module = module[int(step)] if step.isdigit() else getattr(module, step)
    return module, name


def plain_rows(item: Item) -> Rows:
    """A tensor as it stands in the source."""

    def rows() -> Iterator[mx.array]:
        for block in blocks(item.stored):
            yield from_bits(cast(block, item.stored.dtype, "F32"), "F32")

    return rows


def quantised_rows(item: Item, outputs: dict[str, StoredTensor], bits: int) -> Rows:
    """A tensor as it was written, dequantised."""
    if not item.quantised:
        return plain_rows(item)
    stem = item.name.removesuffix("weight")

    def rows() -> Iterator[mx.array]:
        # The three parts in step: as many rows of each as in a block of the widest.
        packed = outputs[item.name]
        count = max(1, (8 << 20) // (packed.shape[1] * 4))
        parts = [
            blocks(part, count * part.nbytes // part.shape[0])
            for part in (packed, outputs[f"{stem}scales"], outputs[f"{stem}biases"])
        ]
        for weight, scales, biases in zip(*parts, strict=True):
            yield dequantize_rows(weight, scales, biases, item.dtype, bits, GROUP_SIZE)

    return rows


def _stopping(rows: Rows, cancelled: Callable[[], bool]) -> Rows:
    def stopping() -> Iterator[mx.array]:
        for block in rows():
            if cancelled():
                raise Stopped
            yield block

    return stopping
