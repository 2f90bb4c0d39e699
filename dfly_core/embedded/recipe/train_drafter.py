"""Trains a drafter on the target's own greedy answers, against a fixed amount of time."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from .drafter import Drafter, make_config
from .optim import optimizers, set_rate
from .target import Target
from .train_target import shape

ANCHORS = 8
UNCORRECTED = 0.3
RATES = [0.006, 0.003]
Sample = tuple[list[int], int]


def batches(samples: list[Sample], rng: random.Random, size: int) -> Iterator[list[Sample]]:
    """Samples of one width together, `size` ids at most, for ever."""
    while True:
        order = samples[:]
        rng.shuffle(order)
        order.sort(key=lambda sample: len(sample[0]))
        groups: list[list[Sample]] = [[]]
        for sample in order:
            width = shape(len(sample[0]))
            if groups[-1] and (
                width != shape(len(groups[-1][0][0])) or len(groups[-1]) == size // width
            ):
                groups.append([])
            groups[-1].append(sample)
        rng.shuffle(groups)
        yield from groups


def draw(
    group: list[Sample], rng: random.Random, k: int, size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids (B, S), anchors (B, A), wanted tokens (B, A, K) and their weights (B, A, K).

    Anchors lie on the last prompt token or in the answer: an anchor is a committed token.
    """
    width = shape(len(group[0][0]))
    count = size // width
    ids = torch.zeros(count, width + k, dtype=torch.long)
    anchors = torch.ones(count, ANCHORS, dtype=torch.long)
    weight = torch.zeros(count, ANCHORS, k)
    row_weight = torch.exp(-(torch.arange(k, dtype=torch.float32) - 1) / 4)
    row_weight[0] = 0
    for row, (sample, start) in enumerate(group):
        ids[row, : len(sample)] = torch.tensor(sample)
        # Generation begins with the target's first token: that is the first anchor there is.
        places = range(start, max(start + 1, len(sample) - 1))
        chosen = [rng.choice(places) for _ in range(ANCHORS)]
        if rng.random() < 0.3:
            chosen[0] = start
        anchors[row] = torch.tensor(chosen)
        for at, anchor in enumerate(chosen):
            left = len(sample) - anchor
            weight[row, at, :left] = row_weight[:left]
    wanted = torch.gather(
        ids, 1, (anchors[..., None] + torch.arange(k)).flatten(1)
    ).unflatten(1, (ANCHORS, k))  # fmt: skip
    return ids[:, :width], anchors, wanted, weight


def factor(done: float) -> float:
    """Short warm-up, flat, then linear to zero over the last two thirds."""
    return min(1.0, done / 0.01) if done < 0.33 else max(0.0, (1.0 - done) / 0.67)


def features_of(
    target: Target, layers: Sequence[int], group: list[Sample], ids: Tensor, kept: dict[int, Tensor]
) -> Tensor:
    """The taps of a batch. The target never changes, so a sample goes through it only once."""
    rows = [kept.get(id(sample)) for sample, _ in group]
    if any(row is None for row in rows):
        taps: list[Tensor] = []
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            target(ids, taps=taps)
        new = torch.cat([taps[i] for i in layers], -1)
        for row, (sample, _) in enumerate(group):
            kept[id(sample)] = new[row, : len(sample)].to(torch.bfloat16, copy=True)
        return new
    features = torch.zeros(*ids.shape, len(layers) * target.config.hidden_size)
    for row, stored in enumerate(rows):
        assert stored is not None
        features[row, : len(stored)] = stored
    return features


def loss_of(drafter: Drafter, target: Target, features: Tensor, anchors: Tensor, wanted: Tensor,
            weight: Tensor) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Loss on corrected logits plus a share on uncorrected ones, and the accuracy per row."""
    with torch.no_grad():
        k = drafter.config.block_size
        block_ids = torch.full_like(wanted, drafter.config.mask_token_id)
        block_ids[..., 0] = wanted[..., 0]
        block = target.embed_tokens(block_ids.flatten(1))
        previous = target.embed_tokens(wanted[..., :-1])
    hidden = drafter(features, block, anchors).unflatten(1, (-1, k))[:, :, 1:]
    w = weight[..., 1:].flatten()
    goal = wanted[..., 1:].flatten()

    def score(states: Tensor) -> tuple[Tensor, Tensor]:
        logits = F.linear(states, target.embed_tokens.weight).flatten(0, 2).float()
        each = F.cross_entropy(logits, goal, reduction="none")
        return (each * w).sum() / w.sum(), logits.argmax(-1) == goal

    base, hit = score(hidden)
    if drafter.hidden_correction is None:
        loss = base
    else:
        loss, hit = score(drafter.hidden_correction(hidden, previous))
        loss = loss + UNCORRECTED * base
    valid = (weight[..., 1:] > 0).float()
    rows = (hit.view_as(valid) * valid).sum((0, 1)) / valid.sum((0, 1)).clamp(min=1)
    return loss, rows.detach()


def train(target: Target, samples: list[Sample], work: Path, minutes: float, correction: bool,
          seed: int = 11, size: int = 1536) -> Drafter:  # fmt: skip
    """Resumes from a checkpoint in `work`; the target stays as it is."""
    torch.manual_seed(seed)
    target.requires_grad_(False)
    drafter = Drafter(make_config(target.config, correction))
    drafter.final_norm.load_state_dict(target.norm.state_dict())
    opts = optimizers(drafter, *RATES)
    checkpoint = work / ("drafter.pt" if correction else "ablation.pt")
    used, step = 0.0, 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        drafter.load_state_dict(saved["model"])
        for opt, state in zip(opts, saved["opts"], strict=True):
            opt.load_state_dict(state)
        used, step = saved["used"], saved["step"]
    rng = random.Random(seed * 1000 + step)
    begun, last, total = time.time() - used, time.time(), minutes * 60
    kept: dict[int, Tensor] = {}
    mean, mean_rows = 0.0, torch.zeros(drafter.config.block_size - 1)
    for group in batches(samples, rng, size):
        done = (time.time() - begun) / total
        if done >= 1:
            break
        set_rate(opts, RATES, factor(done))
        ids, *batch = draw(group, rng, drafter.config.block_size, size)
        features = features_of(target, drafter.config.target_layer_ids, group, ids, kept)
        with torch.autocast("cpu", torch.bfloat16):
            loss, rows = loss_of(drafter, target, features, *batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(drafter.parameters(), 1.0)
        for opt in opts:
            opt.step()
            opt.zero_grad(set_to_none=True)
        step += 1
        now = float(loss.detach())
        mean = 0.97 * mean + 0.03 * now if mean else now
        mean_rows = rows if float(mean_rows.sum()) == 0 else 0.97 * mean_rows + 0.03 * rows
        if step % 50 == 0:
            shown = " ".join(f"{x:.2f}" for x in mean_rows.tolist())
            print(f"step {step} done {done:.3f} loss {mean:.3f} rows {shown}", flush=True)
        if time.time() - last > 180:
            _save(checkpoint, drafter, opts, time.time() - begun, step)
            last = time.time()
    _save(checkpoint, drafter, opts, total, step)
    return drafter


def _save(path: Path, drafter: Drafter, opts: list[torch.optim.Optimizer], used: float,
          step: int) -> None:  # fmt: skip
    part = path.with_suffix(".part")
    torch.save({"model": drafter.state_dict(), "opts": [o.state_dict() for o in opts],
                "used": used, "step": step}, part)  # fmt: skip
    part.replace(path)
