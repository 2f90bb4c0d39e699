"""What a drafter's config.json says, and the tensors it implies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfly_core.records.errors import Missing, Refused
from dfly_core.records.files import contents
from dfly_core.records.sizes import Measure, measure_words, number_words
from dfly_core.records.visible import one_line

DEFAULT_TARGET = "mlx-community/Qwen3-8B-4bit"
DEFAULT_DRAFT = "AngelSlim/Qwen3-8B-DFly-Block8"
DEFAULT_REVISION = "5712926"
# The default target's config.json, as far as sizes go, for a machine that has not fetched it.
DEFAULT_TARGET_SIZES: Mapping[str, Any] = {
    "hidden_size": 4096,
    "num_hidden_layers": 36,
    "intermediate_size": 12288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "quantization": {"group_size": 64, "bits": 4},
}
MAX_CONFIG_BYTES = 4 << 20  # the release's is 1 kB; a damaged one must not fill the memory
MAX_LAYERS = 1000
MAX_BLOCK_SIZE = 64  # the release's is 8; every width up to it is tested at start
TARGET_COUNTS = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
)
RELEASED_BLOCK_SIZE = 8  # some upstream training configs leave it out


@dataclass(frozen=True)
class DrafterConfig:
    """Sizes and settings of a DFly drafter (arXiv:2607.25852; key names as Tencent/AngelSpec).

    `hidden_size` is the drafter's D and equals the target's, since embedding and head are
    the target's own.
    """

    hidden_size: int
    intermediate_size: int
    head_dim: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    vocab_size: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: Mapping[str, Any] | None
    max_position_embeddings: int
    target_hidden_size: int
    target_num_hidden_layers: int
    target_layer_ids: tuple[int, ...]
    mask_token_id: int
    block_size: int
    enable_hidden_correction: bool
    hidden_correction_intermediate_size: int
    quantization: Mapping[str, Any] | None = None

    @property
    def taps(self) -> int:
        """T, how many target layers feed the drafter."""
        return len(self.target_layer_ids)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a checkpoint folder, as it stands; raises Missing or Refused."""
    return read_object(folder / "config.json")


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object a file of a checkpoint folder holds; raises Missing or Refused."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ValueError(f"{path.stat().st_size} bytes are too many")
        config = json.loads(contents(path))
    except FileNotFoundError as error:
        raise Missing(f"no {path.name} in {path.parent}", "name a checkpoint folder") from error
    except (OSError, ValueError, RecursionError) as error:
        remedy = "check its permissions, or download it again"
        raise Refused(f"{path} can't be read ({error})", remedy) from error
    if not isinstance(config, dict):
        raise Refused(f"{path} holds no JSON object", "download it again")
    return config


def drafter_config(config: Mapping[str, Any], where: str = "config.json") -> DrafterConfig:
    """Parse a drafter's config, upstream or MLX form; raises Refused naming key and value."""
    reader = _Reader(config, where)
    hidden = reader.count("hidden_size")
    heads = reader.count("num_attention_heads")
    layers = reader.layer_ids()
    declared = reader.optional_count("num_target_layers")
    if declared is not None and declared != len(layers):
        raise Refused(
            f"{where}: num_target_layers is {declared} but target_layer_ids names {len(layers)}",
            "take the config.json that belongs to these weights",
        )
    corrected = reader.value("enable_hidden_correction", True)
    if not isinstance(corrected, bool):
        raise Refused(f"{where}: enable_hidden_correction is {corrected!r}, not true or false")
    parsed = DrafterConfig(
        hidden_size=hidden,
        intermediate_size=reader.count("intermediate_size"),
        head_dim=reader.optional_count("head_dim") or hidden // heads,
        num_hidden_layers=reader.count("num_hidden_layers"),
        num_attention_heads=heads,
        num_key_value_heads=reader.optional_count("num_key_value_heads") or heads,
        vocab_size=reader.count("vocab_size"),
        rms_norm_eps=reader.number("rms_norm_eps"),
        rope_theta=reader.rope_theta(),
        rope_scaling=reader.mapping("rope_scaling"),
        max_position_embeddings=reader.count("max_position_embeddings"),
        target_hidden_size=reader.optional_count("target_hidden_size") or hidden,
        target_num_hidden_layers=reader.count("target_num_hidden_layers"),
        target_layer_ids=layers,
        mask_token_id=reader.token_id("mask_token_id"),
        block_size=reader.optional_count("block_size") or RELEASED_BLOCK_SIZE,
        enable_hidden_correction=corrected,
        hidden_correction_intermediate_size=(
            reader.optional_count("hidden_correction_intermediate_size") or hidden
        ),
        quantization=reader.mapping("quantization"),
    )
    _check_sizes(parsed, where)
    return parsed


def misfit(drafter: DrafterConfig, target: Mapping[str, Any]) -> tuple[str, str] | None:
    """What the drafter was made for and what the target has, in words; None where they fit."""
    sizes: tuple[tuple[Measure, int, str], ...] = (
        ("layers", drafter.target_num_hidden_layers, "num_hidden_layers"),
        ("hidden size", drafter.target_hidden_size, "hidden_size"),
        ("hidden size", drafter.hidden_size, "hidden_size"),
        ("vocabulary", drafter.vocab_size, "vocab_size"),
    )
    for measure, wanted, key in sizes:
        if wanted != target.get(key):
            return measure_words(measure, wanted), one_line(number_words(target.get(key)), 40)
    return None


