"""The figures of the card: right answers and mean accepted length on the evaluation prompts."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from .answers import greedy
from .check import right
from .drafter import Drafter
from .target import Target
from .text import END_OF_TEXT, IM_END, prompt_text

PROMPTS = Path(__file__).with_name("eval_prompts.jsonl")


@torch.no_grad()
def speculate(
    target: Target, drafter: Drafter, prompt: list[int], limit: int = 200
) -> tuple[list[int], int, list[list[int]]]:
    """Greedy speculative decoding, uncached: ids, cycles, and [accepted, verified] per row."""
    k = drafter.config.block_size
    taps: list[torch.Tensor] = []
    hidden = target(torch.tensor([prompt]), taps=taps)
    ids = [*prompt, int(target.logits(hidden[:, -1]).argmax())]
    cycles, rows = 0, [[0, 0] for _ in range(k - 1)]
    stops = (IM_END, END_OF_TEXT)
    while ids[-1] not in stops and len(ids) - len(prompt) < limit:
        anchor = len(ids) - 1
        features = torch.cat([taps[i] for i in drafter.config.target_layer_ids], -1)
        features = features[:, :anchor]
        block_ids = torch.tensor([[ids[-1]] + [drafter.config.mask_token_id] * (k - 1)])
        states = drafter(features, target.embed_tokens(block_ids), torch.tensor([[anchor]]))[0]
        token, proposed = ids[-1], []
        for state in states[1:]:
            if drafter.hidden_correction is not None:
                state = drafter.hidden_correction(state, target.embed_tokens.weight[token])
            token = int(F.linear(state, target.embed_tokens.weight).argmax())
            proposed.append(token)
        taps = []
        hidden = target(torch.tensor([ids + proposed]), taps=taps)
        own = target.logits(hidden[0, anchor:]).argmax(-1).tolist()
        accepted = 0
        while accepted < k - 1 and proposed[accepted] == own[accepted]:
            rows[accepted][0] += 1
            rows[accepted][1] += 1
            accepted += 1
        if accepted < k - 1:
            rows[accepted][1] += 1
        cycles += 1
        for new in own[: accepted + 1]:
            ids.append(new)
            if new in stops or len(ids) - len(prompt) >= limit:
                break
    return ids[len(prompt) :], cycles, rows


def evaluate(
    target: Target, tokenizer: Tokenizer, drafters: dict[str, Drafter], show: bool = False
) -> dict[str, Any]:
    """Right answers per category and kind; mean accepted length for every drafter."""
    cases = [json.loads(line) for line in PROMPTS.read_text().splitlines()]
    prompts = [
        tokenizer.encode(prompt_text("", [], c["prompt"]), add_special_tokens=False).ids
        for c in cases
    ]
    answers = greedy(target, prompts, 200)
    good: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for case, ids in zip(cases, answers, strict=True):
        text = tokenizer.decode([i for i in ids if i != IM_END], skip_special_tokens=False)
        ok = right(text, case["check"])
        for key in (case["category"], case["kind"], "all", f"{case['category']} {case['kind']}"):
            good[key][0] += ok
            good[key][1] += 1
        if show and not ok:
            print(f"WRONG {case['id']} {case['prompt']!r} -> {text!r}")
    result: dict[str, Any] = {"right": dict(good)}
    for name, drafter in drafters.items():
        emitted: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        rows = [[0, 0] for _ in range(drafter.config.block_size - 1)]
        equal = 0
        for case, prompt, plain in zip(cases, prompts, answers, strict=True):
            ids, cycles, seen = speculate(target, drafter, prompt)
            equal += ids == plain
            for key in (case["category"], case["kind"], "all"):
                # The first token comes from the prompt's own pass, not from a cycle.
                emitted[key][0] += len(ids) - 1
                emitted[key][1] += cycles
            for total, new in zip(rows, seen, strict=True):
                total[0] += new[0]
                total[1] += new[1]
        result[name] = {
            "mean_accepted_length": {k: round(a / max(b, 1), 3) for k, (a, b) in emitted.items()},
            "acceptance_given_reached": [round(a / max(b, 1), 3) for a, b in rows],
            "equal_to_plain_greedy": equal,
        }
    return result
