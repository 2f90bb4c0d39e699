"""A self-test's findings in the user's cache, by machine and model."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from dfly_core.exact.findings import Findings
from dfly_core.model.machine import digest
from dfly_core.records.wire import WireError, from_plain

VERSION = 5  # of the self-test; a change of what it checks makes older findings void


def findings_path(folder: Path, machine: str, model: str, rows: int) -> Path:
    """Where the findings on blocks of up to `rows` rows lie; the two are fingerprints."""
    return folder / "selftest" / f"{digest(f'{VERSION} {machine} {model} {rows}'.encode())}.json"


def read_findings(path: Path) -> Findings | None:
    """Kept findings; None when there are none, or none that can be read."""
    try:
        found: Findings = from_plain(Findings, json.loads(path.read_bytes()), "findings")
    except (OSError, ValueError, WireError):
        return None
    return found


def write_findings(path: Path, findings: Findings) -> None:
    """Keep findings, whole or not at all; a cache that can't be written is no fault."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(asdict(findings)), encoding="utf-8")
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
