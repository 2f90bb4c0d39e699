"""Greedy answers of the target, many conversations at once: what the drafter learns from."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from tokenizers import Tokenizer

from .corpus.mix import conversation
from .export import read_target
from .target import Cache, Target, TargetConfig
from .text import END_OF_TEXT, IM_END, prompt_text


@torch.no_grad()
def greedy(model: Target, prompts: Sequence[list[int]], limit: int = 200) -> list[list[int]]:
    """Greedy continuations, stop id included; prompts of any length, padded on the left."""
    count, width = len(prompts), max(map(len, prompts))
    ids = torch.zeros(count, width, dtype=torch.long)
    real = torch.zeros(count, width, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        real[row, width - len(prompt) :] = True
    positions = (real.long().cumsum(1) - 1).clamp(min=0)
    # Padding rows see themselves, or their softmax would be empty.
    causal = torch.ones(width, width, dtype=torch.bool).tril()
    mask = (real[:, None, :] & causal[None]) | torch.eye(width, dtype=torch.bool)[None]
    cache = [Cache() for _ in model.layers]
    hidden = model(ids, positions, cache, mask[:, None])
    token = model.logits(hidden[:, -1]).argmax(-1)
    at = positions[:, -1] + 1
    out: list[list[int]] = [[] for _ in prompts]
    alive = torch.arange(count)
    going = torch.ones(count, dtype=torch.bool)
    for _ in range(limit):
        for row, new, goes in zip(alive.tolist(), token.tolist(), going.tolist(), strict=True):
            if goes:
                out[row].append(new)
        going &= (token != IM_END) & (token != END_OF_TEXT)
        if not going.any():
            break
        if going.float().mean() < 0.8:  # finished rows run along until they are worth dropping
            alive, token, at, real = alive[going], token[going], at[going], real[going]
            for layer in cache:
                layer.keep(going)
            going = going[going]
        real = torch.cat([real, torch.ones(len(real), 1, dtype=torch.bool)], 1)
        hidden = model(token[:, None], at[:, None], cache, real[:, None, None])
        token = model.logits(hidden[:, -1]).argmax(-1)
        at = at + 1
    return out


def collect(
    model: Target, tokenizer: Tokenizer, count: int, seed: int, seconds: float, batch: int = 128
) -> list[tuple[list[int], int]]:
    """(ids, prompt length) of up to `count` answered prompts, within a time limit."""
    rng = random.Random(seed)
    made: list[tuple[list[int], int]] = []
    begun = time.time()
    while len(made) < count and time.time() - begun < seconds:
        pool = []
        for _ in range(batch * 8):
            system, turns = conversation(rng)
            text = prompt_text(system, turns[:-1], turns[-1].user)
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            if len(ids) < 400:
                pool.append(ids)
        pool.sort(key=len)
        groups = [pool[i : i + batch] for i in range(0, len(pool), batch)]
        rng.shuffle(groups)
        for group in groups:
            if len(made) >= count or time.time() - begun > seconds:
                break
            for prompt, answer in zip(group, greedy(model, group), strict=True):
                made.append((prompt + answer, len(prompt)))
        print(f"answers {len(made)} after {time.time() - begun:.0f} s", flush=True)
    return made


def _part(job: tuple[Path, str, int, int, float]) -> list[tuple[list[int], int]]:
    folder, tokenizer, count, seed, seconds = job
    torch.set_num_threads(1)
    made = Tokenizer.from_str(tokenizer)
    target = read_target(folder, Target(TargetConfig(vocab_size=made.get_vocab_size())))
    return collect(target, made, count, seed, seconds)


def in_two_processes(
    folder: Path, tokenizer: Tokenizer, count: int, seconds: float
) -> list[tuple[list[int], int]]:
    """One thread each: on two shared cores faster than two threads in one process."""
    jobs = [(folder, tokenizer.to_str(), count // 2, seed, seconds) for seed in (5, 6)]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return [sample for part in pool.map(_part, jobs) for sample in part]