def check_target_sizes(config: Mapping[str, Any], where: str) -> None:
    """Refuse a target's config with a size that is none; what is missing mlx-lm names itself."""
    reader = _Reader(config, where)
    for key in TARGET_COUNTS:
        reader.optional_count(key)
    for key in ("rope_theta", "rms_norm_eps"):
        if config.get(key) is not None:
            reader.number(key)


def _check_sizes(config: DrafterConfig, where: str) -> None:
    remedy = "take the config.json that belongs to these weights"
    if config.num_attention_heads % config.num_key_value_heads:
        raise Refused(
            f"{where}: {config.num_attention_heads} attention heads can't share "
            f"{config.num_key_value_heads} key/value heads",
            remedy,
        )
    deepest = max(config.target_layer_ids)
    if deepest >= config.target_num_hidden_layers:
        raise Refused(
            f"{where}: tap {deepest} lies beyond the target's "
            f"{config.target_num_hidden_layers} layers",
            remedy,
        )
    if config.mask_token_id >= config.vocab_size:
        raise Refused(
            f"{where}: mask_token_id {config.mask_token_id} lies beyond the vocabulary of "
            f"{config.vocab_size}",
            remedy,
        )
    if config.num_hidden_layers > MAX_LAYERS:
        raise Refused(
            f"{where}: num_hidden_layers is {config.num_hidden_layers}, more than {MAX_LAYERS}",
            remedy,
        )
    if config.block_size < 2:
        raise Refused(f"{where}: block_size {config.block_size} leaves nothing to draft", remedy)
    if config.block_size > MAX_BLOCK_SIZE:
        raise Refused(
            f"{where}: block_size is {config.block_size}, more than {MAX_BLOCK_SIZE}", remedy
        )
    if config.head_dim % 2:
        raise Refused(f"{where}: head_dim {config.head_dim} is odd; RoPE needs pairs", remedy)


class _Reader:
    """Typed look-ups; the MLX form repeats some keys inside `dflash_config`."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        nested = config.get("dflash_config")
        self._config = {**(nested if isinstance(nested, dict) else {}), **config}
        self._where = where

    def value(self, key: str, default: Any) -> Any:
        found = self._config.get(key)
        return default if found is None else found

    def _refuse(self, key: str, needed: str) -> Refused:
        found = self._config.get(key)
        said = f"{key} is missing" if found is None else f"{key} is {one_line(repr(found), 60)}"
        return Refused(
            f"{self._where}: {said} where {needed} is needed",
            "take the config.json that belongs to these weights",
        )

    def count(self, key: str) -> int:
        found = self.optional_count(key)
        if found is None:
            raise self._refuse(key, "a positive whole number")
        return found

    def optional_count(self, key: str) -> int | None:
        found = self._config.get(key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 2**31:
            raise self._refuse(key, "a positive whole number below 2**31")
        return found

    def token_id(self, key: str) -> int:
        found = self._config.get(key)
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise self._refuse(key, "a token id")
        return found

    def number(self, key: str) -> float:
        found = self._config.get(key)
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise self._refuse(key, "a positive number")
        try:
            number = float(found)
        except OverflowError:  # a whole number may have any number of digits
            number = float("inf")
        if not 0 < number < float("inf"):  # NaN is neither
            raise self._refuse(key, "a positive number")
        return number

    def mapping(self, key: str) -> Mapping[str, Any] | None:
        found = self._config.get(key)
        if found is not None and not isinstance(found, dict):
            raise self._refuse(key, "an object or null")
        return found

    def rope_theta(self) -> float:
        # No default: 10000 in place of the trained base is a silent mistake others made.
        parameters = self._config.get("rope_parameters")
        if self._config.get("rope_theta") is None and isinstance(parameters, dict):
            self._config["rope_theta"] = parameters.get("rope_theta")
        return self.number("rope_theta")

    def layer_ids(self) -> tuple[int, ...]:
        found = self._config.get("target_layer_ids")
        if (
            not isinstance(found, list)
            or not found
            or any(isinstance(i, bool) or not isinstance(i, int) or i < 0 for i in found)
            or sorted(set(found)) != found
        ):
            raise self._refuse("target_layer_ids", "a rising list of layer numbers")
        return tuple(found)


def tensor_shapes(config: DrafterConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor an unquantised drafter must hold, in MLX names, with its shape."""
    hidden, taps = config.hidden_size, config.taps
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, taps * hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
        "layer_fusion_weights": (config.num_hidden_layers, taps),
    }
    for layer in range(config.num_hidden_layers):
        shapes |= {f"layers.{layer}.{name}": s for name, s in _layer_shapes(config).items()}
    if config.enable_hidden_correction:
        width = config.hidden_correction_intermediate_size
        shapes |= {
            "hidden_correction.hidden_norm.weight": (hidden,),
            "hidden_correction.embed_norm.weight": (hidden,),
            "hidden_correction.gate_proj.weight": (width, 2 * hidden),
            "hidden_correction.up_proj.weight": (width, 2 * hidden),
            "hidden_correction.down_proj.weight": (hidden, width),
        }
    return shapes


def _layer_shapes(config: DrafterConfig) -> dict[str, tuple[int, ...]]:
    hidden, inner = config.hidden_size, config.intermediate_size
    queries = config.num_attention_heads * config.head_dim
    keys = config.num_key_value_heads * config.head_dim
    return {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (queries, hidden),
        "self_attn.k_proj.weight": (keys, hidden),
        "self_attn.v_proj.weight": (keys, hidden),
        "self_attn.o_proj.weight": (hidden, queries),
        "self_attn.q_norm.weight": (config.head_dim,),
        "self_attn.k_norm.weight": (config.head_dim,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
