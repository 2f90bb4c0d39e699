"""Writes eval_prompts.jsonl: 60 held-out draws and 30 prompts written by hand.

The file was drawn once, from the first version of the generators, and kept when they grew.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from .corpus import code, facts, sums, talk, units
from .corpus import stories as tales

OUT = Path(__file__).with_name("eval_prompts.jsonl")
Row = dict[str, Any]


def cases(name: str, constant: object = None) -> Row:
    """The tests of a task, as a check."""
    task = code.BY_NAME[name]
    return {"kind": "code", "cases": [[list(args), want] for args, want in task.cases(constant)]}


def number(value: int) -> Row:
    """The last number of the answer."""
    return {"kind": "number", "value": value}


def has(*words: str) -> Row:
    """Every word occurs."""
    return {"kind": "all", "words": list(words)}


def some(*words: str) -> Row:
    """At least one word occurs."""
    return {"kind": "any", "words": list(words)}


def story(*words: str) -> Row:
    """At least four sentences, with every word."""
    return {"kind": "story", "words": list(words)}


CODE = [
    ("Could I get some Python that tells me whether a given integer is even?", cases("is_even")),
    ("hey there, mind writing a def that flips a string around so it reads from the end?",
     cases("reverse")),
    ("I've got a list of numbers and want the biggest one. Python function please.",
     cases("largest")),
    ("Please whip up a Python routine for factorials.", cases("factorial")),
    ("My list has repeats in it. Give me Python to throw the duplicates out.", cases("unique")),
    ("What would a Python function look like that counts how many vowels are in a word?",
     cases("count_vowels")),
    ("Need a tiny function in python: takes two numbers, hands back their product.",
     cases("multiply")),
    ("python, palindromes: how do I test for them?", cases("is_palindrome")),
    ("Can you code something that adds up everything in a list of numbers?", cases("sum_list")),
    ("I'm learning Python. How would one turn a temperature in Celsius into Fahrenheit with a "
     "function?", cases("to_fahrenheit")),
]  # fmt: skip
MATH = [
    ("I had 27 euros and my grandma gave me 15 on top. What do I have now?", number(42)),
    ("can you work out 64 take off 28", number(36)),
    ("In my garden grow 34 tulips, yesterday 19 more opened up. How many tulips bloom?",
     number(53)),
    ("what do 7 and 8 make when you multiply them", number(56)),
    ("How many minutes would 3 hours be?", number(180)),
    ("If a rope is 4 meters long, how many centimeters does it measure?", number(400)),
    ("Which city serves as the capital of Japan?", has("Tokyo")),
    ("Say a word that means the opposite of heavy.", has("light")),
    ("Hmm, if today is Tuesday, what will tomorrow be?", has("Wednesday")),
    ("Could you figure out what 45 plus 38 comes to?", number(83)),
]  # fmt: skip
TALES = [
    ("Would you spin me a yarn about a hedgehog called Berta?", story("hedgehog", "Berta")),
    ("It's bedtime. Something about a dragon who lives in a cave, please!",
     story("dragon", "cave")),
    ("my daughter loves penguins, could you come up with a story for her", story("penguin")),
    ("Think of an adventure for a curious mouse, Nibbles is its name", story("mouse", "Nibbles")),
    ("There's a robot called Zed in a library. What happens?", story("robot", "Zed", "library")),
    ("Hello! Nice to see you. How has your day been?", some("fine", "hello", "hi!")),
    ("I'm Konrad, pleased to meet you", has("Konrad")),
    ("got something to make me giggle?", some("why did", "why was", "what do you call", "how do",
                                              "why are")),
    ("Thank you so much, that was really helpful!", has("welcome")),
    ("feeling kind of gloomy this evening", some("sorry")),
]  # fmt: skip


def held_out(rng: random.Random) -> list[Row]:
    """Twenty of each category, from the slots that training skips."""
    rows: list[Row] = []
    used: set[str] = set()
    while len(rows) < 20:
        turn, task, constant, _ = code.request(rng, test=True)
        if task.name not in used:
            used.add(task.name)
            rows.append(row("code", turn.user, cases(task.name, constant)))
    for i in range(20):
        if i < 8:
            turn = sums.plain(rng, test=True)
        elif i < 12:
            turn = sums.problem(rng, test=True)
        elif i < 15:
            turn = units.question(rng, test=True)
        else:
            kind = ["capital", "opposite", "colour", "young", "capital"][i - 15]
            turn = facts.lookup(rng, kind, test=True)
            value = turn.answer.rstrip(".").split(" ")[-1]
            rows.append(row("math", turn.user, has(value)))
            continue
        rows.append(row("math", turn.user, number(last_number(turn.answer))))
    for i in range(20):
        if i < 15:
            turn = tales.story(rng, test=True)
            words = turn.answer.split(" named ")
            who = words[0].split(" ")[-1]
            rows.append(row("story", turn.user, story(who, words[1].split(".")[0])))
        else:
            who = ["Belinda", "Tavo", "Marek", "Suki", "Gregor"][i - 15]
            rows.append(row("story", talk.meet(rng, who).user, has(who)))
    return rows


def row(category: str, prompt: str, check: Row, kind: str = "heldout") -> Row:
    """One line of the file."""
    return {"category": category, "kind": kind, "prompt": prompt, "check": check}


def last_number(text: str) -> int:
    """The last whole number."""
    import re

    return int(re.findall(r"(?<![\d.])-?\d+", text)[-1])


def main() -> None:
    """Fixed seed: the file never changes between runs."""
    rows = held_out(random.Random(20))
    for category, prompts in (("code", CODE), ("math", MATH), ("story", TALES)):
        rows += [row(category, prompt, check, "handwritten") for prompt, check in prompts]
    rows.sort(key=lambda r: (["code", "math", "story"].index(r["category"]), r["kind"]))
    named = [{"id": f"{r['category']}-{i % 30 + 1:02}", **r} for i, r in enumerate(rows)]
    lines = [json.dumps(r) for r in named]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
