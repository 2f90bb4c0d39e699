"""Sampling draws from the target's own distribution, whatever is proposed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mlx.core as mx
import pytest

from dfly_core.engine import cycle
from dfly_core.engine.context import Context
from dfly_core.engine.generate import generate
from dfly_core.engine.propose import propose
from dfly_core.engine.sampling import GREEDY, Chooser, chooser
from dfly_core.model.config import drafter_config
from dfly_core.model.drafter import Drafter
from dfly_core.model.pair import Pair
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.errors import Usage
from dfly_core.records.step import Step
from tests.tiny import BLOCK, Propose, answer, draft_config, half, make_pair, make_target, randomize

VOCAB, PROMPT, TOKENS = 4, [1, 2, 0], 3
SETTINGS: dict[str, GenerateOptions] = {
    "temperature 1.5": GenerateOptions(max_tokens=TOKENS, temperature=1.5),
    "top-p 0.8": GenerateOptions(max_tokens=TOKENS, temperature=2.0, top_p=0.8),
    "top-k 2": GenerateOptions(max_tokens=TOKENS, temperature=2.0, top_k=2),
}


@pytest.fixture(scope="module")
def small() -> Pair:
    """A pair with four tokens, so that all 64 answers of three tokens can be listed."""
    pair = make_pair(seed=3)
    pair.target = make_target(seed=4, vocab_size=VOCAB)
    pair.drafter = Drafter(drafter_config(draft_config(vocab_size=VOCAB, mask_token_id=VOCAB - 1)))
    randomize(pair.drafter, 5)
    pair.info = pair.info.__class__(**{**vars(pair.info), "vocab_size": VOCAB})
    return pair


def probabilities(logits: Sequence[float], options: GenerateOptions) -> list[float]:
    """The definition, in plain Python: temperature, then top-k, then top-p."""
    weights = [math.exp(x / options.temperature) for x in logits]
    order = sorted(range(len(weights)), key=lambda i: -weights[i])
    if options.top_k:
        for i in order[options.top_k :]:
            weights[i] = 0.0
    total, before, kept = sum(weights), 0.0, set()
    for i in order:
        if before < options.top_p * total:
            kept.add(i)
        before += weights[i]
    weights = [w if i in kept else 0.0 for i, w in enumerate(weights)]
    return [w / sum(weights) for w in weights]


def exact_table(pair: Pair, options: GenerateOptions) -> dict[tuple[int, ...], float]:
    """The probability of every answer, one row at a time, by mlx-lm's own model."""
    table: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(TOKENS):
        longer: dict[tuple[int, ...], float] = {}
        for known, chance in table.items():
            logits: Any = pair.target.model(mx.array([[*PROMPT, *known]]))[0, -1].tolist()
            for token, p in enumerate(probabilities(logits, options)):
                longer[(*known, token)] = chance * p
        table = longer
    return table


def draw(
    pair: Pair, options: GenerateOptions, count: int, draft: str = "one-hot"
) -> Counter[tuple[int, ...]]:
    """Answers under the seeds 0..count-1."""
    found: Counter[tuple[int, ...]] = Counter()
    context = Context(pair)
    for seed in range(count):
        seeded = GenerateOptions(**{**vars(options), "seed": seed, "width": 2})
        drawn_with = chooser(seeded, VOCAB) if draft == "sampled" else GREEDY
        proposals = partial(propose, chooser=drawn_with)
        steps = [
            event
            for event in generate(context, PROMPT, seeded, lambda: False, proposals)
            if isinstance(event, Step)
        ]
        found[tuple(token.id for step in steps for token in step.emitted)] += 1
    return found


def chi_square_p(found: Counter[tuple[int, ...]], table: dict[tuple[int, ...], float]) -> float:
    """p of the found counts under the table; cells expected under 5 times are put together."""
    count = sum(found.values())
    cells, rare = [], [0.0, 0.0]
    for key, chance in table.items():
        if chance * count >= 5:
            cells.append((float(found[key]), chance * count))
        else:
            rare = [rare[0] + found[key], rare[1] + chance * count]
            if chance == 0.0 and found[key]:
                return 0.0
    if rare[1] > 0:
        cells.append((rare[0], rare[1]))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    freedom = len(cells) - 1
    # Wilson and Hilferty: the cube root of chi-square / freedom is nearly normal.
    scale = 2 / (9 * freedom)
    z = ((statistic / freedom) ** (1 / 3) - (1 - scale)) / math.sqrt(scale)
    return 0.5 * math.erfc(z / math.sqrt(2))


@pytest.mark.parametrize(
    ("draft", "setting"),
    [
        ("one-hot", "temperature 1.5"),
        ("one-hot", "top-p 0.8"),
        ("sampled", "temperature 1.5"),
        ("sampled", "top-k 2"),
    ],
)
def test_three_tokens_are_distributed_as_the_target_alone(
    small: Pair, setting: str, draft: str
) -> None:
    options = SETTINGS[setting]
    found = draw(small, options, 200, draft)
    assert chi_square_p(found, exact_table(small, options)) > 0.001


def test_the_table_is_a_real_test(small: Pair) -> None:
    table = exact_table(small, SETTINGS["temperature 1.5"])
    assert sum(table.values()) == pytest.approx(1.0)
    assert max(table.values()) < 0.5
    assert sum(chance > 0.005 for chance in table.values()) > 15
    assert sum(c == 0 for c in exact_table(small, SETTINGS["top-k 2"]).values()) == 64 - 8


def accept_all(proposals: Sequence[int], choices: Sequence[int]) -> int:
    return len(proposals)


