"""How much memory a pair needs, told alike everywhere: so much, and some per token of context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dfly_core.records.loaded import PairInfo
from dfly_core.records.sizes import size_words

WORKING_BYTES = 1 << 29  # the program: its buffers, activations and the interpreter
CONTEXT = 8192  # the tokens for which it is said whether a pair fits

# Of the official pair, for a machine that has not fetched it: sizes on disk, K/V of one token
# (36 target and 5 drafter layers of 8 heads of 128, keys and values, 16 bit).
OFFICIAL_TARGET_BYTES = 4_610_000_000
OFFICIAL_DRAFT_BYTES = {"16 bit": 2_265_000_000, "8 bit": 1_203_000_000, "4 bit": 637_000_000}
OFFICIAL_KV_BYTES = 2 * 2 * (36 + 5) * 8 * 128


@dataclass(frozen=True)
class Need:
    """Bytes of memory: `weights`, and `kv` for each token of context."""

    weights: int
    kv: int

    def at(self, context: int) -> int:
        """All of it, with that many tokens of context."""
        return self.weights + WORKING_BYTES + self.kv * context

    @property
    def words(self) -> str:
        """The same words wherever memory is spoken of."""
        return (
            f"{size_words(self.at(0))} + {size_words(1000 * self.kv)} per 1,000 tokens of context"
        )


def official_need(bits: str = "4 bit") -> Need:
    """What the official pair needs, its target in 4 bit, with a drafter in so many bits."""
    return Need(OFFICIAL_TARGET_BYTES + OFFICIAL_DRAFT_BYTES[bits], OFFICIAL_KV_BYTES)


def need_of(pair: PairInfo) -> Need:
    """What a loaded pair needs."""
    return Need(pair.target_bytes + pair.draft_bytes, pair.kv_bytes_per_token)


def kv_bytes(config: Mapping[str, Any]) -> int:
    """Bytes of one token's keys and values in 16 bit, by a model's config.json."""
    heads = int(config["num_attention_heads"])
    kv_heads = int(config.get("num_key_value_heads") or heads)
    size = int(config.get("head_dim") or int(config["hidden_size"]) // heads)
    return 2 * 2 * int(config["num_hidden_layers"]) * kv_heads * size


def usable(total: int) -> int:
    """Bytes a model may take of a machine's memory, where the system does not say better."""
    return total * 3 // 4
