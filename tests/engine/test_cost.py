"""The arithmetic of a cycle reproduces the project's table for Qwen3-8B at 4 bits, K 8."""

from __future__ import annotations

import pytest

from dfly_core.engine.cost import TargetSize, draft_bytes
from dfly_core.engine.coverage import TYPICAL_SHARE
from dfly_core.model.config import drafter_config

TARGET = TargetSize.from_config(
    {
        "hidden_size": 4096,
        "num_hidden_layers": 36,
        "intermediate_size": 12288,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
    }
)
DRAFTER = drafter_config(
    {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "head_dim": 128,
        "num_hidden_layers": 5,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 151936,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "max_position_embeddings": 40960,
        "target_num_hidden_layers": 36,
        "target_layer_ids": [1, 9, 17, 25, 33],
        "mask_token_id": 151669,
        "block_size": 8,
        "hidden_correction_intermediate_size": None,
    }
)


def test_a_target_pass_reads_what_the_table_says() -> None:
    assert TARGET.pass_bytes(4) / 1e9 == pytest.approx(4.257, abs=0.001)


@pytest.mark.parametrize(
    ("bits", "backbone", "correction", "passes", "small"),
    [(16, 2.097, 1.174, 1.34, 0.84), (8, 1.114, 0.624, 0.98, 0.48), (4, 0.590, 0.330, 0.79, 0.29)],
)
def test_a_draft_reads_what_the_table_says(
    bits: int, backbone: float, correction: float, passes: float, small: float
) -> None:
    full = draft_bytes(DRAFTER, TARGET, bits, 4, split=False)
    assert full.backbone / 1e9 == pytest.approx(backbone, abs=0.001)
    assert full.correction / 1e9 == pytest.approx(correction, abs=0.001)
    assert full.head / 1e9 == pytest.approx(2.450, abs=0.001)
    assert full.total / TARGET.pass_bytes(4) == pytest.approx(passes, abs=0.005)
    eighth = draft_bytes(DRAFTER, TARGET, bits, 4, head_share=1 / 8, split=False)
    assert eighth.total / TARGET.pass_bytes(4) == pytest.approx(small, abs=0.005)


def test_the_whole_draft_at_four_bits_fits_the_goal() -> None:
    draft = draft_bytes(DRAFTER, TARGET, 4, 4, head_share=TYPICAL_SHARE)
    assert draft.correction / 1e9 == pytest.approx(0.217, abs=0.001)
    assert draft.total / 1e9 == pytest.approx(1.157, abs=0.001)
    assert draft_bytes(DRAFTER, TARGET, 4, 4, head_share=1 / 5).total / 1e9 < 1.35
    assert draft_bytes(DRAFTER, TARGET, 4, 4, head_share=1 / 4).total / 1e9 > 1.35