def accept_one_more(proposals: Sequence[int], choices: Sequence[int]) -> int:
    """Typical acceptance of a kind: a first proposal is taken whatever the target drew."""
    return max(min(1, len(proposals)), real_accept(proposals, choices))


real_accept = cycle.accept


@pytest.mark.parametrize("rule", [accept_all, accept_one_more])
def test_a_wrong_acceptance_rule_is_found_out(
    small: Pair, rule: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle, "accept", rule)
    options = SETTINGS["temperature 1.5"]
    found = draw(small, options, 180)
    assert chi_square_p(found, exact_table(small, options)) < 1e-6


def test_noise_that_forgets_the_position_is_found_out(
    small: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Chooser.noise
    monkeypatch.setattr(Chooser, "noise", lambda self, position: real(self, 0))
    options = SETTINGS["temperature 1.5"]
    found = draw(small, options, 180)
    assert chi_square_p(found, exact_table(small, options)) < 1e-6


DRAWN = GenerateOptions(max_tokens=25, temperature=0.9, top_p=0.95, seed=11)
LONG_PROMPT = [5, 17, 3, 88, 41, 2, 60]


@pytest.fixture(scope="module")
def pair() -> Pair:
    return make_pair(seed=2)


@pytest.fixture(scope="module")
def plain(pair: Pair) -> list[int]:
    options = GenerateOptions(**{**vars(DRAWN), "width": 0})
    return answer(Context(pair), LONG_PROMPT, options).ids


@pytest.mark.parametrize("width", [*range(BLOCK), None])
@pytest.mark.parametrize("kind", ["own", "sampled", "half right"])
def test_a_seed_draws_the_same_text_at_every_width_and_from_every_drafter(
    pair: Pair, plain: list[int], width: int | None, kind: str
) -> None:
    options = GenerateOptions(**{**vars(DRAWN), "width": width})
    drafters: dict[str, Propose] = {
        "own": propose,
        "sampled": partial(propose, chooser=chooser(DRAWN, pair.info.vocab_size)),
        "half right": half([*plain, *[0] * BLOCK], len(LONG_PROMPT)),
    }
    found = answer(Context(pair), LONG_PROMPT, options, drafters[kind])
    assert found.ids == plain
    if kind == "half right" and width:
        assert any(step.accepted for step in found.steps)


def test_other_seeds_draw_other_texts_and_no_seed_a_new_one(pair: Pair, plain: list[int]) -> None:
    def text(seed: int | None) -> tuple[int, ...]:
        options = GenerateOptions(**{**vars(DRAWN), "seed": seed})
        return tuple(answer(Context(pair), LONG_PROMPT, options).ids)

    assert len({text(1), text(2), text(2**32 + 3), tuple(plain), text(None), text(None)}) == 6


def test_temperature_0_takes_the_best_whatever_else_is_asked(pair: Pair) -> None:
    options = GenerateOptions(max_tokens=20, top_p=0.1, top_k=3, seed=4)
    assert (
        answer(Context(pair), LONG_PROMPT, options).ids
        == answer(Context(pair), LONG_PROMPT, GenerateOptions(max_tokens=20)).ids
    )


def test_a_very_low_temperature_is_nearly_greedy(pair: Pair) -> None:
    greedy = answer(Context(pair), LONG_PROMPT, GenerateOptions(max_tokens=20)).ids
    cold = GenerateOptions(max_tokens=20, temperature=1e-4, seed=1)
    assert answer(Context(pair), LONG_PROMPT, cold).ids == greedy


def test_drafts_drawn_with_the_same_noise_agree_more_often_than_best_guesses() -> None:
    """When the draft's distribution is near the target's, at temperature 1 and above."""
    wide = Chooser(VOCAB * 8, temperature=1.0, seed=3)
    key, other = mx.random.split(mx.random.key(0))
    target = mx.random.normal((2000, VOCAB * 8), key=key)
    draft = target + 0.2 * mx.random.normal(target.shape, key=other)
    drawn = wide.choose(target, 0)
    shared = mx.mean(wide.choose(draft, 0) == drawn).item()
    best = mx.mean(mx.argmax(draft, axis=-1) == drawn).item()
    assert shared > 0.7  # type: ignore[operator]
    assert best < 0.4  # type: ignore[operator]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": -1.0}, "temperature -1.0"),
        ({"temperature": float("nan")}, "temperature nan"),
        ({"temperature": float("inf")}, "temperature inf"),
        ({"top_p": 0.0}, "top-p 0.0"),
        ({"top_p": 1.5}, "top-p 1.5"),
        ({"top_k": -1}, "top-k -1"),
    ],
)
def test_values_out_of_range_are_refused_before_anything_runs(
    pair: Pair, options: dict[str, Any], said: str
) -> None:
    context = Context(pair)
    with pytest.raises(Usage, match=said):
        answer(context, LONG_PROMPT, GenerateOptions(**options))
    assert context.ids == []


def test_scores_keep_what_the_definition_keeps() -> None:
    logits = [2.0, 1.0, 0.5, 0.5, -1.0]
    for options in (
        GenerateOptions(temperature=0.7),
        GenerateOptions(temperature=1.3, top_k=2),
        GenerateOptions(temperature=1.0, top_p=0.6),
        GenerateOptions(temperature=1.0, top_p=0.9, top_k=2),
        GenerateOptions(temperature=1.0, top_p=1e-9),
        GenerateOptions(temperature=1.0, top_k=50),
    ):
        scores = chooser(options, 5).scores(mx.array([logits]))
        assert mx.softmax(scores[0]).tolist() == pytest.approx(
            probabilities(logits, options), abs=1e-6
        )
