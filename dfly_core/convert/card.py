"""The model card that goes with converted weights: what they were made from, and how."""

from __future__ import annotations

from typing import Any

from dfly_core import __version__
from dfly_core.convert.plan import TORCH_NAMES, Plan


def model_card(plan: Plan, report: dict[str, Any]) -> str:
    """README.md from the plan and what `Converted.report` says so far."""
    source, config = plan.source, plan.config
    lines = ["---", "library_name: mlx", "tags: [mlx, dfly, speculative-decoding]"]
    if source.licences:
        lines += ["license: other", f"license_link: {source.licences[0].name}"]
    if source.repository:
        lines.append(f"base_model: {source.repository}")
    kind = TORCH_NAMES[plan.dtype] + (f", {plan.bits} bit in groups of 64" if plan.bits else "")
    lines += [
        "---",
        "",
        "# DFly drafter in MLX format",
        "",
        f"Converted from {source.repository or source.folder.name} "
        f"({source.layout}, revision {source.revision or 'unknown'}) by dfly-mlx {__version__}. "
        f"Weights: {kind}.",
        "",
        f"For a target with {config.target_num_hidden_layers} layers of width "
        f"{config.target_hidden_size} and a vocabulary of {config.vocab_size}; "
        f"taps {list(config.target_layer_ids)}, blocks of {config.block_size}.",
        "",
        "| file | bytes | SHA-256 |",
        "|---|---|---|",
        *(_row(f"source `{f['name']}`", f["bytes"], f["sha256"]) for f in report["source_files"]),
        *(_row(f"`{f['name']}`", f["bytes"], f["sha256"]) for f in report["files"]),
        "",
        *(f"- {note}" for note in plan.notes),
        *_quantised(report),
        "",
        "## Checksums",
        "",
        "CRC-32 of each tensor's bytes, as they were read back from the finished file.",
        "",
        "| tensor | CRC-32 |",
        "|---|---|",
        *(_row(name, f"{crc:08x}") for name, crc in report["checksums"].items()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _row(*cells: object) -> str:
    return f"| {' | '.join('-' if cell is None else str(cell) for cell in cells)} |"


def _quantised(report: dict[str, Any]) -> list[str]:
    if not report["errors"]:
        return []
    lines = [
        "",
        "## What quantising changed",
        "",
        "Relative is the root mean square of the change over that of the weights.",
        "",
        "| tensor | relative | largest |",
        "|---|---|---|",
        *(_row(e["name"], f"{e['relative']:.5f}", f"{e['largest']:.5f}") for e in report["errors"]),
    ]
    agreement = report["agreement"]
    if agreement:
        lines += [
            "",
            f"On {agreement['rows']} sample rows its hidden states and those of the unquantised "
            f"drafter have a mean cosine of {agreement['cosine_mean']:.5f}, at least "
            f"{agreement['cosine_least']:.5f}.",
        ]
    return lines
