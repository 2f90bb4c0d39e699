"""A target and its drafter: do they fit (told before anything large is read), and load them."""

from __future__ import annotations

import glob
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_reduce
from mlx_lm.utils import load_model

from dfly_core.model.acceptance import Acceptance
from dfly_core.model.config import (
    DEFAULT_TARGET,
    DEFAULT_TARGET_SIZES,
    DrafterConfig,
    check_target_sizes,
    drafter_config,
    misfit,
    read_config,
    read_object,
    tensor_shapes,
)
from dfly_core.model.drafter import Drafter, split_correction
from dfly_core.model.headers import DAMAGE, Header, check_kinds, read_headers
from dfly_core.model.layout import lay_out, on_cpu
from dfly_core.model.locate import EMBEDDED, fetched, locate
from dfly_core.model.prompt import Tokenizer, byte_ids, load_tokenizer, stop_ids
from dfly_core.model.routes import Routes
from dfly_core.model.target import Target, check_family
from dfly_core.model.told import Told
from dfly_core.records.commands import Load
from dfly_core.records.errors import Missing, Refused
from dfly_core.records.events import Progress
from dfly_core.records.loaded import PairInfo, Verdict
from dfly_core.records.visible import one_line

GROUP = 64  # quantisation group, mlx-lm's default


