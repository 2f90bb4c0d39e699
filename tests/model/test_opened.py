"""What the CPU does in the open has the bits of MLX's own operations."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.models.rope_utils import initialize_rope

from dfly_core.model.opened import SPAN, Heads, Rotation
from tests.tiny import make_target

ROPES: dict[str, Any] = {
    "plain": nn.RoPE(48, base=1e6),
    "scaled": nn.RoPE(48, base=1e4, scale=0.25),
    "half of a head": nn.RoPE(24),
    "traditional": nn.RoPE(48, traditional=True),
    "llama3": initialize_rope(
        48, 5e5, False, {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, 512,
    ),
    "yarn": initialize_rope(
        48, 1e4, False, {"rope_type": "yarn", "factor": 4.0,
                         "original_max_position_embeddings": 64}, 256,
    ),
}  # fmt: skip


@given(
    st.sampled_from(sorted(ROPES)),
    st.lists(
        st.tuples(st.integers(0, 3 * SPAN) | st.integers(10**4, 10**5), st.integers(1, 20)),
        min_size=1,
        max_size=6,
    ),
)
def test_rows_are_turned_as_by_the_module_wherever_the_last_ones_were(
    kind: str, blocks: list[tuple[int, int]]
) -> None:
    turn = Rotation(ROPES[kind])
    for position, count in blocks:
        rows = mx.random.normal((1, 3, count, 48))
        assert mx.array_equal(turn(rows, position), ROPES[kind](rows, offset=position))


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
@pytest.mark.parametrize("count", [SPAN - 1, SPAN, SPAN + 1])
def test_many_rows_and_other_dtypes_are_turned_as_well(dtype: mx.Dtype, count: int) -> None:
    rope = ROPES["plain"]
    rows = mx.random.normal((1, 2, count, 48)).astype(dtype)
    assert mx.array_equal(Rotation(rope)(rows, 7), rope(rows, offset=7))


def test_angles_are_made_once_for_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    if mx.default_device() != mx.Device(mx.cpu):
        pytest.skip("MLX has a kernel for it here")
    made: list[int] = []
    real = nn.RoPE.__call__

    def counted(self: nn.RoPE, x: mx.array, offset: int = 0) -> mx.array:
        made.append(offset)
        return real(self, x, offset)

    monkeypatch.setattr(nn.RoPE, "__call__", counted)
    turn = Rotation(nn.RoPE(16))
    for position in range(40, 40 + SPAN - 8, 4):
        turn(mx.ones((1, 2, 8, 16)), position)
    assert made == [40]
    turn(mx.ones((1, 2, 8, 16)), 39)  # an edited turn goes back
    turn(mx.ones((1, 2, 8, 16)), 39 + SPAN)
    assert made == [40, 39, 39 + SPAN]


@pytest.mark.parametrize("eps", [1e-6, 1e-3], ids=["same eps", "another eps"])
@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_heads_are_normed_and_turned_as_each_alone(family: str, eps: float) -> None:
    attention = make_target(model_type=family).layers[0].self_attn
    if family == "qwen3":
        attention.k_norm.eps = eps
        attention.q_norm.weight = mx.random.normal(attention.q_norm.weight.shape)
        attention.k_norm.weight = mx.random.normal(attention.k_norm.weight.shape)
    size = attention.rope.dims
    queries = mx.random.normal((1, 5, attention.n_heads, size))
    keys = mx.random.normal((1, 5, attention.n_kv_heads, size))
    found = Heads(attention)(queries, keys, 9)
    for rows, name, mine in ((queries, "q_norm", found[0]), (keys, "k_norm", found[1])):
        normed = attention[name](rows) if name in attention else rows
        assert mx.array_equal(mine, attention.rope(normed.transpose(0, 2, 1, 3), offset=9))


def test_norms_finer_than_their_rows_round_as_the_modules_do() -> None:
    attention = make_target().layers[0].self_attn  # float32
    attention.q_norm.weight = mx.random.normal(attention.q_norm.weight.shape)
    size = attention.rope.dims
    rows = mx.random.normal((1, 5, attention.n_heads, size)).astype(mx.bfloat16)
    keys = mx.random.normal((1, 5, attention.n_kv_heads, size)).astype(mx.bfloat16)
    mine, _ = Heads(attention)(rows, keys, 9)
    normed = attention.q_norm(rows).transpose(0, 2, 1, 3)
    assert mx.array_equal(mine, attention.rope(normed, offset=9))
