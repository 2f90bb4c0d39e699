"""The DFly drafter (arXiv:2607.25852), one forward pass in the order the report tells it.

Shapes: S context rows, K block rows, T taps, L layers, D hidden size. The batch is always 1.
Embedding and head are the target's own and are handed in; the drafter holds neither.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.activations import swiglu
from mlx_lm.models.cache import KVCache
from mlx_lm.models.rope_utils import initialize_rope

from dfly_core.model.config import DrafterConfig
from dfly_core.model.opened import Rotation


class Attention(nn.Module):
    """Block rows attend to every context row and to one another; there is no causal mask."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        hidden, size = config.hidden_size, config.head_dim
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.scale = size**-0.5
        self.q_proj = nn.Linear(hidden, self.heads * size, bias=False)
        self.k_proj = nn.Linear(hidden, self.kv_heads * size, bias=False)
        self.v_proj = nn.Linear(hidden, self.kv_heads * size, bias=False)
        self.o_proj = nn.Linear(self.heads * size, hidden, bias=False)
        self.q_norm = nn.RMSNorm(size, eps=config.rms_norm_eps)
        self.k_norm = nn.RMSNorm(size, eps=config.rms_norm_eps)
        rope = initialize_rope(
            size,
            base=config.rope_theta,
            traditional=False,
            scaling_config=dict(config.rope_scaling) if config.rope_scaling else None,
            max_position_embeddings=config.max_position_embeddings,
        )
        self.turn = Rotation(rope)

    def keys_values(self, rows: mx.array, position: int) -> tuple[mx.array, mx.array]:
        """K and V of rows (S, D) whose first has `position`: (1, kv_heads, S, head_dim) each."""
        count = rows.shape[0]
        keys = self.k_norm(self.k_proj(rows).reshape(1, count, self.kv_heads, -1))
        values = self.v_proj(rows).reshape(1, count, self.kv_heads, -1)
        keys = self.turn(keys.transpose(0, 2, 1, 3), position)
        return keys, values.transpose(0, 2, 1, 3)

    def __call__(self, block: mx.array, cache: KVCache, fresh: mx.array | None) -> mx.array:
        """Block rows (K, D) -> (K, D); `fresh` (S, D) are context rows that the cache lacks."""
        count = block.shape[0]
        # One product and one rotation for both kinds of rows: their positions follow on.
        rows = block if fresh is None else mx.concatenate([fresh, block])
        # The block's rows borrow the room behind the context and leave it at once: only
        # context rows stay, and the context is never copied.
        keys, values = cache.update_and_fetch(*self.keys_values(rows, cache.offset))
        cache.trim(count)
        queries = self.q_norm(self.q_proj(block).reshape(1, count, self.heads, -1))
        queries = self.turn(queries.transpose(0, 2, 1, 3), cache.offset)
        out = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=self.scale)
        return self.o_proj(out.transpose(0, 2, 1, 3).reshape(count, -1))


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def __call__(self, x: mx.array) -> mx.array:
        return self.down_proj(swiglu(self.gate_proj(x), self.up_proj(x)))


