"""Upstream tensor names and their MLX names; what belongs to the drafter and what does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dfly_core.records.errors import Refused

FUSION = "layer_fusion_weights"  # only DFly drafters have it
RENAMED = {"context_proj.": "fc.", "context_norm.": "hidden_norm.", "final_norm.": "norm."}
# The target's own embedding and head are used; the other two heads belong to other drafters.
DROPPED = ("embed_tokens.", "lm_head.", "markov_head.", "confidence_head.")
PRUNING = ("t2d", "d2t")
PREFIXES = ("module.draft_model.", "draft_model.", "module.", "model.", "")

# Tensors by which the relatives give themselves away, when there is no fusion matrix.
_RELATIVES = {
    "markov_head.": "DSpark",
    "confidence_head.": "DSpark",
    "midlayer.": "Eagle",
    "fc.": "DFlash or Eagle",
    "context_proj.": "DFlash",
    "model.embed_tokens.": "an ordinary language model",
}


@dataclass(frozen=True)
class Naming:
    """How the tensors of a checkpoint are used; keys are names as they stand in the file.

    `renamed` maps to MLX names, `pruning` to t2d or d2t; `ignored` are other modules' tensors.
    """

    renamed: Mapping[str, str]
    dropped: tuple[str, ...]
    pruning: Mapping[str, str]
    ignored: tuple[str, ...]
    prefix: str


def to_mlx(name: str) -> str:
    """The MLX name of an upstream tensor, its prefix already taken off."""
    for upstream, ours in RENAMED.items():
        if name.startswith(upstream):
            return ours + name.removeprefix(upstream)
    return name


def name_tensors(names: Iterable[str], where: str) -> Naming:
    """Sort the tensors of a checkpoint by use; raises Refused for what is no DFly drafter."""
    names = list(names)
    prefixes = [prefix for prefix in PREFIXES if prefix + FUSION in names]
    if not prefixes:
        raise Refused(
            f"{where} holds no {FUSION}, so it is no DFly drafter{_relative(names)}",
            "name a DFly checkpoint",
        )
    if len(prefixes) > 1:
        raise Refused(
            f"{where} holds two drafters, under {prefixes[0]!r} and {prefixes[1]!r}",
            "save one of them",
        )
    prefix = prefixes[0]
    renamed, dropped, pruning, ignored = {}, [], {}, []
    for name in names:
        bare = name.removeprefix(prefix)
        if not name.startswith(prefix):
            # A training file holds its other modules beside the drafter; a serving file does not.
            if "draft_model." in prefix:
                ignored.append(name)
            elif name.startswith(DROPPED):
                dropped.append(name)
            else:
                renamed[name] = to_mlx(name)  # claimed by nobody: the plan names it
        elif bare in PRUNING:
            pruning[name] = bare
        elif bare.startswith(DROPPED):
            dropped.append(name)
        else:
            renamed[name] = to_mlx(bare)
    return Naming(renamed, tuple(dropped), pruning, tuple(ignored), prefix)


def _relative(names: list[str]) -> str:
    for mark, kind in _RELATIVES.items():
        found = next((name for name in names if mark in name), None)
        if found is not None:
            return f" ({found} is a tensor of {kind})"
    return ""
