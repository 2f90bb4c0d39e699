"""The golden vectors: a tiny drafter with uneven sizes, its inputs and its outputs in float32."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx

from dfly_core.model.config import drafter_config
from dfly_core.model.drafter import Drafter
from dfly_core.model.pair import build_drafter

FOLDER = Path(__file__).parent.parent / "data" / "golden"
RENAMED = {"context_proj.": "fc.", "context_norm.": "hidden_norm.", "final_norm.": "norm."}


def mlx_name(name: str) -> str:
    """An upstream tensor name in MLX form."""
    for old, new in RENAMED.items():
        if name.startswith(old):
            return new + name[len(old) :]
    return name


@dataclass
class Golden:
    """The vectors, the drafter built from them, and the target's embedding and head."""

    meta: dict[str, Any]
    arrays: Mapping[str, mx.array]
    drafter: Drafter

    @property
    def ends(self) -> list[int]:
        """Context length at each cycle."""
        return self.meta["context_end_per_cycle"]

    def embed(self, ids: mx.array) -> mx.array:
        """The target's embedding."""
        return self.arrays["weights.embed_tokens.weight"][ids]

    def head(self, hidden: mx.array) -> mx.array:
        """The target's head."""
        return hidden @ self.arrays["weights.lm_head.weight"].T

    def taps(self, start: int, end: int) -> list[mx.array]:
        """Tap rows of positions start..end."""
        return list(mx.split(self.arrays["in.features"][:, start:end], 4, axis=-1))

    def block(self, cycle: int, rows: int | None = None) -> mx.array:
        """Embeddings of the block of a cycle, all K rows or fewer."""
        return self.embed(self.arrays["in.block_ids"][cycle][:rows][None])


def load_golden() -> Golden:
    """Read the vectors and build the drafter from its upstream tensors."""
    meta = json.loads((FOLDER / "golden.json").read_text())
    arrays: dict[str, mx.array] = mx.load(str(FOLDER / "golden.safetensors"))  # type: ignore[assignment]
    weights = {
        mlx_name(name.removeprefix("weights.")): value
        for name, value in arrays.items()
        if name.startswith("weights.") and "embed_tokens" not in name and "lm_head" not in name
    }
    config = drafter_config(meta["config"])
    return Golden(meta, arrays, build_drafter(weights, config, mx.float32))
