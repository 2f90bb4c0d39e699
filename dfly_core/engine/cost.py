"""What a cycle reads from memory: arithmetic from sizes, bits and width; nothing is measured.

Decoding at batch 1 is bound by the bytes of weights read, so bytes are the model of cost.
Sizes are bytes; one quantised value takes its bits plus 32 bits of scale and bias per group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dfly_core.model.config import DrafterConfig

GROUP = 64


def bytes_of(values: int, bits: int) -> float:
    """Bytes of a weight matrix of `values` entries at 16 bits, or quantised in groups of 64."""
    return values * bits / 8 if bits >= 16 else values * (bits + 32 / GROUP) / 8


@dataclass(frozen=True)
class TargetSize:
    """Entries of the target's matrices, all that a one-token pass reads."""

    layers: int
    head: int
    hidden: int

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> TargetSize:
        """Sizes of a Qwen3- or Llama-shaped config.json."""
        hidden = int(config["hidden_size"])
        heads = int(config["num_attention_heads"])
        size = int(config.get("head_dim") or hidden // heads)
        kv_heads = int(config.get("num_key_value_heads") or heads)
        attention = hidden * size * (2 * heads + 2 * kv_heads)
        mlp = 3 * hidden * int(config["intermediate_size"])
        layers = int(config["num_hidden_layers"]) * (attention + mlp)
        return cls(layers, int(config["vocab_size"]) * hidden, hidden)

    def pass_bytes(self, bits: int) -> float:
        """What one target pass reads, whatever the number of rows."""
        return bytes_of(self.layers + self.head, bits)


@dataclass(frozen=True)
class DraftBytes:
    """What one draft reads: once, in the chain left to right, and from the target's head."""

    backbone: float
    correction: float
    head: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.backbone + self.correction + self.head


def draft_bytes(
    config: DrafterConfig,
    target: TargetSize,
    draft_bits: int,
    head_bits: int,
    head_share: float = 1.0,
    split: bool = True,
    proposals: int | None = None,
) -> DraftBytes:
    """Bytes of a draft of `proposals`, by default all K-1 that a block has room for.

    `head_share` is the part of the vocabulary scored at each step; `split` says that the
    half of the correction's first product that reads h runs once, not at every step.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    size = config.head_dim
    attention = hidden * size * 2 * (config.num_attention_heads + config.num_key_value_heads)
    layers = config.num_hidden_layers * (attention + 3 * hidden * inner)
    backbone = layers + config.taps * hidden * hidden
    steps = config.block_size - 1 if proposals is None else proposals
    correction = 0
    if config.enable_hidden_correction:
        half = 2 * hidden * config.hidden_correction_intermediate_size
        down = hidden * config.hidden_correction_intermediate_size
        correction = (half + down) * steps + half * (1 if split else steps)
    else:
        steps = min(steps, 1)  # without a chain all rows share one reading of the head
    return DraftBytes(
        bytes_of(backbone, draft_bits),
        bytes_of(correction, draft_bits),
        bytes_of(target.head, head_bits) * head_share * steps,
    )
