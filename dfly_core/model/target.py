"""The target: mlx-lm's own model, run layer by layer so that the taps come with the same pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.base import create_attention_mask
from mlx_lm.models.cache import KVCache

from dfly_core.model.routes import Routes
from dfly_core.records.errors import Refused

# Families whose mlx-lm model is embed_tokens -> layers(h, mask, cache) -> norm -> head, with
# full causal attention in every layer. A test compares each with mlx-lm's own pass, bit for bit.
FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


class Target:
    """Runs the target and hands out what the drafter shares: embedding, head and taps."""

    def __init__(self, model: Any, config: dict[str, Any], taps: Sequence[int] = ()) -> None:
        check_family(config)
        self.model = model
        self.config = config
        self.taps = tuple(taps)
        self.context_limit = int(config.get("max_position_embeddings") or 2**31 - 1)
        inner = model.model
        self.layers: list[nn.Module] = list(model.layers)
        self._embedding = inner.embed_tokens
        self._norm = inner.norm
        tied = bool(model.args.tie_word_embeddings)
        self._head = inner.embed_tokens.as_linear if tied else model.lm_head

    @property
    def dtype(self) -> mx.Dtype:
        """The dtype of activations."""
        return self._norm.weight.dtype

    @property
    def head_module(self) -> nn.Module:
        """The module whose rows are the vocabulary: the head, or the tied embedding."""
        tied = bool(self.model.args.tie_word_embeddings)
        return self._embedding if tied else self.model.lm_head

    def make_cache(self) -> list[KVCache]:
        """An empty cache, one KVCache a layer."""
        return [KVCache() for _ in self.layers]

    def embed(self, ids: mx.array) -> mx.array:
        """Ids (1, S) -> embeddings (1, S, D); rows are looked up, never the whole table."""
        return self._embedding(ids)

    def head(self, hidden: mx.array, routes: Routes | None = None) -> mx.array:
        """Final-normed hidden (1, S, D) -> logits (1, S, V)."""
        if routes is None or hidden.shape[1] == 1:
            return self._head(hidden)
        return routes.at(hidden.shape[1]).product(self.head_module, hidden)

    def forward(
        self,
        ids: mx.array,
        cache: Sequence[KVCache],
        routes: Routes | None = None,
    ) -> tuple[mx.array, list[mx.array]]:
        """Ids (1, S) -> final-normed hidden (1, S, D) and the T taps (1, S, D). Lazy.

        A tap is the residual stream leaving its layer, before any final norm. `routes` keep
        the rows of a verification block bit-equal to single rows.
        """
        h = self.embed(ids)
        mask = create_attention_mask(h, cache[0])
        count = h.shape[1]
        if routes is not None:
            routes = routes.at(count)
            # One row is its own reference; where nothing needs a detour mlx-lm's layers run.
            if count == 1 or routes.native(cache[0].offset, count):
                routes = None
        found: dict[int, mx.array] = {}
        for index, (layer, store) in enumerate(zip(self.layers, cache, strict=True)):
            h = routes.layer(layer, h, store) if routes is not None else layer(h, mask, store)
            if index in self.taps:
                found[index] = h
        return self._norm(h), [found[index] for index in self.taps]


def check_family(config: dict[str, Any]) -> None:
    """Refuse models whose layers can't be run one by one with plain causal attention."""
    if "target_layer_ids" in config or "dflash_config" in config:
        raise Refused(
            "what was named as the target is a drafter", "take it as the drafter (--draft)"
        )
    family = config.get("model_type")
    if family not in FAMILIES:
        raise Refused(
            f"the target is of type {family!r}, which this engine does not run",
            f"take one of the types {', '.join(FAMILIES)}",
        )
    if config.get("model_file") is not None:
        # mlx-lm 0.31 would run it unasked.
        raise Refused(
            f"the target's config asks for code of its own ({config['model_file']})",
            "take a model that mlx-lm runs by itself",
        )
    kinds = config.get("layer_types") or []
    full = isinstance(kinds, list) and all(kind == "full_attention" for kind in kinds)
    if config.get("use_sliding_window") is True or not full:
        raise Refused(
            "the target uses sliding-window attention, whose cache can't be trimmed",
            "take a target with full attention in every layer",
        )
