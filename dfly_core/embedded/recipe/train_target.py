"""Trains the target on freshly drawn conversations until a fixed amount of time is used."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from .corpus.mix import conversation
from .optim import optimizers, set_rate
from .target import Target, TargetConfig
from .text import encode

PROMPT_WEIGHT = 0.1
RATES = [0.012, 0.004]


# Few shapes: every new one costs oneDNN fresh kernels, which halved the speed and ate memory.
WIDTHS = (24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 112, 128, 144, 160, 176, 192, 216, 240, 272, 304,
          340, 384, 440, 512, 600, 700, 820, 1000)  # fmt: skip


def shape(length: int) -> int:
    """The width a document of this length is padded to."""
    return next(width for width in WIDTHS if width >= length)


def batches(tokenizer: Tokenizer, rng: random.Random, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Ids and loss weights, padded right, documents of like length together, about `size` ids."""
    while True:
        pool = []
        for _ in range(3000):
            ids, own = encode(tokenizer, *conversation(rng))
            pool.append((ids[:1000], own[:1000]))
        pool.sort(key=lambda doc: len(doc[0]))
        groups: list[list[tuple[list[int], list[int]]]] = [[]]
        for doc in pool:
            width = shape(len(doc[0]))
            if groups[-1] and (
                width != shape(len(groups[-1][0][0])) or len(groups[-1]) == size // width
            ):
                groups.append([])
            groups[-1].append(doc)
        rng.shuffle(groups)
        for docs in groups:
            width = shape(len(docs[0][0]))
            ids = torch.zeros(size // width, width, dtype=torch.long)
            weight = torch.zeros(size // width, width)
            for row, (doc, own) in enumerate(docs):
                ids[row, : len(doc)] = torch.tensor(doc)
                weight[row, : len(doc)] = torch.tensor(own) * (1 - PROMPT_WEIGHT) + PROMPT_WEIGHT
            yield ids, weight


def loss_of(model: Target, ids: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted loss, and the loss of the model's own words alone (without gradient)."""
    hidden = model(ids[:, :-1])
    each = F.cross_entropy(model.logits(hidden).flatten(0, 1), ids[:, 1:].flatten(),
                           reduction="none")  # fmt: skip
    w = weight[:, 1:].flatten()
    own = (w > 0.5).float()
    return (each * w).sum() / w.sum(), ((each * own).sum() / own.sum()).detach()


def factor(done: float) -> float:
    """Short warm-up, flat, then linear to zero over the last half; `done` is a fraction of time.

    After three fifths it is halved besides: the matrices were still shaking.
    """
    if done < 0.5:
        return min(1.0, done / 0.01)
    return max(0.0, (1.0 - done) / 0.5) * (0.5 if done > 0.6 else 1.0)


def train(
    tokenizer: Tokenizer, work: Path, minutes: float, seed: int = 7, size: int = 3072,
    compiled: bool = False,
) -> Target:  # fmt: skip
    """Resumes from `work/target.pt`; time already used counts."""
    torch.manual_seed(seed)
    model = Target(TargetConfig(vocab_size=tokenizer.get_vocab_size()))
    opts = optimizers(model, *RATES)
    used, step, tokens, documents = 0.0, 0, 0, 0
    checkpoint = work / "target.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        for opt, state in zip(opts, saved["opts"], strict=True):
            opt.load_state_dict(state)
        used, step = saved["used"], saved["step"]
        tokens, documents = saved["tokens"], saved["documents"]
    rng = random.Random(seed * 1000 + step)
    run = torch.compile(loss_of, dynamic=True) if compiled else loss_of
    begun, last_save, total = time.time() - used, time.time(), minutes * 60
    mean = 0.0
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    for ids, weight in batches(tokenizer, rng, size):
        done = (time.time() - begun) / total
        if done >= 1:
            break
        if stopped:
            save(checkpoint, model, opts, time.time() - begun, step, tokens, documents)
            raise SystemExit("stopped; the same command goes on from here")
        set_rate(opts, RATES, factor(done))
        with torch.autocast("cpu", torch.bfloat16):  # matrices only; weights and sums stay float32
            loss, own = run(model, ids, weight)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in opts:
            opt.step()
            opt.zero_grad(set_to_none=True)
        step, tokens = step + 1, tokens + int((weight > 0).sum())
        documents += int((weight[:, 0] > 0).sum())
        mean = float(own) if not mean else 0.95 * mean + 0.05 * float(own)
        if step % 25 == 0:
            rate = tokens / (time.time() - begun)
            print(f"step {step} done {done:.3f} loss {mean:.4f} documents {documents} "
                  f"tokens/s {rate:.0f}", flush=True)  # fmt: skip
        if time.time() - last_save > 240:
            save(checkpoint, model, opts, time.time() - begun, step, tokens, documents)
            last_save = time.time()
    save(checkpoint, model, opts, total, step, tokens, documents)
    return model


def save(path: Path, model: Target, opts: list[torch.optim.Optimizer], used: float, step: int,
         tokens: int, documents: int) -> None:  # fmt: skip
    """Beside first, then renamed, so that an interrupted run keeps its last checkpoint."""
    part = path.with_suffix(".part")
    torch.save({"model": model.state_dict(), "opts": [o.state_dict() for o in opts], "used": used,
                "step": step, "tokens": tokens, "documents": documents}, part)  # fmt: skip
    part.replace(path)
