"""With which target a drafter can be used here, or why with none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dfly_core.records.commands import Load
from dfly_core.records.loaded import VerifyMode
from dfly_tui.state.checking import OFFICIAL
from dfly_tui.state.models import (
    QWEN3_8B,
    Found,
    made_for_words,
    misfit,
    read_model,
    short_name,
)

# The official drafter before it is here, as far as a target must fit it.
_OFFICIAL = Found(
    OFFICIAL, Path(), "hub", "drafter", 0,
    {"target_hidden_size": 4096, "vocab_size": 151936, "target_num_hidden_layers": 36},
)  # fmt: skip


@dataclass(frozen=True)
class Use:
    """What to load to use a drafter, None where that can't be; and with what, or why not."""

    load: Load | None
    words: str


def use_of(folder: Path, target: str, models: list[Found], verify: VerifyMode) -> Use:
    """How the drafter in a folder can be used: with the named target, else one that is here."""
    drafter = read_model(folder)
    if target:
        found = find_model(target, models)
        if found is not None and drafter is not None and (bad := misfit(found, drafter)):
            return Use(None, f"it does not fit {short_name(target)}: {bad}")
        # What is not here is for the engine to fetch, or to refuse.
        return Use(Load(target, str(folder), verify=verify), f"with {short_name(target)}")
    fitting = [m for m in models if m.kind == "target" and drafter and not misfit(m, drafter)]
    if fitting:
        return Use(
            Load(str(fitting[0].path), str(folder), verify=verify), f"with {fitting[0].name}"
        )
    if drafter is not None and misfit(QWEN3_8B, drafter):
        made = made_for_words(drafter)
        return Use(None, f"no target on this machine fits it: it was made for {made}")
    # Without a target here, the default one is downloaded: the engine says how far it is.
    return Use(Load(None, str(folder), verify=verify), "with the official target, downloaded first")


def fit_words(source: str | None, target: str, models: list[Found]) -> str:
    """Whether a drafter that is still to be converted fits the named target, as far as known."""
    drafter = _OFFICIAL if source is None else find_model(source, models)
    found = find_model(target, models)
    name = short_name(target)
    if found is None:
        return f"target {name}: not on this machine, so the fit is told when both are loaded"
    if found.kind != "target":
        return f"target {name}: this is a drafter, not a target"
    if drafter is None:
        return f"target {name}: the fit is told after converting"
    bad = misfit(found, drafter)
    return f"target {name}: {f'does not fit, {bad}' if bad else 'fits'}"


def find_model(name: str, models: list[Found]) -> Found | None:
    """The model in that folder, or with that name; None where there is none here."""
    path = Path(name).expanduser()
    if path.is_dir():
        return read_model(path)
    return next((model for model in models if model.name == name), None)
