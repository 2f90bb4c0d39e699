"""Muon for matrices (Jordan et al., 2024, arXiv:2502.16982 for the scale), AdamW for the rest."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor, nn


def orthogonal(g: Tensor, steps: int = 5) -> Tensor:
    """Newton-Schulz towards the nearest semi-orthogonal matrix, for a stack of matrices."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.transpose(-1, -2) if g.shape[-2] > g.shape[-1] else g
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.transpose(-1, -2)
        x = a * x + (b * s + c * (s @ s)) @ x
    return x.transpose(-1, -2) if g.shape[-2] > g.shape[-1] else x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised; matrices of one shape are handled as one stack."""

    def __init__(self, params: list[nn.Parameter], lr: float, decay: float = 0.05) -> None:
        super().__init__(params, {"lr": lr, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    shapes[p.shape].append(p)
            for shape, params in shapes.items():
                moves = []
                for p in params:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    m.lerp_(p.grad, 0.05)
                    moves.append(p.grad.lerp(m, 0.95))
                stack = orthogonal(torch.stack(moves))
                scale = group["lr"] * 0.2 * max(shape) ** 0.5
                for p, move in zip(params, stack, strict=True):
                    p.mul_(1 - group["lr"] * group["decay"]).add_(move, alpha=-scale)


def optimizers(model: nn.Module, muon_lr: float, adam_lr: float) -> list[torch.optim.Optimizer]:
    """One for the matrices inside the layers, one for embeddings, norms and small tensors."""
    matrix, rest = [], []
    for key, p in model.named_parameters():
        if p.requires_grad:
            inside = p.dim() == 2 and "embed" not in key and "fusion" not in key
            (matrix if inside else rest).append(p)
    adam = torch.optim.AdamW(rest, lr=adam_lr, betas=(0.9, 0.98), weight_decay=0.0)
    return [Muon(matrix, muon_lr), adam]


def set_rate(opts: list[torch.optim.Optimizer], rates: list[float], factor: float) -> None:
    """The schedule's factor, applied to every optimizer."""
    for opt, rate in zip(opts, rates, strict=True):
        for group in opt.param_groups:
            group["lr"] = rate * factor
