"""Casts, NaN search and quantisation, against MLX's own."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from dfly_core.convert.agreement import (
    plain_rows,
    quantised_rows,
    sample_hidden,
    streamed_drafter,
)
from dfly_core.convert.cast import cast, is_finite
from dfly_core.convert.plan import make_plan
from dfly_core.convert.quantize import MLX_DTYPES, from_bits, quantize_rows, to_bits
from dfly_core.convert.safefile import read_safetensors
from dfly_core.convert.source import find_source
from dfly_core.convert.write import Error
from dfly_core.model.config import drafter_config, read_config
from dfly_core.model.drafter import Drafter
from dfly_core.model.pair import load_drafter
from tests.convert.small import CONFIG, make_folder, report, small_weights

EVERY_16_BITS = np.arange(1 << 16, dtype=np.uint16)


def wide_bits() -> np.ndarray:
    """float32 patterns of every exponent, with fractions at and around every rounding tie."""
    high = np.repeat(EVERY_16_BITS.astype(np.uint32) << 16, 5)
    low = np.tile(np.array([0, 1, 0x7FFF, 0x8000, 0x8001], np.uint32), 1 << 16)
    found = high | low
    return found[np.isfinite(found.view(np.float32))]


@pytest.mark.parametrize("want", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("have", ["BF16", "F16", "F32"])
def test_a_cast_rounds_as_mlx_does(have: str, want: str) -> None:
    bits = wide_bits() if have == "F32" else EVERY_16_BITS
    finite = np.array(mx.isfinite(from_bits(bits, have).astype(mx.float32)))
    bits = bits[finite]
    due = to_bits(from_bits(bits, have).astype(mx.float32).astype(MLX_DTYPES[want]))
    assert np.array_equal(cast(bits, have, want), due)


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_every_16_bit_pattern_is_judged_as_numpy_judges_it(dtype: str) -> None:
    finite = np.array(mx.isfinite(from_bits(EVERY_16_BITS, dtype).astype(mx.float32)))
    assert [is_finite(EVERY_16_BITS[i : i + 1], dtype) for i in range(1 << 16)] == finite.tolist()


def test_infinity_and_nan_of_either_sign_are_found_in_float32() -> None:
    plain = np.array([0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e-45], np.float32)
    assert is_finite(plain.view(np.uint32), "F32")
    for value in (np.inf, -np.inf, np.nan, -np.nan):
        with_it = np.append(plain, np.float32(value))
        assert not is_finite(with_it.view(np.uint32), "F32"), value


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_blocks_of_rows_quantise_as_the_whole_matrix_does(bits: int, dtype: str) -> None:
    rng = np.random.default_rng(3)
    matrix = cast(rng.normal(size=(48, 128)).astype(np.float32).view(np.uint32), "F32", dtype)
    parts = [quantize_rows(matrix[i : i + 7], dtype, bits, 64) for i in range(0, 48, 7)]
    whole = mx.quantize(from_bits(matrix, dtype), group_size=64, bits=bits)
    for i, due in enumerate(whole):
        found = np.concatenate([part[:3][i] for part in parts])
        assert np.array_equal(found, np.array(due) if i == 0 else to_bits(due))


def test_the_error_table_is_the_distance_from_the_original() -> None:
    matrix = np.random.default_rng(3).normal(size=(32, 64)).astype(np.float32)
    error = Error()
    for half in (matrix[:9], matrix[9:]):
        error.add(*quantize_rows(half.view(np.uint32), "F32", 4, 64)[3])
    packed, scales, biases, _ = quantize_rows(matrix.view(np.uint32), "F32", 4, 64)
    parts = mx.array(packed), from_bits(scales, "F32"), from_bits(biases, "F32")
    back = np.array(mx.dequantize(*parts, group_size=64, bits=4))
    off = back.astype(np.float64) - matrix
    assert error.relative == pytest.approx(np.linalg.norm(off) / np.linalg.norm(matrix), rel=1e-5)
    assert error.largest == pytest.approx(np.abs(off).max(), rel=1e-6)
    assert 0.02 < error.relative < 0.2  # four bits in groups of 64 normal values


def loaded_drafter(folder: Path) -> Drafter:
    """A converted drafter as the engine loads it."""
    return load_drafter(folder, drafter_config(read_config(folder)), mx.float32)


def test_the_compared_drafters_compute_what_the_loaded_ones_do(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "in")
    report(source, tmp_path / "plain", dtype="f32")
    report(source, tmp_path / "packed", dtype="f32", quantize=4)
    plan = make_plan(find_source(source), tmp_path / "other", 4, "f32", False)
    outputs = read_safetensors(tmp_path / "packed" / "model.safetensors")
    streamed = {
        "plain": {item.name: plain_rows(item) for item in plan.items},
        "packed": {item.name: quantised_rows(item, outputs, 4) for item in plan.items},
    }
    for name, rows in streamed.items():
        found = sample_hidden(streamed_drafter(plan.config, rows))
        due = sample_hidden(loaded_drafter(tmp_path / name))
        assert mx.allclose(found, due, rtol=1e-4, atol=1e-5), name


@pytest.mark.parametrize("bits", [4, 8])
def test_a_quantised_drafter_keeps_norms_and_fusion_and_says_how_close_it_is(
    bits: int, tmp_path: Path
) -> None:
    said = report(make_folder(tmp_path / "in"), tmp_path / "out", quantize=bits)
    loaded = mx.load(str(tmp_path / "out" / "model.safetensors"))
    assert isinstance(loaded, dict)
    packed = {name.removesuffix(".scales") for name in loaded if name.endswith(".scales")}
    assert len(packed) == 2 * 7 + 1 + 3  # a layer's seven matrices, fc, the correction's three
    for name, array in loaded.items():
        stem, _, part = name.rpartition(".")
        assert (array.dtype == mx.uint32) == (stem in packed and part == "weight"), name
    due = mx.array(small_weights()["layer_fusion_weights"])
    assert mx.array_equal(loaded["layer_fusion_weights"].astype(mx.float32), due)
    assert {e["name"].removesuffix(".weight") for e in said["errors"]} == packed
    agreement = said["agreement"]
    assert agreement["rows"] == CONFIG["block_size"] - 1
    # Random weights agree less than trained ones; eight bits agree better than four.
    assert agreement["cosine_least"] > {4: 0.9, 8: 0.999}[bits]
    assert agreement["cosine_mean"] < 1.0
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| fc.weight |" in card
    assert f"mean cosine of {agreement['cosine_mean']:.5f}" in card
