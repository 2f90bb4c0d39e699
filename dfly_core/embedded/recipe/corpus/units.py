# ruff: noqa: E501  (word lists: splitting their lines would hide what belongs together)
"""Conversions with whole numbers, there and back."""

from __future__ import annotations

import random

from .sums import multiply
from .words import Turn, cap, held_out, pick, typed

# (large, small, small per large, names of the large, names of the small)
UNITS = [
    ("kilometers", "meters", 1000, ["km", "kilometers", "kilometres"], ["m", "meters", "metres"]),
    ("meters", "centimeters", 100, ["m", "meters", "metres"], ["cm", "centimeters"]),
    ("centimeters", "millimeters", 10, ["cm", "centimeters"], ["mm", "millimeters"]),
    ("kilograms", "grams", 1000, ["kg", "kilograms", "kilos"], ["g", "grams"]),
    ("liters", "milliliters", 1000, ["l", "liters", "litres"], ["ml", "milliliters"]),
    ("tons", "kilograms", 1000, ["tons", "t"], ["kg", "kilograms"]),
    ("hours", "minutes", 60, ["hours", "h"], ["minutes", "min"]),
    ("minutes", "seconds", 60, ["minutes", "min"], ["seconds", "s", "sec"]),
    ("days", "hours", 24, ["days"], ["hours", "h"]),
    ("weeks", "days", 7, ["weeks"], ["days"]),
    ("years", "months", 12, ["years"], ["months"]),
    ("feet", "inches", 12, ["feet", "ft"], ["inches"]),
    ("dozens", "items", 12, ["dozen", "dozens"], ["items", "pieces"]),
    ("dollars", "cents", 100, ["dollars"], ["cents"]),
    ("euros", "cents", 100, ["euros"], ["cents"]),
]
ASK = [
    "How many {y} are in {n} {x}?", "How many {y} are {n} {x}?", "{n} {x} in {y}",
    "{n} {x} in {y}?", "what is {n} {x} in {y}?", "how many {y} is {n} {x}",
    "how many {y} in {n} {x}", "{n} {x} to {y}", "how many {y} does {n} {x} have?",
    "how many {y} make {n} {x}?", "{n} {x} is how many {y}?", "{n} {x} = ? {y}",
    "What are {n} {x} in {y}?", "express {n} {x} in {y}", "how much is {n} {x} in {y}?",
    "give me {n} {x} in {y}", "how long is {n} {x} in {y}?", "what's {n} {x} as {y}",
    "{n} {x}, what is that in {y}?", "something takes {n} {x}. In {y}?", "how many {y} do {n} {x} make?",
    "a thing has {n} {x}: how many {y}?", "if it is {n} {x}, how many {y} is it?", "{n} {x} = {y}?",
    "do you know how many {y} {n} {x} have?", "what are {n} {x} when counted in {y}?",
    "I have {n} {x}. How many {y} is that?", "in {y}, what is {n} {x}?",
]  # fmt: skip
ORDER = [
    "Convert {n} {x} to {y}.", "convert {n} {x} into {y}", "change {n} {x} to {y}",
    "Turn {n} {x} into {y}.", "write {n} {x} in {y}", "switch {n} {x} to {y}",
]  # fmt: skip
SINGLE = {
    "kilometers": "kilometer", "meters": "meter", "centimeters": "centimeter",
    "kilograms": "kilogram", "liters": "liter", "tons": "ton", "hours": "hour",
    "minutes": "minute", "days": "day", "weeks": "week", "years": "year", "feet": "foot",
    "dozens": "dozen", "dollars": "dollar", "euros": "euro",
}  # fmt: skip


def question(rng: random.Random, test: bool = False) -> Turn:
    """One conversion, mostly from the large unit to the small one."""
    while True:
        large, small, factor, xs, ys = rng.choice(UNITS)
        n = rng.randrange(1, 13) if factor in (60, 24, 7, 12) else rng.randrange(1, 50)
        if rng.random() < 0.15:
            n = 1
        back = rng.random() < 0.3
        # One of anything and the small tables are facts: only the rest can be held out.
        if (n > 12 and held_out("unit", large, small, n)) == test:
            break
    x, y = pick(rng, xs), pick(rng, ys)
    total = n * factor
    one = SINGLE[large]
    head = f"1 {one} is {factor} {small}."
    if back:
        frames = ORDER if rng.random() < 0.25 else ASK
        text = pick(rng, frames).format(n=total, x=y, y=x)
        said = one if n == 1 else large
        answer = f"{head} {total} / {factor} = {n}, so {total} {small} are {n} {said}."
    else:
        if n == 1 and len(x) > 2 and x.endswith(("s", "feet")):
            x = one
        frames = ORDER if rng.random() < 0.25 else ASK
        text = pick(rng, frames).format(n=n if n > 1 or rng.random() < 0.5 else "a", x=x, y=y)
        if n == 1:
            answer = head
        else:
            steps = multiply(n, factor)[:-1].split(". So ")[0]
            answer = f"{head} {steps}, so {n} {large} are {total} {small}."
    return Turn(typed(rng, cap(text), keep=(x, y), order=frames is ORDER), answer)
