"""The width that pays is chosen, what does not pay is parked, and what returns is noticed.

Time is counted from the cost table, so these are exact and not timed.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from dfly_core.engine.calibrate import chain_costs
from dfly_core.engine.context import Context
from dfly_core.engine.width import PROBE_LAST, WidthPolicy, best_width
from dfly_core.model.acceptance import Acceptance
from dfly_core.model.pair import Pair
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.loaded import Costs, Verdict
from dfly_core.records.step import Step
from tests.tiny import BLOCK, Answer, alone, answer, half, make_pair, oracle, scripted, wrong

PROMPT = [5, 17, 3, 88]
COUNT = 300
# One row, then 2..6 rows: roughly a 4-bit 8B target on a laptop, in units of one target step.
CHEAP = Costs(plain=1.0, verify=(1.0, 1.15, 1.3, 1.5, 1.7, 2.0), draft=(0.5,) * 6)
STEEP = Costs(plain=1.0, verify=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), draft=(1.0,) * 6)
PROBE_COST = 0.5  # at most a whole draft


@pytest.fixture(scope="module")
def made() -> Pair:
    return make_pair(max_position_embeddings=1024)


@pytest.fixture
def pair(made: Pair) -> Pair:
    made.acceptance = None  # no test starts from what another saw
    return made


@pytest.fixture(scope="module")
def truth(made: Pair) -> list[int]:
    return alone(made, PROMPT, COUNT + BLOCK)


def spent(found: Answer, costs: Costs) -> float:
    """Time of the decoding steps by the cost table, probes at a whole draft each."""
    total = 0.0
    for step in found.steps[1:]:
        total += costs.cycle(step.width) if step.is_cycle else costs.plain
    return total + _probes(found.steps) * PROBE_COST


def _probes(steps: list[Step]) -> int:
    """How many probes a run of parked steps holds at most: 8, then 16, then every 24."""
    parked = sum(not step.is_cycle for step in steps[1:])
    return min(parked, 1) + parked // 12


OPTIONS = GenerateOptions(max_tokens=COUNT)


@pytest.mark.parametrize("costs", [CHEAP, STEEP], ids=["cheap", "steep"])
def test_a_hostile_drafter_costs_less_than_a_twentieth(
    pair: Pair, truth: list[int], costs: Costs
) -> None:
    found = answer(Context(pair), PROMPT, OPTIONS, wrong(truth, len(PROMPT)), costs=costs)
    assert found.ids == truth[:COUNT]
    assert COUNT / spent(found, costs) >= 0.95


def test_a_drafter_that_turns_good_is_back_at_full_width_within_forty_tokens(
    pair: Pair, truth: list[int]
) -> None:
    turn = len(PROMPT) + 120
    chosen = scripted(truth, len(PROMPT), lambda position: position >= turn)
    found = answer(Context(pair), PROMPT, OPTIONS, chosen, costs=CHEAP)
    assert found.ids == truth[:COUNT]
    late = [step for step in found.steps if step.position >= turn + 40]
    assert late
    assert all(step.width == BLOCK - 1 for step in late[:-1])
    parked = [step for step in found.steps[5:] if step.position < turn]
    assert all(not step.is_cycle and step.off for step in parked)


def test_an_oracle_runs_at_the_width_the_costs_favour(pair: Pair, truth: list[int]) -> None:
    found = answer(Context(pair), PROMPT, OPTIONS, oracle(truth, len(PROMPT)), costs=CHEAP)
    assert found.ids == truth[:COUNT]
    assert all(step.is_cycle for step in found.steps[1:])
    assert COUNT / spent(found, CHEAP) > 2.2


def test_a_middling_drafter_costs_at_most_a_few_percent(pair: Pair, truth: list[int]) -> None:
    for share in (0.3, 0.5, 0.7, 0.9):
        chosen = half(truth, len(PROMPT), seed=3, share=share)
        found = answer(Context(pair), PROMPT, OPTIONS, chosen, costs=CHEAP)
        assert found.ids == truth[:COUNT]
        assert COUNT / spent(found, CHEAP) > 0.93, share


def test_where_no_acceptance_could_pay_nothing_is_ever_drafted(
    pair: Pair, truth: list[int]
) -> None:
    hopeless = Costs(plain=1.0, verify=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), draft=(1.5,) * 6)
    drafted = 0

    def spy(context: Context, width: int) -> object:
        nonlocal drafted
        drafted += 1
        return oracle(truth, len(PROMPT))(context, width)

    found = answer(Context(pair), PROMPT, OPTIONS, spy, costs=hopeless)  # type: ignore[arg-type]
    assert found.ids == truth[:COUNT]
    assert drafted == 0
    assert found.steps[1].off == "a cycle costs 7.5 target steps here and gives at most 6 tokens"


def test_the_reason_to_park_says_what_was_known() -> None:
    costs = Costs(plain=1.0, verify=(1.0, 1.8, 2.5, 3.2), draft=(0.5,) * 4)
    at_once = WidthPolicy(3, costs=costs).off
    assert at_once == (
        "not expected to pay: a cycle costs 3.7 target steps, as measured at loading, and gives "
        "about 3.4 tokens if 90% of proposals are right, and none was tried yet"
    )
    tried = WidthPolicy(3, costs=Costs(plain=1.0, verify=(1.0, 1.5, 1.8, 2.1), draft=(0.5,) * 4))
    assert tried.off is None
    tried.observe_cycle([1, 2, 3], [1, 7])
    assert tried.off == (
        "not expected to pay: a cycle costs 2.3 target steps, as measured at loading, and gives "
        "about 2.2 tokens with 50% of proposals right lately"
    )


def test_probes_come_at_growing_intervals(pair: Pair, truth: list[int]) -> None:
    drafted: list[int] = []
    bad = wrong(truth, len(PROMPT))

    def spy(context: Context, width: int) -> object:
        drafted.append(context.length)
        return bad(context, width)

    answer(Context(pair), PROMPT, OPTIONS, spy, costs=CHEAP)  # type: ignore[arg-type]
    gaps = [b - a for a, b in itertools.pairwise(drafted)]
    assert max(gaps) <= PROBE_LAST + 2
    assert sorted(gaps[-8:]) == gaps[-8:]
    assert len(drafted) < 20


def test_a_chain_that_costs_much_makes_the_width_smaller() -> None:
    chances = [0.8**k for k in range(1, 6)]
    dear = replace(CHEAP, draft=tuple(0.1 + 0.3 * width for width in range(6)))
    assert dear.cycle(2) == pytest.approx(0.7 + 1.3)
    assert best_width(chances, CHEAP)[0] == 4
    width, rate = best_width(chances, dear)
    assert width == 2
    assert rate == pytest.approx((1 + 0.8 + 0.64) / dear.cycle(2))


def test_the_cost_of_a_draft_grows_with_its_proposals_from_two_measured() -> None:
    assert chain_costs(0.5, 0.8, 4) == pytest.approx((0.4, 0.5, 0.6, 0.7, 0.8))
    assert chain_costs(0.9, 0.8, 4) == pytest.approx((0.9,) * 5)  # noise
    assert chain_costs(0.5, 0.5, 1) == pytest.approx((0.5, 0.5))


def test_the_best_width_weighs_chance_against_cost() -> None:
    assert best_width([1.0] * 5, CHEAP)[0] == 5
    assert best_width([0.9, 0.1, 0.01, 0.0, 0.0], CHEAP)[0] == 1
    width, rate = best_width([0.5, 0.25, 0.1, 0.05, 0.0], CHEAP)
    assert rate == pytest.approx(sum([1, 0.5, 0.25, 0.1, 0.05, 0.0][: width + 1])
                                 / (0.5 + CHEAP.verify[width]))  # fmt: skip


def test_a_fixed_width_never_parks_and_zero_never_drafts() -> None:
    assert WidthPolicy(5, fixed=3, costs=STEEP).width(99) == 3
    assert WidthPolicy(5, fixed=3, costs=STEEP).width(2) == 2
    assert WidthPolicy(5, fixed=0).width(99) == 0
    assert WidthPolicy(5).width(99) == 5


def test_proposals_beyond_the_width_are_judged_by_what_comes_next() -> None:
    acceptance = Acceptance(4)
    for _ in range(40):
        acceptance.propose([1, 2, 3, 4])
        acceptance.emit([1, 2])
        acceptance.emit([3])
        acceptance.emit([9])
    one, two, three, four = acceptance.products()
    assert one > 0.95
    assert three > 0.9
    assert four < 0.15
    assert two >= three >= four


def test_proposals_left_open_by_the_last_cycle_are_no_probe() -> None:
    policy = WidthPolicy(3, costs=Costs(1.0, (1.0, 1.1, 2.5, 3.9), (0.55,) * 4))
    for _ in range(40):
        policy.observe_cycle([1, 2, 3], [7])
    policy.observe_cycle([1, 2, 3], [1, 2])
    assert policy.off  # parked, though all that was verified was right, and the third is open
    policy.observe_plain(9)
    assert policy.off


@pytest.mark.parametrize("fixed", [None, 1, 2])
def test_a_verdict_narrower_than_the_drafts_is_kept_to(
    pair: Pair, truth: list[int], monkeypatch: pytest.MonkeyPatch, fixed: int | None
) -> None:
    verdict = Verdict("m", "m", "exact", "native", (), 2, (), (), (), (), "", width=2)
    monkeypatch.setattr(pair, "verdict", verdict)
    chosen = oracle(truth, len(PROMPT))
    options = replace(OPTIONS, width=fixed)
    found = answer(Context(pair), PROMPT, options, chosen, costs=CHEAP)
    assert found.ids == truth[:COUNT]
    assert {step.width for step in found.steps[1:]} == {fixed or 2}


def test_a_probe_longer_than_the_widest_block_can_end_a_park() -> None:
    policy = WidthPolicy(2, costs=Costs(1.0, (1.0, 1.1, 1.2), (0.5,) * 3))
    for _ in range(40):
        policy.observe_cycle([1, 2], [7])
    assert policy.off
    assert policy.probe_size == 2
    policy.probe([1, 2])
    for token in (1, 2):
        policy.observe_plain(token)
    assert policy.off is None


# A full block pays here, but only if nearly everything in it is right.
TIGHT = Costs(plain=1.0, verify=(1.0, 1.7, 2.4, 3.1, 3.8, 4.5), draft=(1.0,) * 6)


def test_the_next_answer_starts_from_what_the_last_one_saw(pair: Pair, truth: list[int]) -> None:
    good, bad = oracle(truth, len(PROMPT)), wrong(truth, len(PROMPT))
    first = answer(Context(pair), PROMPT, OPTIONS, good, costs=TIGHT)
    assert not first.steps[1].is_cycle, "nothing known: not expected to pay"
    assert first.steps[-2].is_cycle, "a probe found out"
    second = answer(Context(pair), PROMPT, OPTIONS, good, costs=TIGHT)
    assert all(step.is_cycle for step in second.steps[1:])
    third = answer(Context(pair), PROMPT, OPTIONS, bad, costs=TIGHT)
    assert sum(step.is_cycle for step in third.steps) < 12
    fourth = answer(Context(pair), PROMPT, OPTIONS, bad, costs=TIGHT)
    assert not any(step.is_cycle for step in fourth.steps)
    for found in (first, second, third, fourth):
        assert found.ids == truth[:COUNT]


def test_a_short_answer_after_a_bad_one_is_tried_soon(pair: Pair, truth: list[int]) -> None:
    for _ in range(2):
        answer(Context(pair), PROMPT, OPTIONS, wrong(truth, len(PROMPT)), costs=TIGHT)
    short = replace(OPTIONS, max_tokens=16)
    found = answer(Context(pair), PROMPT, short, oracle(truth, len(PROMPT)), costs=TIGHT)
    assert not found.steps[1].is_cycle
    assert sum(step.is_cycle for step in found.steps) >= 1
    assert found.ids == truth[:16]


def test_an_answer_without_drafting_leaves_what_was_seen(pair: Pair, truth: list[int]) -> None:
    answer(Context(pair), PROMPT, OPTIONS, oracle(truth, len(PROMPT)), costs=CHEAP)
    seen = pair.acceptance
    answer(Context(pair), PROMPT, replace(OPTIONS, width=0))
    answer(Context(pair, draft=False), PROMPT, OPTIONS)
    assert pair.acceptance is seen


def test_what_is_carried_counts_as_a_few_cycles_and_no_more() -> None:
    long = Acceptance(2)
    for _ in range(200):
        long.propose([1, 2])
        long.emit([1, 3])
    carried = long.carried(2)
    assert carried.products() == pytest.approx(long.products(), abs=0.1)
    for _ in range(12):
        carried.propose([1, 2])
        carried.emit([1, 2])
        long.propose([1, 2])
        long.emit([1, 2])
    assert carried.products()[1] > 0.55 > 0.4 > long.products()[1]
    assert not carried.undecided
    assert len(long.carried(1).products()) == 1
    assert len(long.carried(5).products()) == 5
