"""Which kinds are weak? Share of exactly right answers per generator, on fresh draws."""

from __future__ import annotations

import random
from collections.abc import Callable

from tokenizers import Tokenizer

from .answers import greedy
from .corpus import code, facts, stories, sums, talk, units
from .corpus.words import Turn
from .target import Target
from .text import IM_END, prompt_text

Maker = Callable[[random.Random], list[Turn]]
KINDS: dict[str, Maker] = {
    "code held out": lambda r: [code.function(r, True)],
    "sums held out": lambda r: [sums.plain(r, True)],
    "problems held out": lambda r: [sums.problem(r, True)],
    "small sums": lambda r: [sums.small(r)],
    "units": lambda r: [units.question(r)],
    "units held out": lambda r: [units.question(r, True)],
    "facts held out": lambda r: [facts.lookup(r, test=True)],
    "calendar": lambda r: [facts.calendar(r)],
    "lists": lambda r: [facts.listing(r)],
    "stories held out": lambda r: [stories.story(r, True)],
    "poems": lambda r: [stories.poem(r)],
    "small talk": lambda r: [talk.small(r)],
    "names": lambda r: [talk.meet(r)],
    "far": lambda r: [talk.far(r)],
    "sums, then": sums.chain,
    "code, then": code.follow,
    "story, then": stories.follow,
    "fact, then": facts.follow,
    "joke, then": talk.joke,
}


def probe(
    target: Target, tokenizer: Tokenizer, each: int = 40, seed: int = 77
) -> dict[str, tuple[float, list[tuple[str, str, str]]]]:
    """Per kind: the share of exact answers and the wrong ones (question, wanted, got)."""
    rng = random.Random(seed)
    result = {}
    for kind, make in KINDS.items():
        prompts, wanted, asked = [], [], []
        for _ in range(each):
            turns = make(rng)
            text = prompt_text("", turns[:-1], turns[-1].user)
            prompts.append(tokenizer.encode(text, add_special_tokens=False).ids)
            wanted.append(turns[-1].answer)
            asked.append(" | ".join(turn.user for turn in turns))
        wrong = []
        for question, want, ids in zip(asked, wanted, greedy(target, prompts), strict=True):
            got = tokenizer.decode([i for i in ids if i != IM_END], skip_special_tokens=False)
            if got != want:
                wrong.append((question, want, got))
        result[kind] = (1 - len(wrong) / each, wrong)
    return result
