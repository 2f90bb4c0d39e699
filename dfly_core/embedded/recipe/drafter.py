"""The DFly drafter in torch: AngelSpec's tensor names, the arithmetic of the report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .target import MLP, RMSNorm, TargetConfig, rope_table, rotate


@dataclass(frozen=True)
class DrafterConfig:
    """The keys of an upstream config.json that decide shapes."""

    hidden_size: int = 192
    intermediate_size: int = 512
    head_dim: int = 48
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    vocab_size: int = 1024
    rms_norm_eps: float = 1e-6
    rope_theta: float = 100000.0
    max_position_embeddings: int = 2048
    target_layer_ids: tuple[int, ...] = (0, 2, 3, 4)
    target_hidden_size: int = 192
    target_num_hidden_layers: int = 5
    mask_token_id: int = 3
    block_size: int = 8
    enable_hidden_correction: bool = True
    hidden_correction_intermediate_size: int | None = None

    def upstream(self) -> dict[str, Any]:
        """The whole upstream config.json."""
        return {
            "architectures": ["Qwen3DFlyModel"],
            "model_type": "qwen3",
            **asdict(self),
            "target_layer_ids": list(self.target_layer_ids),
            "num_target_layers": len(self.target_layer_ids),
            "rope_scaling": None,
            "hidden_act": "silu",
            "attention_bias": False,
            "tie_word_embeddings": True,
        }


class Attention(nn.Module):
    """Queries from the block; keys and values from context and block through the same weights."""

    def __init__(self, c: DrafterConfig) -> None:
        super().__init__()
        self.heads, self.kv, self.dim = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, self.kv * self.dim, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, self.kv * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, c.hidden_size, bias=False)
        self.q_norm = RMSNorm(self.dim, c.rms_norm_eps)
        self.k_norm = RMSNorm(self.dim, c.rms_norm_eps)

    def forward(
        self, x: Tensor, context: Tensor, rope_q: tuple[Tensor, Tensor],
        rope_k: tuple[Tensor, Tensor], mask: Tensor,
    ) -> Tensor:  # fmt: skip
        b, s, _ = x.shape
        both = torch.cat([context, x], 1)
        n = both.shape[1]
        q = self.q_norm(self.q_proj(x).view(b, s, self.heads, self.dim)).transpose(1, 2)
        k = self.k_norm(self.k_proj(both).view(b, n, self.kv, self.dim)).transpose(1, 2)
        v = self.v_proj(both).view(b, n, self.kv, self.dim).transpose(1, 2)
        q, k = rotate(q, *rope_q), rotate(k, *rope_k)
        repeat = self.heads // self.kv
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(b, s, -1))


class Layer(nn.Module):
    """A Qwen3 layer; only the block passes input_layernorm."""

    def __init__(self, c: DrafterConfig) -> None:
        super().__init__()
        self.self_attn = Attention(c)
        self.mlp = MLP(c.hidden_size, c.intermediate_size)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(
        self, x: Tensor, context: Tensor, rope_q: tuple[Tensor, Tensor],
        rope_k: tuple[Tensor, Tensor], mask: Tensor,
    ) -> Tensor:  # fmt: skip
        x = x + self.self_attn(self.input_layernorm(x), context, rope_q, rope_k, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Correction(nn.Module):
    """h + down(silu(gate z) * up z), z the normed state beside the normed previous embedding."""

    def __init__(self, c: DrafterConfig) -> None:
        super().__init__()
        d, inner = c.hidden_size, c.hidden_correction_intermediate_size or c.hidden_size
        self.hidden_norm = RMSNorm(d, c.rms_norm_eps)
        self.embed_norm = RMSNorm(d, c.rms_norm_eps)
        self.gate_proj = nn.Linear(2 * d, inner, bias=False)
        self.up_proj = nn.Linear(2 * d, inner, bias=False)
        self.down_proj = nn.Linear(inner, d, bias=False)

    def forward(self, hidden: Tensor, previous: Tensor) -> Tensor:
        z = torch.cat([self.hidden_norm(hidden), self.embed_norm(previous)], -1)
        return hidden + self.down_proj(F.silu(self.gate_proj(z)) * self.up_proj(z))


class Drafter(nn.Module):
    """Everything the drafter owns; embedding and head stay with the target."""

    def __init__(self, c: DrafterConfig) -> None:
        super().__init__()
        self.config = c
        taps, d = len(c.target_layer_ids), c.hidden_size
        self.context_proj = nn.Linear(taps * d, d, bias=False)
        self.context_norm = RMSNorm(d, c.rms_norm_eps)
        self.layer_fusion_weights = nn.Parameter(torch.zeros(c.num_hidden_layers, taps))
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.final_norm = RMSNorm(d, c.rms_norm_eps)
        self.hidden_correction = Correction(c) if c.enable_hidden_correction else None
        for key, p in self.named_parameters():
            if p.dim() == 2 and "fusion" not in key:
                nn.init.normal_(p, std=0.03)

    def contexts(self, features: Tensor) -> list[Tensor]:
        """One context per draft layer from taps laid side by side, (B, S, T*D)."""
        base = self.context_proj(features)
        taps = features.unflatten(-1, (-1, self.config.target_hidden_size))
        share = self.layer_fusion_weights.float().softmax(-1)
        return [self.context_norm(base + (taps * row[:, None]).sum(-2)) for row in share.unbind(0)]

    def forward(
        self, features: Tensor, block: Tensor, anchors: Tensor, width: int | None = None
    ) -> Tensor:
        """Normed states of blocks side by side.

        `features` (B, S, T*D); `block` (B, A*K, D) embeddings; `anchors` (B, A) positions. Each
        block sees the context before its anchor and itself, nothing else.
        """
        k = width or self.config.block_size
        b, s, _ = features.shape
        count = anchors.shape[1]
        at = (anchors[..., None] + torch.arange(k)).reshape(b, count * k)
        context_at = torch.arange(s).expand(b, s)
        seen = context_at[:, None, :] < anchors.repeat_interleave(k, 1)[..., None]
        row = torch.arange(count * k) // k
        own = (row[:, None] == row[None]).expand(b, -1, -1)
        mask = torch.cat([seen, own], -1)[:, None]
        dim, theta = self.config.head_dim, self.config.rope_theta
        rope_q = tuple(t[:, None] for t in rope_table(at, dim, theta))
        rope_k = tuple(t[:, None] for t in rope_table(torch.cat([context_at, at], 1), dim, theta))
        for layer, context in zip(self.layers, self.contexts(features), strict=True):
            block = layer(block, context, rope_q, rope_k, mask)
        return self.final_norm(block)


def make_config(target: TargetConfig, correction: bool = True) -> DrafterConfig:
    """The shipped drafter's sizes for this target."""
    return DrafterConfig(
        vocab_size=target.vocab_size, target_hidden_size=target.hidden_size,
        target_num_hidden_layers=target.num_hidden_layers, rope_theta=target.rope_theta,
        enable_hidden_correction=correction,
    )  # fmt: skip
