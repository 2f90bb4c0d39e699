"""The target in torch: Qwen3's architecture with taps, written for training on two cores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class TargetConfig:
    """Sizes, in the names of a Qwen3 config.json."""

    vocab_size: int = 1024
    hidden_size: int = 192
    intermediate_size: int = 512
    num_hidden_layers: int = 5
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 48
    rms_norm_eps: float = 1e-6
    rope_theta: float = 100000.0
    max_position_embeddings: int = 2048


class RMSNorm(nn.Module):
    """x / rms(x) * weight."""

    def __init__(self, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), x.shape[-1:], self.weight, self.eps)


def rope_table(positions: Tensor, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosine and sine, one row per position, halves repeated."""
    freq = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    angle = positions.float()[..., None] * freq
    angle = torch.cat([angle, angle], -1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding, half-split."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Cache:
    """Keys and values of one layer, grown in steps so that a token costs one row, not a copy."""

    STEP = 64

    def __init__(self) -> None:
        self.k = self.v = torch.zeros(0)
        self.used = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Everything so far, the new rows included."""
        need = self.used + k.shape[2]
        if not self.used or need > self.k.shape[2]:
            b, heads, _, dim = k.shape
            grown_k, grown_v = torch.zeros(2, b, heads, need + self.STEP, dim).unbind(0)
            if self.used:
                grown_k[:, :, : self.used] = self.k[:, :, : self.used]
                grown_v[:, :, : self.used] = self.v[:, :, : self.used]
            self.k, self.v = grown_k, grown_v
        self.k[:, :, self.used : need] = k
        self.v[:, :, self.used : need] = v
        self.used = need
        return self.k[:, :, :need], self.v[:, :, :need]

    def keep(self, rows: Tensor) -> None:
        """Only these rows of the batch."""
        self.k, self.v = self.k[rows], self.v[rows]


class Attention(nn.Module):
    """Qwen3 attention: per-head norms of q and k before the rotation."""

    def __init__(self, c: TargetConfig) -> None:
        super().__init__()
        self.heads, self.kv, self.dim = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, self.kv * self.dim, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, self.kv * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, c.hidden_size, bias=False)
        self.q_norm = RMSNorm(self.dim, c.rms_norm_eps)
        self.k_norm = RMSNorm(self.dim, c.rms_norm_eps)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], past: Cache | None, mask: Tensor | None
    ) -> Tensor:
        b, s, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(b, s, self.heads, self.dim)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(b, s, self.kv, self.dim)).transpose(1, 2)
        v = self.v_proj(x).view(b, s, self.kv, self.dim).transpose(1, 2)
        q, k = rotate(q, *rope), rotate(k, *rope)
        if past is not None:
            k, v = past.append(k, v)
        repeat = self.heads // self.kv
        if s == 1:  # heads of one group are rows of one query: no copy of keys and values
            q = q.reshape(b, self.kv, repeat, self.dim)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            return self.o_proj(out.reshape(b, 1, -1))
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.o_proj(out.transpose(1, 2).reshape(b, s, -1))


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One decoder layer."""

    def __init__(self, c: TargetConfig) -> None:
        super().__init__()
        self.self_attn = Attention(c)
        self.mlp = MLP(c.hidden_size, c.intermediate_size)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], past: Cache | None, mask: Tensor | None
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rope, past, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Target(nn.Module):
    """Embedding, layers, final norm; the head is the embedding."""

    def __init__(self, c: TargetConfig) -> None:
        super().__init__()
        self.config = c
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.03)

    def forward(
        self,
        ids: Tensor,
        positions: Tensor | None = None,
        cache: list[Cache] | None = None,
        mask: Tensor | None = None,
        taps: list[Tensor] | None = None,
    ) -> Tensor:
        """Normed final states; layer outputs are appended to `taps` where given."""
        if positions is None:
            positions = torch.arange(ids.shape[1])
        cos, sin = rope_table(positions, self.config.head_dim, self.config.rope_theta)
        rope = (cos, sin) if cos.dim() == 2 else (cos[:, None], sin[:, None])
        x = self.embed_tokens(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, rope, cache[i] if cache is not None else None, mask)
            if taps is not None:
                taps.append(x)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """The shared head."""
        return F.linear(hidden, self.embed_tokens.weight)
