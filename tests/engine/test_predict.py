"""What drafting would bring: measured where it was, computed where bytes decide, else unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dfly_core.engine.cost import draft_bytes
from dfly_core.engine.predict import KnownTarget, predict, rests_on
from dfly_core.model.config import DEFAULT_TARGET_SIZES
from dfly_core.records.loaded import Costs
from tests.engine.test_cost import DRAFTER, TARGET

COSTS = Costs(plain=0.040, verify=(0.040, *[0.050] * 7), draft=(0.030,) * 8)
EIGHT_B = KnownTarget("8B", DEFAULT_TARGET_SIZES, by_bytes=True)
LOADED = replace(EIGHT_B, costs=COSTS, drafter=DRAFTER, draft_bits=8)
# 1 + 0.75 + ... + 0.75^7: tokens of a full block if three of four proposals are right.
TOKENS = sum(0.75**k for k in range(8))


def bytes_read(bits: int) -> float:
    return draft_bytes(DRAFTER, TARGET, bits, 4, head_share=1 / 7).total


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_without_measurements_a_draft_costs_its_bytes_and_a_verify_one_pass(bits: int) -> None:
    found = predict(DRAFTER, EIGHT_B, bits)
    assert found is not None
    share = bytes_read(bits) / TARGET.pass_bytes(4)
    assert found.draft_steps == pytest.approx(share)
    assert found.speedup == pytest.approx(TOKENS / (1 + share))
    assert found.tps is None
    fast = predict(DRAFTER, replace(EIGHT_B, bandwidth=100e9), bits)
    assert fast is not None
    alone = 100e9 / TARGET.pass_bytes(4)
    assert fast.tps == pytest.approx(alone * found.speedup)


def test_measured_times_are_taken_and_a_draft_of_other_bits_follows_its_bytes() -> None:
    same, other = predict(DRAFTER, LOADED, 8), predict(DRAFTER, LOADED, 4)
    assert same is not None
    assert other is not None
    assert same.draft_steps == pytest.approx(0.030 / 0.040)
    assert same.speedup == pytest.approx(TOKENS / (0.080 / 0.040))
    assert same.tps == pytest.approx(TOKENS / 0.080)
    assert other.draft_steps == pytest.approx(0.75 * bytes_read(4) / bytes_read(8))
    assert "times measured with 8B" in rests_on(LOADED)


def test_with_another_drafter_loaded_a_draft_costs_its_bytes_of_the_measured_step() -> None:
    found = predict(replace(DRAFTER, num_hidden_layers=6), LOADED, 16)
    six = draft_bytes(replace(DRAFTER, num_hidden_layers=6), TARGET, 16, 4, 1 / 7).total
    assert found is not None
    assert found.draft_steps == pytest.approx(six / TARGET.pass_bytes(4))


def test_where_time_does_not_follow_bytes_only_what_was_measured_is_told() -> None:
    cpu = replace(LOADED, by_bytes=False)
    assert predict(DRAFTER, cpu, 8) == predict(DRAFTER, LOADED, 8)
    assert predict(DRAFTER, cpu, 4) is None
    assert "a quantised draft's is unknown" in rests_on(cpu)
    unknown = replace(EIGHT_B, by_bytes=False)
    assert predict(DRAFTER, unknown, 8) is None
    assert rests_on(unknown).startswith("speed unknown: MLX computes on the CPU here")


def test_a_drafter_that_cannot_pay_is_predicted_to_be_parked() -> None:
    steep = replace(LOADED, costs=Costs(1.0, tuple(1.0 + w for w in range(8)), (4.0,) * 8))
    found = predict(DRAFTER, steep, 8)
    assert found is not None
    assert found.speedup == 1.0
