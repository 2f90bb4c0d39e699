"""The gates: every reason to refuse that can be known from headers, before any weight is read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dfly_core.convert.names import FUSION, Naming, name_tensors
from dfly_core.convert.place import check_output, check_outside, check_space
from dfly_core.convert.source import MLX, MLX_ARCHITECTURE, Source, read_tensors
from dfly_core.convert.stored import FLOATS, WIDTHS, StoredTensor, blocks, check_view, span
from dfly_core.model.config import DrafterConfig, drafter_config, tensor_shapes
from dfly_core.records.errors import Refused, Usage

GROUP_SIZE = 64
BITS = (4, 8)
DTYPES = {"bf16": "BF16", "f16": "F16", "f32": "F32"}
TORCH_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_FIRST_PRODUCT = ("hidden_correction.gate_proj.", "hidden_correction.up_proj.")
BELONGS = "take the config.json that belongs to these weights"


@dataclass(frozen=True)
class Item:
    """One tensor on its way: where it lies, and as what it is written (float type `dtype`)."""

    name_in: str
    name: str
    stored: StoredTensor
    dtype: str
    quantised: bool

    @property
    def verbatim(self) -> bool:
        """Whether the bits are written as they are."""
        return not self.quantised and self.dtype == self.stored.dtype

    def outputs(self, bits: int | None) -> list[tuple[str, str, tuple[int, ...]]]:
        """Name, dtype and shape of each tensor this one becomes (mlx-lm's names and layout)."""
        return outputs(self.name, self.stored.shape, self.dtype, bits if self.quantised else None)


def outputs(
    name: str, shape: tuple[int, ...], dtype: str, bits: int | None
) -> list[tuple[str, str, tuple[int, ...]]]:
    """Name, dtype and shape of each tensor that one of `shape` becomes, `bits` None as it is."""
    if bits is None:
        return [(name, dtype, shape)]
    stem = name.removesuffix("weight")
    groups = (shape[0], shape[1] // GROUP_SIZE)
    return [
        (name, "U32", (shape[0], shape[1] * bits // 32)),
        (f"{stem}scales", dtype, groups),
        (f"{stem}biases", dtype, groups),
    ]


def output_sizes(tensors: Sequence[tuple[str, tuple[int, ...], str]]) -> dict[int | None, int]:
    """Bytes of (MLX name, shape, float type) tensors as they are and in each width there is."""
    sizes: dict[int | None, int] = {}
    able = any(is_quantised(name, shape) for name, shape, _ in tensors)
    for bits in (None, *sorted(BITS, reverse=True)) if able else (None,):
        sizes[bits] = sum(
            math.prod(shape_) * WIDTHS[kind]
            for name, shape, dtype in tensors
            for _, kind, shape_ in outputs(
                name, shape, dtype, bits if is_quantised(name, shape) else None
            )
        )
    return sizes


@dataclass(frozen=True)
class Plan:
    """A conversion that has passed every gate; complete before the first large read."""

    source: Source
    output: Path
    config: DrafterConfig
    items: tuple[Item, ...]
    dropped: tuple[str, ...]
    ignored: tuple[str, ...]
    bits: int | None
    replace: bool
    output_bytes: int
    notes: tuple[str, ...]

    @property
    def dtype(self) -> str:
        """The float type most of the weights have in the output."""
        largest = max(self.items, key=lambda item: math.prod(item.stored.shape))
        return largest.dtype


@dataclass(frozen=True)
class Contents:
    """What a source holds, and what becomes of it."""

    config: DrafterConfig
    items: tuple[Item, ...]
    dropped: tuple[str, ...]
    ignored: tuple[str, ...]
    output_bytes: int
    notes: tuple[str, ...]


def make_plan(
    source: Source, output: Path, bits: int | None, dtype: str | None, force: bool
) -> Plan:
    """Check a conversion through and through; raises Refused, Usage, Missing or Unavailable."""
    check_options(bits, dtype)
    check_outside(source, output)
    replaced = check_output(output, force)
    found = read_contents(source, bits, dtype)
    check_space(output, found.output_bytes)
    return Plan(
        source, output, found.config, found.items, found.dropped, found.ignored, bits, replaced,
        found.output_bytes, found.notes,
    )  # fmt: skip


def check_config(
    config: Mapping[str, Any], where: str, layout: str, bits: int | None, dtype: str | None
) -> DrafterConfig:
    """The config of a drafter that can be converted so; raises Refused. `where` is its folder."""
    if layout == MLX and (config.get("quantization") or not (bits or dtype)):
        raise Refused(
            f"{where} is in the MLX format already: nothing to convert",
            f"use it as it is (--draft {where})",
        )
    parsed = drafter_config(config, f"{where}/config.json")
    _check_target(parsed)
    return parsed


def read_contents(source: Source, bits: int | None, dtype: str | None) -> Contents:
    """Hold a source's tensors against its config; headers only. Raises Refused."""
    config = check_config(source.config, str(source.folder), source.layout, bits, dtype)
    tensors = read_tensors(source)
    naming = name_tensors(tensors, source.folder.name or str(source.folder))
    items = _items(config, naming, tensors, bits, DTYPES.get(dtype or ""))
    _check_vocabulary(config, naming, tensors)
    output_bytes = sum(
        math.prod(shape) * WIDTHS[kind] for item in items for _, kind, shape in item.outputs(bits)
    )
    notes = _notes(source, naming, items, bits)
    return Contents(config, items, naming.dropped, naming.ignored, output_bytes, notes)


def check_options(bits: int | None, dtype: str | None) -> None:
    """Raise Usage for a width or type that there is not."""
    if bits is not None and bits not in BITS:
        raise Usage(f"--quantize {bits}: a drafter is quantised to 4 or 8 bits", "choose one")
    if dtype is not None and dtype not in DTYPES:
        raise Usage(f"--dtype {dtype} is none of {', '.join(DTYPES)}", "choose one")


def _check_target(config: DrafterConfig) -> None:
    if config.target_hidden_size != config.hidden_size:
        raise Refused(
            f"config.json: target_hidden_size is {config.target_hidden_size} and hidden_size "
            f"{config.hidden_size}, but embedding and head are the target's own",
            BELONGS,
        )


def _items(
    config: DrafterConfig,
    naming: Naming,
    tensors: Mapping[str, StoredTensor],
    bits: int | None,
    dtype: str | None,
) -> tuple[Item, ...]:
    shapes = tensor_shapes(config)
    names_in: dict[str, str] = {}
    for name_in, name in naming.renamed.items():
        if name not in shapes:
            raise Refused(
                f"{name_in} belongs to no part of a DFly drafter with "
                f"{config.num_hidden_layers} layers",
                BELONGS,
            )
        if name in names_in:
            raise Refused(f"{name_in} and {names_in[name]} both mean {name}", "save one of them")
        names_in[name] = name_in
    for name, shape in shapes.items():
        if name not in names_in:
            raise Refused(f"{_upstream(name)} is missing", "download the checkpoint again")
        stored = tensors[names_in[name]]
        if stored.shape != shape:
            raise Refused(
                f"{names_in[name]} has shape {stored.shape} where the config needs {shape}",
                BELONGS,
            )
        if stored.dtype not in FLOATS:
            raise Refused(
                f"{names_in[name]} has dtype {stored.dtype}, not one of {', '.join(FLOATS)}",
                "save the weights as bf16, f16 or f32",
            )
        check_view(names_in[name], stored)
    items = tuple(
        Item(
            names_in[name],
            name,
            tensors[names_in[name]],
            dtype or tensors[names_in[name]].dtype,
            bits is not None and is_quantised(name, shape),
        )
        for name, shape in shapes.items()
    )
    if bits is not None and not any(item.quantised for item in items):
        raise Refused(
            f"no matrix of this drafter has rows in groups of {GROUP_SIZE}",
            "convert it without --quantize",
        )
    _check_apart(items)
    return items


def _upstream(name: str) -> str:
    for ours, upstream in (
        ("fc.", "context_proj."),
        ("hidden_norm.", "context_norm."),
        ("norm.", "final_norm."),
    ):
        if name.startswith(ours):
            return f"{upstream}{name.removeprefix(ours)} ({name})"
    return name


def is_quantised(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor of an MLX name is quantised when the drafter is."""
    # As mlx-lm: matrices whose rows are whole groups. Norms and the fusion matrix never.
    # The correction's first product is run in two halves, so each half must be whole groups.
    halves = 2 if name.startswith(_FIRST_PRODUCT) else 1
    return name != FUSION and len(shape) == 2 and shape[1] % (halves * GROUP_SIZE) == 0


def _check_apart(items: tuple[Item, ...]) -> None:
    """No two tensors of a drafter share bytes; where they do, an offset is wrong."""
    dense = [(str(i.stored.region.path), *span(i.stored), i) for i in items if i.stored.contiguous]
    dense.sort(key=lambda entry: entry[:3])
    for one, other in itertools.pairwise(dense):
        if one[0] == other[0] and other[1] < one[2]:
            raise Refused(
                f"{one[3].name_in} and {other[3].name_in} share bytes of "
                f"{one[3].stored.region.path.name}",
                "the file is damaged: download it again",
            )


def _check_vocabulary(
    config: DrafterConfig, naming: Naming, tensors: Mapping[str, StoredTensor]
) -> None:
    for name in naming.dropped:
        shape = tensors[name].shape
        if not name.endswith(("embed_tokens.weight", "lm_head.weight")):
            continue
        if len(shape) != 2 or shape[0] != config.vocab_size:
            raise Refused(
                f"{name} has shape {shape} where the config's vocabulary is {config.vocab_size}: "
                "a foreign or pruned vocabulary",
                "use a drafter trained on its target's own vocabulary",
            )
        if shape[1] != config.hidden_size:
            raise Refused(
                f"{name} has width {shape[1]} where the config's hidden_size is "
                f"{config.hidden_size}",
                BELONGS,
            )
    for name, kind in naming.pruning.items():
        if not _is_identity(name, tensors[name], config.vocab_size):
            raise Refused(
                f"{name} ({kind}) maps a pruned vocabulary onto the target's",
                "use a drafter with the full vocabulary",
            )


def _is_identity(name: str, tensor: StoredTensor, vocabulary: int) -> bool:
    """Whether a map between vocabularies changes nothing: all true, offsets of 0, or 0, 1, 2..."""
    if tensor.shape != (vocabulary,) or tensor.dtype not in ("BOOL", "U8", "I32", "I64"):
        return False
    check_view(name, tensor)
    values = np.concatenate([block.astype(np.int64) for block in blocks(tensor)])
    if tensor.dtype in ("BOOL", "U8"):
        return bool((values == 1).all())
    return bool((values == 0).all() or (values == np.arange(vocabulary)).all())


def _notes(
    source: Source, naming: Naming, items: tuple[Item, ...], bits: int | None
) -> tuple[str, ...]:
    notes = []
    if naming.dropped:
        notes.append(f"dropped, the target has its own: {', '.join(naming.dropped)}")
    if naming.pruning:
        notes.append(f"dropped, they change nothing: {', '.join(naming.pruning)}")
    if naming.ignored:
        notes.append(f"other modules, left out: {len(naming.ignored)} tensors")
    if not source.licences:
        notes.append("the source holds no licence file: mind the terms of its publisher")
    plain = [i.name for i in items if not i.quantised and len(i.stored.shape) == 2]
    if bits is not None and len(plain) > 1:
        notes.append(
            f"not quantised, rows are not groups of {GROUP_SIZE}: "
            + ", ".join(name for name in plain if name != FUSION)
        )
    return tuple(notes)


def mlx_config(plan: Plan) -> dict[str, Any]:
    """The config.json to write: the source's, with what the MLX format adds."""
    config, written = plan.config, dict(plan.source.config)
    before = written.get("dflash_config")
    stated: dict[str, Any] = {**(before if isinstance(before, dict) else {}), **written}
    written.pop("auto_map", None)  # names python files that are not copied
    written.pop("quantization", None)
    written.pop("dtype", None)  # the newer name of torch_dtype
    written |= {
        "architectures": [MLX_ARCHITECTURE],
        "head_dim": config.head_dim,
        "block_size": config.block_size,
        "num_key_value_heads": config.num_key_value_heads,
        "num_target_layers": config.taps,
        "rope_theta": config.rope_theta,
        "target_hidden_size": config.target_hidden_size,
        "torch_dtype": TORCH_NAMES[plan.dtype],
        "dflash_config": {
            "target_layer_ids": list(config.target_layer_ids),
            "mask_token_id": config.mask_token_id,
            "enable_hidden_correction": config.enable_hidden_correction,
            # Null means the hidden size, and stays null, as in the published conversion.
            "hidden_correction_intermediate_size": stated.get(
                "hidden_correction_intermediate_size"
            ),
        },
    }
    if plan.bits is not None:
        written["quantization"] = {"group_size": GROUP_SIZE, "bits": plan.bits}
    return written