class Layer(nn.Module):
    """A pre-norm Qwen3 layer whose attention also sees the context."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = MLP(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def __call__(self, block: mx.array, cache: KVCache, fresh: mx.array | None) -> mx.array:
        block = block + self.self_attn(self.input_layernorm(block), cache, fresh)
        return block + self.mlp(self.post_attention_layernorm(block))


class HiddenCorrection(nn.Module):
    """h' = h + W_down(SiLU(W_gate z) * W_up z), z = [norm(h); norm(embedding of the token before)].

    Gate and up read z's two halves by weights of their own (`split_correction`): the half
    that reads h is one product over all rows, only the token's half must go left to right.
    """

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.hidden_correction_intermediate_size
        self.hidden_norm = nn.RMSNorm(hidden, eps=config.rms_norm_eps)
        self.embed_norm = nn.RMSNorm(hidden, eps=config.rms_norm_eps)
        self.from_hidden = nn.Linear(hidden, 2 * inner, bias=False)
        self.from_token = nn.Linear(hidden, 2 * inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def prepare(self, hidden: mx.array) -> mx.array:
        """What gate and up take from h, for all rows at once: (..., R, D) -> (..., R, 2C)."""
        return self.from_hidden(self.hidden_norm(hidden))

    def told(self, before: mx.array) -> mx.array:
        """What they take from the embeddings of the tokens before: (..., R, D) -> (..., R, 2C)."""
        return self.from_token(self.embed_norm(before))

    def __call__(self, hidden: mx.array, prepared: mx.array, told: mx.array) -> mx.array:
        """Corrected rows (..., R, D) from h, `prepare(h)` and what the tokens before `told`."""
        gate, up = mx.split(prepared + told, 2, axis=-1)
        return hidden + self.down_proj(swiglu(gate, up))


class Drafter(nn.Module):
    """Contexts, backbone and correction. Its cache holds context rows only, one KVCache a layer."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.config = config
        self.fc = nn.Linear(config.taps * config.hidden_size, config.hidden_size, bias=False)
        self.hidden_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.layer_fusion_weights = mx.zeros((config.num_hidden_layers, config.taps))
        self.layers = [Layer(config) for _ in range(config.num_hidden_layers)]
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        if config.enable_hidden_correction:
            self.hidden_correction = HiddenCorrection(config)

    def make_cache(self) -> list[KVCache]:
        """An empty context cache."""
        return [KVCache() for _ in self.layers]

    def contexts(self, taps: Sequence[mx.array]) -> mx.array:
        """c_i for each draft layer from T tap rows (1, S, D): (L, S, D)."""
        base = self.fc(mx.concatenate(list(taps), axis=-1))
        # Softmax and sum in float32: in 16 bit the shares of the taps no longer add up to one.
        shares = mx.softmax(self.layer_fusion_weights.astype(mx.float32), axis=-1)
        stacked = mx.concatenate(list(taps)).astype(mx.float32)
        fused = (shares @ stacked.reshape(len(taps), -1)).reshape(-1, *base.shape[1:])
        return self.hidden_norm(base + fused.astype(base.dtype))

    def read(self, taps: Sequence[mx.array], cache: Sequence[KVCache]) -> None:
        """Append context rows to the cache, at the positions that follow it. Lazy."""
        for layer, rows, store in zip(self.layers, self.contexts(taps), cache, strict=True):
            # Context rows go to k_proj and v_proj as they are: no input_layernorm.
            store.update_and_fetch(*layer.self_attn.keys_values(rows, store.offset))

    def backbone(
        self, block: mx.array, cache: Sequence[KVCache], taps: Sequence[mx.array] = ()
    ) -> mx.array:
        """Embeddings of [anchor, mask, mask, ...] (1, K, D) -> final-normed hidden (K, D).

        Row j stands for position anchor + j and predicts the token there; row 0 predicts
        nothing. The cache must hold exactly the positions before the anchor, or those before
        `taps` (T rows (1, S, D)), which are then read on the way: `read`, but cheaper.
        """
        rows = block[0]
        fresh = self.contexts(taps) if taps else [None] * len(self.layers)
        for layer, store, new in zip(self.layers, cache, fresh, strict=True):
            rows = layer(rows, store, new)
        return self.norm(rows)


def split_correction(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """Published gate/up weights -> the halves `HiddenCorrection` runs with.

    Works on packed weights too, since the cut falls between quantisation groups.
    """
    prefix = "hidden_correction."
    out = {name: value for name, value in weights.items() if not _is_first_product(name)}
    for part in ("weight", "scales", "biases"):
        names = [f"{prefix}{side}.{part}" for side in ("gate_proj", "up_proj")]
        if names[0] not in weights or names[1] not in weights:
            continue
        both = mx.concatenate([weights[name] for name in names], axis=0)
        half = both.shape[-1] // 2
        out[f"{prefix}from_hidden.{part}"] = mx.contiguous(both[:, :half])
        out[f"{prefix}from_token.{part}"] = mx.contiguous(both[:, half:])
    return out


def _is_first_product(name: str) -> bool:
    return name.startswith(("hidden_correction.gate_proj.", "hidden_correction.up_proj."))
