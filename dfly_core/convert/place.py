"""Where a conversion goes: not over its source nor a stranger's files, and only where it fits."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

from dfly_core.convert.source import MLX_ARCHITECTURE, Source, is_licence
from dfly_core.records.errors import Refused, Unavailable, Usage
from dfly_core.records.files import contents
from dfly_core.records.sizes import size_words
from dfly_core.records.visible import one_line

SPARE_BYTES = 32 << 20  # headers, card, licence, and the file system's own needs
WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"


def output_folder(name: str | None) -> Path:
    """The folder a user's output means; raises Usage for none, Refused for what can't be one."""
    if name is None:
        raise Usage("no output is named", "name the folder to make with --output")
    try:
        name.encode("utf-8")
        output = Path(name).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            output.resolve().lstat()
    except (OSError, RuntimeError, ValueError) as error:  # too long, no such user, no text
        raise Refused(
            f"the output {one_line(name, 100)} can't be a folder ({path_fault(error)})",
            "choose another",
        ) from error
    return output


def path_fault(error: Exception) -> str:
    """Why a path is none, in short: the path itself is told elsewhere."""
    if isinstance(error, ValueError):  # a NUL, or half a character
        return "it is no valid name"
    return (error.strerror if isinstance(error, OSError) else None) or one_line(str(error), 100)


def check_outside(source: Source, output: Path) -> None:
    """Raise Refused where output and source lie in one another."""
    around = _identities(output)
    # The folder that was named, or the file; and what hides behind a cache's links.
    for place in (source.given, *source.files):
        if _identity(place) in around or _identity(output) in _identities(place):
            raise Refused(
                f"the output {output} and the source {source.folder} share a folder",
                "choose an output elsewhere: the source is never written to",
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode: two spellings of one name differ in nothing else where case is ignored."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _identities(path: Path) -> set[tuple[int, int]]:
    """Of a path and of every folder it lies in, as far as they exist."""
    real = path.resolve()
    return {found for place in (real, *real.parents) if (found := _identity(place))}


def check_output(output: Path, force: bool) -> bool:
    """Whether a converted drafter stands there to be replaced; raises Refused for anything else."""
    real = output.resolve()
    try:
        if not real.exists():
            return False
        if not real.is_dir():
            raise Refused(f"the output {output} is a file", "choose a folder")
        inside = sorted(path.name for path in real.iterdir())
    except OSError as error:
        raise Unavailable(f"can't read {output} ({error.strerror})", "choose another") from error
    if not inside:
        return False
    if not force:
        raise Refused(f"the output {output} exists", "choose another, or replace it with --force")
    foreign = [name for name in inside if not _is_ours(name)]
    if foreign or not _is_drafter(real):
        raise Refused(
            f"the output {output} holds {(foreign or inside)[0]!r}, so it is no converted drafter "
            "and --force does not replace it",
            "choose another folder, or remove this one yourself",
        )
    return True


def _is_ours(name: str) -> bool:
    return name in (CONFIG, WEIGHTS, CARD, ".DS_Store") or is_licence(name)


def _is_drafter(folder: Path) -> bool:
    try:
        config = json.loads(contents(folder / CONFIG))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and config.get("architectures") == [MLX_ARCHITECTURE]


def room_at(output: Path) -> tuple[Path, int]:
    """The folder that is there and would hold the output, and its free bytes."""
    place = output.resolve().parent
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise Refused(f"{place} is a file, so {output} can't be made in it", "choose another")
    try:
        return place, shutil.disk_usage(place).free
    except OSError as error:
        raise Unavailable(f"can't read {place} ({error.strerror})", "choose another") from error


def check_space(output: Path, needed: int) -> None:
    """Raise Unavailable where the output does not fit, naming both sizes."""
    place, free = room_at(output)
    if free < needed + SPARE_BYTES:
        raise Unavailable(
            f"{place} has {size_words(free)} free where {size_words(needed + SPARE_BYTES)} "
            f"are needed, {size_words(SPARE_BYTES)} of them to spare",
            "free some space or choose an output elsewhere",
        )
