"""Numbers have one meaning."""

from __future__ import annotations

from dfly_core.records.stats import Stats, summary_words
from dfly_core.records.step import Seconds, Step, Token


def step(index: int, width: int, accepted: int, kept: int, seconds: Seconds) -> Step:
    chosen = tuple(Token(i, str(i)) for i in range(accepted + 1))
    proposals = tuple(Token(i, str(i)) for i in range(width))
    return Step(
        index, index, None, proposals, accepted, chosen, kept, ("x",) * kept,
        None, None if width else "parked", seconds,
    )  # fmt: skip


STEPS = [
    step(0, 0, 0, 1, Seconds(1.0)),
    step(1, 3, 3, 4, Seconds(0.4, 0.1, 0.2, 0.05)),
    step(2, 2, 0, 1, Seconds(0.2)),
    step(3, 0, 0, 1, Seconds(0.1)),
    step(4, 3, 1, 1, Seconds(0.3, 0.1, 0.1, 0.05)),
]


def test_a_mean_accepted_length_counts_the_bonus_and_only_cycles() -> None:
    stats = Stats().extend(STEPS)
    assert (stats.cycles, stats.plain_steps, stats.emitted) == (3, 1, 8)
    assert stats.mean_accepted_length == (4 + 1 + 1) / 3
    assert stats.acceptance_rate == 4 / 8
    assert stats.positions == ((2, 3), (1, 3), (1, 2))


def test_a_rate_excludes_the_prompt_and_its_token() -> None:
    stats = Stats().extend(STEPS)
    assert stats.prefill_seconds == 1.0
    assert abs((stats.tokens_per_second or 0) - 7 / 1.0) < 1e-9


def test_parts_are_scaled_from_the_timed_sample() -> None:
    stats = Stats().extend(STEPS)
    assert abs((stats.draft_seconds or 0) - 0.2 / 2 * 3) < 1e-9
    assert abs((stats.verify_seconds or 0) - 0.3 / 2 * 3) < 1e-9


def test_nothing_to_average_is_none_and_not_zero() -> None:
    stats = Stats().add(STEPS[0])
    assert stats.mean_accepted_length is None
    assert stats.acceptance_rate is None
    assert stats.tokens_per_second is None
    assert stats.draft_seconds is None


def test_what_became_of_each_proposal() -> None:
    short = step(2, 2, 1, 2, Seconds(0.1))
    assert [short.outcome(j) for j in range(short.width)] == ["accepted", "rejected"]
    assert [short.origin(j) for j in range(2)] == ["draft", "target"]


def test_one_of_a_thing_is_one() -> None:
    said = summary_words(Stats().extend([STEPS[1], STEPS[3]]), "stop")
    assert "| 1 cycle and 1 plain step |" in said
    assert summary_words(Stats().extend(STEPS), "stop").startswith("8 tokens (stop)")
