"""Counts how often verification by blocks equals one token at a time, exact and fast.

`python -m tests.tools.parity [--prompts 300] [--tokens 64] [--model DIR --draft DIR]`,
with and without `LD_PRELOAD=.../libopenblas.so.0`. Prints one JSON line per target: the hostile
near-tie one, then the pair (the embedded one by default).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.exact.verdict import prepare
from dfly_core.model.machine import blas
from dfly_core.model.pair import Pair, load_pair
from dfly_core.model.prompt import prompt_ids
from dfly_core.records.commands import GenerateOptions, Load, Message
from dfly_core.records.loaded import VerifyMode
from tests.exact.hostile import near_tie_pair
from tests.tiny import Propose, answer, cached_rows, half


@dataclass
class Count:
    """Of how many answers ids, and all K/V rows, equalled those of the target alone."""

    prompts: int = 0
    same_ids: int = 0
    same_rows: int = 0
    cycles: int = 0
    accepted: int = 0

    def add(self, plain: Context, other: Context, ids: tuple[list[int], list[int]]) -> None:
        self.prompts += 1
        if ids[0] == ids[1]:
            self.same_ids += 1
            self.same_rows += same_rows(plain, other)


def same_rows(one: Context, other: Context) -> bool:
    """Whether two contexts hold the same bits in every layer, as far as both have read.

    A block may end with its last token read, where one token at a time leaves it unread.
    """
    rows = slice(0, min(one.length, other.length))
    return abs(one.length - other.length) <= 1 and all(
        bool(mx.array_equal(a[:, :, rows].view(mx.uint16), b[:, :, rows].view(mx.uint16)).item())
        for mine, theirs in zip(one.target_cache, other.target_cache, strict=True)
        for a, b in zip(cached_rows(mine), cached_rows(theirs), strict=True)
    )


def prepared(pair: Pair, mode: VerifyMode, folder: Path) -> Pair:
    """The pair with its routes for `mode`."""
    for _ in prepare(pair, mode, folder):
        pass
    return pair


def count(
    pair: Pair, prompts: Sequence[Sequence[int]], tokens: int, scripted: bool
) -> dict[str, Count]:
    """Every prompt by the target alone, then by blocks in both modes.

    `scripted`: the drafter is right at a random 80 % of positions, so that blocks of every
    accepted length occur; else the pair's own drafter.
    """
    counts: dict[str, Count] = {"exact": Count(), "fast": Count()}
    with tempfile.TemporaryDirectory() as folder:
        for number, prompt in enumerate(prompts):
            plain = Context(pair)
            truth = answer(plain, prompt, GenerateOptions(max_tokens=tokens, width=0)).ids
            propose: Propose | None = half(truth, len(prompt), number, 0.8) if scripted else None
            for mode, found in (("exact", counts["exact"]), ("fast", counts["fast"])):
                prepared(pair, mode, Path(folder))  # type: ignore[arg-type]
                context = Context(pair)
                width = pair.widest
                options = GenerateOptions(max_tokens=tokens, width=width)
                got = answer(context, prompt, options, propose)
                found.add(plain, context, (truth, got.ids))
                found.cycles += sum(step.is_cycle for step in got.steps)
                found.accepted += sum(step.accepted for step in got.steps)
    return counts


def random_prompts(number: int, vocabulary: int) -> list[list[int]]:
    """Prompts of 4 to 40 random ids."""
    random = Random(7)
    return [
        [random.randrange(vocabulary) for _ in range(random.randint(4, 40))] for _ in range(number)
    ]


WORDS = (
    ("write a python function that", "what is", "tell me a story about", "convert", "hi,"),
    ("adds 3 to x", "12 + 30", "a small fox", "5 km to m", "doubles a number", "a dog and a ball"),
    ("", " please", "?", " and say why", " in one line"),
    ("", "now: ", "so, "),
)  # fmt: skip


def text_prompts(pair: Pair, number: int) -> list[list[int]]:
    """Small questions of the kinds the embedded pair knows."""
    texts = [f"{lead}{ask} {what}{end}" for ask, what, end, lead in product(*WORDS)]
    Random(3).shuffle(texts)
    return [prompt_ids(pair.tokenizer, [Message("user", text)]) for text in texts[:number]]


def main() -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--model")
    parser.add_argument("--draft")
    parser.add_argument("--only", choices=("near-ties", "pair"))
    args = parser.parse_args()
    runs: list[tuple[str, Pair, list[list[int]], bool]] = []
    if args.only != "pair":
        runs.append(("near ties", near_tie_pair(), random_prompts(args.prompts, 90), True))
    if args.only != "near-ties":
        pair = load_pair(Load(args.model, args.draft))
        runs.append(("pair", pair, text_prompts(pair, args.prompts), False))
    for name, pair, prompts, scripted in runs:
        with tempfile.TemporaryDirectory() as folder:
            prepared(pair, "exact", Path(folder))
        words = pair.verdict.words if pair.verdict else ""
        counts = count(pair, prompts, args.tokens, scripted)
        modes = {mode: vars(found) for mode, found in counts.items()}
        print(json.dumps({"target": name, "blas": blas(), **modes, "words": words}))
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
