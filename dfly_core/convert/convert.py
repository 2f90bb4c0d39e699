"""A conversion from a hub id, folder or file to a finished MLX folder, as a stream of events."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from dfly_core.convert.card import model_card
from dfly_core.convert.place import CARD, CONFIG, WEIGHTS, check_output, output_folder, path_fault
from dfly_core.convert.plan import Plan, check_options, make_plan, mlx_config
from dfly_core.convert.source import Source, find_source
from dfly_core.convert.staging import Staging, clear_leftovers, sync, writing
from dfly_core.convert.stored import BLOCK_BYTES, map_bytes
from dfly_core.convert.write import Written, write_weights
from dfly_core.model.config import DEFAULT_DRAFT, DEFAULT_REVISION
from dfly_core.model.locate import HUB_ID
from dfly_core.records.commands import Convert
from dfly_core.records.errors import Missing, Stopped, Usage
from dfly_core.records.events import Cancelled, Converted, Event, Progress
from dfly_core.records.visible import one_line

# The hash of 2 GB takes longer than the rest of a plain conversion. Those tensors have the
# checksums of their own, and a source from the hub is known by its hash.
HASHED_BYTES = 1 << 30
_NAME_ONE = "name a folder, a file or a hub id (owner/name)"


def convert(command: Convert, cancelled: Callable[[], bool]) -> Iterator[Event]:
    """Convert a checkpoint: Progress events, then Converted or Cancelled.

    The destination is absent (or what it was) until it is whole. Raises DflyError with one
    line and one remedy for everything else.
    """
    try:
        yield from _convert(command, cancelled)
    except Stopped:
        yield Cancelled()


def _convert(command: Convert, cancelled: Callable[[], bool]) -> Iterator[Event]:
    start = time.monotonic()
    output = output_folder(command.output)
    # What can be told without the source is told before a download.
    clear_leftovers(output)
    check_options(command.quantize, command.dtype)
    check_output(output, command.force)
    source = yield from _source(command, cancelled)
    plan = make_plan(source, output, command.quantize, command.dtype, command.force)
    yield Progress("check", str(output), len(plan.items), len(plan.items), "tensors")
    written = Written()
    with Staging(output) as staging:
        yield from write_weights(plan, staging.folder, cancelled, written)
        _write_config(plan, staging.folder)
        report = _report(plan, written, staging.folder)
        if plan.bits is not None:
            # Imports the drafter, and with it mlx-lm and transformers: seconds, for this alone.
            from dfly_core.convert.agreement import compare_quantised

            agreed: dict[str, Any] = {}
            report["agreement"] = agreed
            yield from compare_quantised(plan, staging.folder, cancelled, agreed)
        _write_card(plan, staging.folder, report)
        if cancelled():
            raise Stopped
        staging.publish(plan.replace)
    yield Converted(report | {"seconds": round(time.monotonic() - start, 3)})


def named_source(command: Convert) -> Source | tuple[str, str]:
    """The checkpoint a command means: a path that is there, or else a hub id and revision."""
    name = command.source or DEFAULT_DRAFT
    shown = one_line(name, 200)
    try:
        name.encode("utf-8")
        path = Path(name).expanduser()
        if path.exists():
            if command.revision is not None:
                raise Usage(f"--revision is for hub ids, and {shown} is a path", "leave it out")
            return find_source(path)
    except (OSError, RuntimeError, ValueError) as error:  # not allowed, too long, no such user
        raise Missing(f"{shown} can't be read ({path_fault(error)})", _NAME_ONE) from error
    if name.startswith(("/", ".", "~")) or not HUB_ID.fullmatch(name):
        raise Missing(f"no checkpoint at {shown}", _NAME_ONE)
    return name, command.revision or (DEFAULT_REVISION if name == DEFAULT_DRAFT else "main")


def _source(command: Convert, cancelled: Callable[[], bool]) -> Generator[Event, None, Source]:
    named = named_source(command)
    if isinstance(named, Source):
        return named
    # Imports the hub's client, for this alone.
    from dfly_core.convert.hub import fetch

    return (yield from fetch(*named, cancelled))


def _write_config(plan: Plan, folder: Path) -> None:
    with writing(plan.output):
        text = json.dumps(mlx_config(plan), indent=2, ensure_ascii=False) + "\n"
        (folder / CONFIG).write_text(text, encoding="utf-8")
        for licence in plan.source.licences:
            shutil.copyfile(licence, folder / licence.name)


def _write_card(plan: Plan, folder: Path, report: dict[str, Any]) -> None:
    with writing(plan.output):
        (folder / CARD).write_text(model_card(plan, report), encoding="utf-8")
        for path in folder.iterdir():
            if path.name != WEIGHTS:
                sync(path)


def _file(path: Path, known: str | None = None) -> dict[str, Any]:
    """Name, size and SHA-256 of a file, the last only where it does not take long."""
    size = path.stat().st_size
    sha256 = known
    if known is None and size <= HASHED_BYTES:
        found = hashlib.sha256()
        for first in range(0, size, BLOCK_BYTES):
            found.update(map_bytes(path, first, min(BLOCK_BYTES, size - first)).data)
        sha256 = found.hexdigest()
    return {"name": path.name, "bytes": size, "sha256": sha256}


def _report(plan: Plan, written: Written, folder: Path) -> dict[str, Any]:
    source, known = plan.source, plan.source.hashes or {}
    return {
        "output": str(plan.output),
        "source": str(source.folder),
        "layout": source.layout,
        "repository": source.repository,
        "revision": source.revision,
        "dtype": plan.dtype.lower(),
        "bits": plan.bits,
        "tensors": len(plan.items),
        "output_bytes": plan.output_bytes,
        "dropped": list(plan.dropped),
        "ignored": list(plan.ignored),
        "notes": list(plan.notes),
        "source_files": [_file(path, known.get(path.name)) for path in source.files],
        "files": [_file(path) for path in sorted(folder.iterdir())],
        "checksums": written.checksums,
        "errors": [
            {"name": name, "relative": error.relative, "largest": error.largest}
            for name, error in written.errors.items()
        ],
        "agreement": None,
    }