@dataclass
class Pair:
    """The loaded models, the tokenizer, and their facts.

    `routes` and `verdict` come from the self-test (`dfly_core.exact`): without them blocks
    run as mlx-lm runs them and nothing is known about their bits. `distrust` makes the next
    load test again; `until_audit` counts the tokens until a block is re-checked;
    `acceptance` is what the last answer that drafted saw.
    """

    target: Target
    drafter: Drafter | None
    tokenizer: Tokenizer
    stop_ids: frozenset[int]
    info: PairInfo
    target_folder: Path
    draft_folder: Path | None
    routes: Routes | None = None
    verdict: Verdict | None = None
    distrust: Callable[[], None] = lambda: None
    until_audit: int | None = None
    acceptance: Acceptance | None = None
    byte_ids: frozenset[int] = frozenset()

    @cached_property
    def told(self) -> Told:
        """What the drafter's correction takes from a token; only where it has one."""
        assert self.drafter is not None
        return Told(self.drafter, self.target)

    def decode(self, ids: Sequence[int]) -> str:
        """Ids -> text, special tokens included, nothing tidied."""
        return str(
            self.tokenizer.decode(
                list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )

    @property
    def block_size(self) -> int:
        """K; 1 when there is no drafter."""
        return self.drafter.config.block_size if self.drafter else 1

    @property
    def widest(self) -> int:
        """Proposals that may be verified at once: K-1, or fewer where more would not be exact."""
        most = self.block_size - 1
        return most if self.verdict is None else min(most, self.verdict.width)


def check_pair(
    request: Load,
) -> tuple[Path, dict[str, Any], Path | None, DrafterConfig | None]:
    """Folder and config of target and drafter, if they fit; downloads hub ids not cached.

    Raises Refused or Missing for all that can be told without reading anything large.
    """
    target_folder, draft_folder = find_pair(request)
    target_config = read_config(target_folder)
    config = check_fit(target_folder, target_config, draft_folder)
    _check_weights_there(target_folder)
    if config is not None:
        _check_bits(config, request.draft_bits)
    return target_folder, target_config, draft_folder, config


def load_pair(request: Load) -> Pair:
    """Load what was asked for; raises Refused or Missing before anything large is read."""
    target_folder, target_config, draft_folder, config = check_pair(request)
    tokenizer = load_tokenizer(target_folder)
    target = load_target(target_folder, config.target_layer_ids if config else ())
    drafter = None
    if draft_folder is not None and config is not None:
        drafter = load_drafter(draft_folder, config, target.dtype, request.draft_bits)
    return Pair(
        target=target,
        drafter=drafter,
        tokenizer=tokenizer,
        stop_ids=stop_ids(target_folder, target_config, tokenizer),
        info=describe(request, target, drafter),
        target_folder=target_folder,
        draft_folder=draft_folder,
        byte_ids=byte_ids(tokenizer),
    )


def fetch_pair(request: Load, cancelled: Callable[[], bool]) -> Generator[Progress, None, None]:
    """Have the hub ids of a request in the local cache; raises Stopped soon after a cancel.

    Raises Refused before any weights are fetched where the two configs do not fit.
    """
    model, draft = _names(request)
    if model is not None:
        drafter = None
        if draft is not None:
            drafter = yield from fetched(draft, cancelled, ["config.json"])
            if request.model is None:  # the official target's sizes are known without having it
                _check_misfit(_config_of(drafter), DEFAULT_TARGET_SIZES, DEFAULT_TARGET)
        folder = yield from fetched(model, cancelled, ["config.json"])
        check_configs(folder, read_config(folder), drafter)
    # The drafter first: it is the smaller one, and more often the one that can't be read.
    for name in (draft, model):
        if name is not None:
            yield from fetched(name, cancelled)


def _names(request: Load) -> tuple[str | None, str | None]:
    """Target and drafter by folder or hub id; None for one of the embedded pair, or for none."""
    if request.draft is None or request.no_draft:
        return request.model, None
    return request.model or DEFAULT_TARGET, request.draft


def find_pair(request: Load) -> tuple[Path, Path | None]:
    """The two folders a request means; downloads hub ids that are not cached."""
    model, draft = _names(request)
    drafter = None if draft is None else locate(draft)
    if model is not None:
        return locate(model), drafter
    return EMBEDDED / "target", None if request.no_draft else EMBEDDED / "drafter"


def check_fit(
    target_folder: Path, target_config: dict[str, Any], draft_folder: Path | None
) -> DrafterConfig | None:
    """The drafter's config if the two fit, its tensors too; raises as `check_configs`."""
    config = check_configs(target_folder, target_config, draft_folder)
    if draft_folder is not None and config is not None:
        _check_drafter_tensors(draft_folder, config)
    return config


def check_configs(
    target_folder: Path, target_config: dict[str, Any], draft_folder: Path | None
) -> DrafterConfig | None:
    """The drafter's config if the two fit; raises Refused naming both values and the remedy."""
    check_family(target_config)
    check_target_sizes(target_config, f"{called(target_folder)}/config.json")
    if draft_folder is None:
        return None
    config = _config_of(draft_folder)
    _check_misfit(config, target_config, called(target_folder))
    return config


def _config_of(draft_folder: Path) -> DrafterConfig:
    return drafter_config(read_config(draft_folder), f"{called(draft_folder)}/config.json")


def _check_misfit(config: DrafterConfig, target: Mapping[str, Any], name: str) -> None:
    if bad := misfit(config, target):
        wanted, found = bad
        raise Refused(
            f"the drafter was made for a target with {wanted}, {name} has {found}",
            "choose the target this drafter was trained for, or its own drafter",
        )


def called(folder: Path) -> str:
    """What a person calls a model folder: its name, or the hub id whose snapshot it is."""
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/")
    return folder.resolve().name


def _check_drafter_tensors(folder: Path, config: DrafterConfig) -> None:
    headers = _headers(folder)
    shapes = {name: entry.shape for name, entry in headers.items()}
    foreign = sorted(n for n in shapes if n.startswith(("context_proj.", "final_norm.")))
    if foreign:
        raise Refused(
            f"{folder} holds an unconverted drafter (tensor {foreign[0]})", _convert_remedy(folder)
        )
    if "layer_fusion_weights" not in shapes:
        raise Refused(
            f"{folder} has no layer_fusion_weights: it is no DFly drafter",
            "DFlash, DSpark and Eagle drafters are other designs; choose a DFly one",
        )
    packed = config.quantization is not None
    for name, shape in tensor_shapes(config).items():
        found = shapes.pop(name, None)
        if found is None:
            raise Refused(f"{folder}: tensor {name} is missing", "convert the checkpoint again")
        stem = name.removesuffix(".weight")
        if packed and f"{stem}.scales" in shapes:
            for part in ("scales", "biases"):
                shapes.pop(f"{stem}.{part}", None)
            same = found[:1] == shape[:1]
        else:
            same = found == shape
        if not same:
            raise Refused(
                f"{folder}: tensor {name} has shape {list(found)}, the config implies "
                f"{list(shape)}",
                "take config.json and weights from one conversion",
            )
    if shapes:
        raise Refused(
            f"{folder}: tensor {sorted(shapes)[0]} belongs to no part of a DFly drafter",
            "convert the checkpoint again",
        )
    check_kinds(folder, headers, "convert the checkpoint again")


def _headers(folder: Path) -> dict[str, Header]:
    if not any(folder.glob("model*.safetensors")):
        if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
            raise Refused(f"{folder} holds an unconverted drafter", _convert_remedy(folder))
        raise Missing(f"no model.safetensors in {folder}", "name a converted drafter")
    return read_headers(folder)


def _convert_remedy(folder: Path) -> str:
    return f"run `dfly-mlx convert --draft {folder} --output NEW_FOLDER` and use NEW_FOLDER"


def _check_weights_there(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        named = read_object(index).get("weight_map")
        if not isinstance(named, dict):
            raise Refused(f"{index} has no weight_map", "download the model again")
        # Only these are read, whatever else an index may name.
        there = {path.name for path in folder.glob("model*.safetensors")}
        missing = sorted({str(name) for name in named.values()} - there)
        if missing:
            raise Missing(f"{folder} lacks {missing[0]}", "download the model again")
    elif not any(folder.glob("model*.safetensors")):
        raise Missing(f"no model*.safetensors in {folder}", "name a model folder in MLX format")
    check_kinds(folder, read_headers(folder), "download the model again")


def load_target(folder: Path, taps: tuple[int, ...]) -> Target:
    """mlx-lm's model of a folder; on the CPU backend 16-bit values are widened to float32.

    Widening keeps every weight's value and is about eight times faster there; the baseline
    runs on the same widened model, so parity compares like with like.
    """
    if glob.escape(str(folder)) != str(folder):
        raise Refused(f"mlx-lm reads no folder with [, * or ? in its name ({folder})", "rename it")
    try:
        model, config = load_model(folder, lazy=True)
    except DAMAGE as error:
        said = one_line(f"{type(error).__name__}: {error}", 200)
        raise Refused(f"{folder} can't be loaded ({said})", "download the model again") from error
    if on_cpu():
        model.set_dtype(mx.float32)
    lay_out(model)
    target = Target(model, config, taps)
    mx.eval(model.parameters())
    return target


def load_drafter(
    folder: Path, config: DrafterConfig, dtype: mx.Dtype, bits: int | None = None
) -> Drafter:
    """A converted drafter with activations in the target's dtype, quantised to `bits` if asked."""
    weights: dict[str, mx.array] = {}
    try:
        for path in sorted(folder.glob("model*.safetensors")):
            weights |= mx.load(str(path))  # type: ignore[arg-type]
        return build_drafter(weights, config, dtype, bits)
    except DAMAGE as error:
        said = one_line(f"{type(error).__name__}: {error}", 200)
        raise Refused(
            f"the drafter in {folder} can't be loaded ({said})", "convert the checkpoint again"
        ) from error


def build_drafter(
    weights: Mapping[str, mx.array],
    config: DrafterConfig,
    dtype: mx.Dtype,
    bits: int | None = None,
) -> Drafter:
    """A drafter from tensors in MLX names; Refused when it is stored with other `bits`."""
    _check_bits(config, bits)
    drafter = Drafter(config)
    run_weights = split_correction(dict(weights))
    stored = config.quantization
    if stored is not None:
        nn.quantize(
            drafter,
            group_size=int(stored["group_size"]),
            bits=int(stored["bits"]),
            class_predicate=lambda path, _: f"{path}.scales" in run_weights,
        )
    drafter.load_weights(list(run_weights.items()), strict=True)
    drafter.set_dtype(dtype)
    if stored is None and bits is not None:
        nn.quantize(drafter, group_size=GROUP, bits=bits, class_predicate=_can_quantize)
    lay_out(drafter)
    # The shares of the taps are made in float32 whatever the rest is.
    drafter.layer_fusion_weights = drafter.layer_fusion_weights.astype(mx.float32)
    mx.eval(drafter.parameters())
    return drafter


def _check_bits(config: DrafterConfig, bits: int | None) -> None:
    stored = (config.quantization or {}).get("bits", bits)
    if bits is not None and bits != stored:
        raise Refused(
            f"the drafter is stored with {stored} bits, {bits} were asked for",
            "convert the 16-bit checkpoint again, or leave --draft-bits out",
        )


def _can_quantize(_: str, module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) and module.weight.shape[-1] % GROUP == 0


def _nbytes(module: nn.Module | None) -> int:
    return tree_reduce(lambda n, a: n + a.nbytes, module.parameters(), 0) if module else 0


def _bits(module: nn.Module | None) -> int | None:
    found = [m.bits for m in module.modules() if hasattr(m, "bits")] if module else []
    return min(found) if found else None


def describe(request: Load, target: Target, drafter: Drafter | None) -> PairInfo:
    """The loaded models in plain words."""
    args = target.model.args
    # Qwen2's args have no head_dim at all, Llama's may be null.
    head_dim = getattr(args, "head_dim", None) or args.hidden_size // args.num_attention_heads
    config = drafter.config if drafter else None
    layers = len(target.layers) * args.num_key_value_heads * head_dim
    if config:
        layers += config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    embedded = request.model is None and (request.draft is None or request.no_draft)
    draft = request.draft or "embedded"
    return PairInfo(
        model="embedded" if embedded else request.model or DEFAULT_TARGET,
        draft=draft if drafter else None,
        embedded=embedded,
        block_size=config.block_size if config else 1,
        taps=target.taps,
        context_limit=target.context_limit,
        vocab_size=args.vocab_size,
        target_layers=len(target.layers),
        target_dtype=str(target.dtype).removeprefix("mlx.core."),
        target_bits=_bits(target.model),
        draft_bits=_bits(drafter),
        target_bytes=_nbytes(target.model),
        draft_bytes=_nbytes(drafter),
        kv_bytes_per_token=2 * layers * target.dtype.size,
    )
