"""Puts the generators together: one conversation per draw, in fixed proportions."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from . import code, facts, stories, sums, talk, units
from .words import Turn, same

SYSTEMS = [
    "You are a helpful assistant.", "You are a friendly assistant.", "Answer briefly.",
    "You are a helpful coding assistant.", "Be kind and short.", "You are DFly.",
    "You are a chat model in a terminal.", "Help the user.",
]  # fmt: skip


_EVALUATION = Path(__file__).parents[1] / "eval_prompts.jsonl"
NEVER = (
    {same(json.loads(line)["prompt"]) for line in _EVALUATION.read_text().splitlines()}
    if _EVALUATION.exists()
    else set()
)


# The weak kinds have larger shares than their use would give them; the rest is small talk.
SHARES: list[tuple[float, Callable[[random.Random], Turn]]] = [
    (0.14, code.function),
    (0.16, sums.plain),
    (0.09, sums.problem),
    (0.06, sums.small),
    (0.07, units.question),
    (0.10, facts.lookup),
    (0.04, facts.calendar),
    (0.05, facts.listing),
    (0.12, stories.story),
    (0.02, stories.poem),
    (0.10, talk.small),
]


def single(rng: random.Random) -> list[Turn]:
    """One question, of any kind."""
    draw = rng.random()
    for share, make in SHARES:
        draw -= share
        if draw < 0:
            return [make(rng)]
    return [talk_turn(rng)]


def talk_turn(rng: random.Random) -> Turn:
    """Jokes, names, likes and what is out of reach."""
    draw = rng.randrange(8)
    if draw < 3:
        return talk.joke(rng)[0]
    if draw < 5:
        return talk.meet(rng)
    if draw == 5:
        return talk.like(rng)
    return talk.far(rng) if draw == 6 else talk.remember(rng)


def related(rng: random.Random) -> list[Turn]:
    """Turns that need the turn before."""
    draw = rng.randrange(11)
    if draw < 3:
        return sums.chain(rng)
    if draw < 5:
        return code.follow(rng)
    if draw < 7:
        return stories.follow(rng)
    if draw < 9:
        return facts.follow(rng)
    if draw == 9:
        return talk.joke(rng)
    met = talk.meet(rng)
    who = met.answer.split("you, ")[1].split("!")[0]
    between = single(rng) if rng.random() < 0.5 else []
    return [met, *between, Turn(talk.remember(rng).user, f"Your name is {who}.")]


def conversation(rng: random.Random) -> tuple[str, list[Turn]]:
    """A system prompt (often empty) and turns, none of them an evaluation prompt."""
    while True:
        system, turns = _draw(rng)
        if not any(same(turn.user) in NEVER for turn in turns):
            return system, turns


def _draw(rng: random.Random) -> tuple[str, list[Turn]]:
    system = SYSTEMS[rng.randrange(len(SYSTEMS))] if rng.random() < 0.12 else ""
    draw = rng.random()
    if draw < 0.62:
        return system, single(rng)
    if draw < 0.86:
        turns = related(rng)
        if rng.random() < 0.3:
            turns = single(rng) + turns
        return system, turns
    turns = []
    for _ in range(rng.randrange(2, 5) if rng.random() < 0.8 else rng.randrange(5, 9)):
        turns += single(rng) if rng.random() < 0.75 else related(rng)
    return system, turns
