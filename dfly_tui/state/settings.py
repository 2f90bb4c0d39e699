"""What the user chose, in one small file; a broken file costs the choices, not the start."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, get_type_hints

from dfly_core.records.commands import GenerateOptions
from dfly_core.records.files import contents
from dfly_core.records.loaded import VerifyMode
from dfly_core.records.wire import WireError, from_plain


@dataclass
class Settings:
    """The choices that outlive a session; `EXPLAINED` has a line about each for the screen."""

    model: str | None = None
    draft: str | None = None
    no_draft: bool = False
    verify: str = "exact"
    theme: str = "dfly-dark"
    system: str = ""
    max_tokens: int = 1024
    width: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    panel: bool = True
    reduced_motion: bool = False
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def verify_mode(self) -> VerifyMode:
        """How drafts are checked; exact where the file says something else."""
        modes: dict[str, VerifyMode] = {"fast": "fast", "auto": "auto"}
        return modes.get(self.verify, "exact")

    @property
    def options(self) -> GenerateOptions:
        """How answers are to be made."""
        return GenerateOptions(
            max_tokens=self.max_tokens,
            width=self.width,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=self.seed,
        )


EXPLAINED: dict[str, str] = {
    "model": "The target model: a folder or a hub id. Empty means the embedded pair.",
    "draft": "The drafter for that target: a folder or a hub id.",
    "no_draft": "Decode with the target alone, one token at a time.",
    "verify": "exact: the answer is the target's own. fast: nearly tied tokens may differ. "
    "auto: exact, unless that costs more than a tenth of the speed.",
    "theme": "Colours. The ansi themes use the terminal's own sixteen.",
    "system": "Told to the model before every new chat.",
    "max_tokens": "The longest answer, in tokens.",
    "width": "Tokens drafted and checked a step; 0: none. auto: what pays here, by measured times; "
    "the embedded pair always drafts.",
    "temperature": "0 always takes the likeliest token; higher is more varied and not comparable.",
    "top_p": "Draw only from the likeliest tokens that together reach this share; 1 is all.",
    "top_k": "Draw only from that many likeliest tokens; 0 is all.",
    "seed": "The same seed draws the same text. Empty draws anew each time.",
    "panel": "Show the live panel on wide terminals.",
    "reduced_motion": "No animation, and fewer repaints while an answer streams.",
    "keys": "Your own keys, as binding id and key names.",
}


def load_settings(path: Path) -> tuple[Settings, str]:
    """The settings and, if the file could not be used, a line that says so."""
    settings = Settings()
    try:
        plain = json.loads(contents(path))
        if not isinstance(plain, dict):
            raise ValueError("not an object")
    except FileNotFoundError:
        return settings, ""
    except (OSError, ValueError) as error:
        said = f"Settings could not be read ({error}): the defaults are used; {_kept_words(path)}"
        return settings, said
    kinds = get_type_hints(Settings)
    bad = []
    for name, value in plain.items():
        if name not in kinds:
            continue
        try:
            setattr(settings, name, from_plain(kinds[name], value, name))
        except WireError:
            bad.append(name)
    if not bad:
        return settings, ""
    names = ", ".join(bad)
    return (
        settings,
        f"Settings not understood, left at their defaults: {names}; {_kept_words(path)}",
    )


def save_settings(path: Path, settings: Settings) -> Path | None:
    """Write beside, sync, rename: a crash leaves the old file or the new one.

    A file that could not be read, or not all of it, is kept aside first: returns its new path.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    with beside.open("w", encoding="utf-8") as file:
        json.dump(asdict(settings), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    kept = _aside(path) if load_settings(path)[1] else None
    if kept is not None:
        path.rename(kept)
    beside.replace(path)
    return kept


def _aside(path: Path) -> Path:
    """A free name for a broken file."""
    names = (path.with_name(f"{path.name}.bad{n if n > 1 else ''}") for n in count(1))
    return next(name for name in names if not name.exists())


def _kept_words(path: Path) -> str:
    return f"at the first change the file is kept as {_aside(path).name}"
