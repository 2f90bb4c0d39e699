"""The report file: written whole after every row, taken up again after an interruption."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dfly_core.records.errors import Refused, Unavailable
from dfly_core.records.files import contents
from dfly_core.records.report import Report

# What must be the same for rows of two runs to stand in one report.
SETTINGS = (
    "schema_version", "model", "draft", "trials", "max_tokens", "hardware", "software", "models",
    "prompts",
)  # fmt: skip


def write_report(path: Path, report: Report) -> None:
    """Write beside, sync, rename: a reader sees the old report or the new one, never a part."""
    beside = _beside(path)
    try:
        with beside.open("w", encoding="utf-8") as file:
            json.dump(asdict(report), file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise _unwritable(path, error) from error


def check_writable(path: Path) -> None:
    """Raise Unavailable where the report could not be written; leaves nothing behind."""
    beside = _beside(path)
    try:
        beside.touch()
        beside.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _unwritable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"{path} can't be written ({error.strerror})", "name another --output")


def finished_rows(path: Path, fresh: Report) -> dict[str, dict[str, Any]]:
    """Rows by id that an interrupted run with the same settings left; none otherwise.

    A finished report is simply replaced; raises Refused where an unfinished one of other
    settings, or a file that is no report, would be lost.
    """
    found = _read(path)
    if found is None or found.get("finished"):
        return {}
    other = _first_difference(found, fresh)
    if other is not None:
        raise Refused(
            f"{path} holds an unfinished benchmark with another {other}",
            "run it with the same settings, delete it, or name another --output",
        )
    return {row["id"]: row for row in found["results"]}


def unnamed_report(fresh: Report) -> Path:
    """Where a report goes that was given no name: nothing that is there is lost.

    The first of benchmark.json, benchmark-2.json, ... that is not there, or that an interrupted
    run with the same settings left.
    """
    for number in itertools.count(1):
        path = Path(f"benchmark-{number}.json" if number > 1 else "benchmark.json")
        if not os.path.lexists(path):
            break
        with suppress(Refused):
            found = _read(path)
            if found and not found.get("finished") and _first_difference(found, fresh) is None:
                break
    return path


def _read(path: Path) -> dict[str, Any] | None:
    """The report that is there, None where nothing is; raises Refused for anything else."""
    try:
        if path.exists() and not path.is_file():
            raise Refused(f"{path} is no file", "name another --output")
        found = json.loads(contents(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(
            f"{path} is there and is no benchmark report", "name another --output"
        ) from error
    if not isinstance(found, dict) or "schema_version" not in found or "results" not in found:
        raise Refused(f"{path} is there and is no benchmark report", "name another --output")
    return found


def _first_difference(found: Mapping[str, Any], fresh: Report) -> str | None:
    wanted = json.loads(json.dumps(asdict(fresh)))
    for name in SETTINGS:
        if found.get(name) != wanted[name]:
            return name.replace("_", " ")
    if found.get("verify", {}).get("mode") != wanted["verify"]["mode"]:
        return "verify mode"
    return None
