"""The recipe, without torch: nobody trains on an evaluation prompt, and the checker checks."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from dfly_core.embedded import recipe
from dfly_core.embedded.recipe.check import right
from dfly_core.embedded.recipe.corpus import code, mix
from dfly_core.embedded.recipe.corpus.words import held_out, same

PROMPTS = [
    json.loads(line)
    for line in (Path(recipe.__file__).parent / "eval_prompts.jsonl").read_text().splitlines()
]


def test_ninety_prompts_thirty_by_hand() -> None:
    assert len(PROMPTS) == 90
    for category in ("code", "math", "story"):
        rows = [p for p in PROMPTS if p["category"] == category]
        assert len(rows) == 30
        assert sum(p["kind"] == "handwritten" for p in rows) == 10
    assert len({p["id"] for p in PROMPTS}) == len({same(p["prompt"]) for p in PROMPTS}) == 90


def test_training_never_draws_an_evaluation_prompt() -> None:
    never = {same(p["prompt"]) for p in PROMPTS}
    rng = random.Random(99)
    for _ in range(3000):
        assert not any(same(turn.user) in never for turn in mix.conversation(rng)[1])


def test_no_generator_has_the_handwritten_wordings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard too: the wordings themselves are unknown to the generators."""
    monkeypatch.setattr(mix, "NEVER", set())
    by_hand = {same(p["prompt"]) for p in PROMPTS if p["kind"] == "handwritten"}
    rng = random.Random(98)
    for _ in range(3000):
        assert not any(same(turn.user) in by_hand for turn in mix.conversation(rng)[1])


@pytest.mark.parametrize("name", ["add", "is_prime", "print_numbers"])
def test_a_right_function_passes_and_a_wrong_one_fails(name: str) -> None:
    task = code.BY_NAME[name]
    constant = task.constants[0] if task.constants else None
    cases = [[list(args), want] for args, want in task.cases(constant)]
    answer = code.answer(task, constant)
    assert right(answer, {"kind": "code", "cases": cases})
    wrong = answer.replace("return", "pass  #").replace("print", "str")
    assert not right(wrong, {"kind": "code", "cases": cases})


def test_checker_reads_numbers_words_and_stories() -> None:
    assert right("38 + 40 = 78, 78 + 5 = 83.", {"kind": "number", "value": 83})
    assert not right("83, no: 84", {"kind": "number", "value": 83})
    assert right("The capital is Paris.", {"kind": "all", "words": ["paris"]})
    assert not right("A fox. Pip.", {"kind": "story", "words": ["fox", "pip"]})


def test_held_out_slots_are_few_and_fixed() -> None:
    share = sum(held_out("sum", "+", a, b) for a in range(100) for b in range(100)) / 10000
    assert 0.03 < share < 0.07
    assert held_out("sum", "+", 1, 2) == held_out("SUM", "+", 1, 2)
