"""What drafting would bring, before it is tried: from bytes, and from what was measured here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dfly_core.engine.cost import TargetSize, bytes_of, draft_bytes
from dfly_core.engine.coverage import SMALLEST_BYTES, TYPICAL_SHARE
from dfly_core.engine.width import best_width
from dfly_core.model.acceptance import TYPICAL_RATE
from dfly_core.model.config import DrafterConfig
from dfly_core.records.loaded import Costs
from dfly_core.records.sizes import size_words

ASSUMED = f"if {TYPICAL_RATE:.0%} of proposals are right"


@dataclass(frozen=True)
class KnownTarget:
    """A target by its config.json, and what was measured of it here, if anything was.

    `costs` and `drafter` (its config) are those of the loaded pair; `draft_bits` 16 means not
    quantised. `bandwidth` is bytes a second of reading memory; `by_bytes` says that time
    follows bytes here, which it does not where MLX computes on the CPU.
    """

    name: str
    config: Mapping[str, Any]
    by_bytes: bool
    costs: Costs | None = None
    drafter: DrafterConfig | None = None
    draft_bits: int = 16
    bandwidth: float | None = None

    @property
    def bits(self) -> int:
        """Of its weights; 16 when they are not quantised."""
        stated = self.config.get("quantization")
        return int(stated["bits"]) if isinstance(stated, dict) and stated.get("bits") else 16


@dataclass(frozen=True)
class Prediction:
    """Cost of a whole draft in target steps, rate over the target alone, tokens/s where known."""

    draft_steps: float
    speedup: float
    tps: float | None


def predict(config: DrafterConfig, target: KnownTarget, bits: int) -> Prediction | None:
    """What this drafter at `bits` would bring, if 75 % of its proposals are right.

    A loaded target's own times are taken; a draft's time follows its bytes, and where nothing
    was measured a verification counts as one pass. None where that can't be known.
    """
    size = TargetSize.from_config(target.config)
    alone = size.pass_bytes(target.bits)

    share = TYPICAL_SHARE if bytes_of(size.head, target.bits) >= SMALLEST_BYTES else 1.0

    def read(bits: int) -> list[float]:
        widths = range(config.block_size)
        return [
            draft_bytes(config, size, bits, target.bits, share, proposals=w).total for w in widths
        ]

    same = target.drafter is not None and _shape(target.drafter) == _shape(config)
    measured = target.costs
    if measured is not None and same and bits == target.draft_bits:
        costs = measured
    elif not target.by_bytes:
        return None
    elif measured is not None and same:
        read_now = zip(measured.draft, read(bits), read(target.draft_bits), strict=True)
        costs = replace(measured, draft=tuple(s * asked / own for s, asked, own in read_now))
    elif measured is not None:
        costs = replace(measured, draft=tuple(measured.plain * n / alone for n in read(bits)))
    else:
        second = alone / (target.bandwidth or alone)
        drafts = tuple(second * n / alone for n in read(bits))
        costs = Costs(second, (second,) * config.block_size, drafts)
    products = [TYPICAL_RATE**k for k in range(1, config.block_size)]
    speedup = max(1.0, best_width(products, costs)[1] * costs.plain)
    known = measured is not None or target.bandwidth is not None
    tps = speedup / costs.plain if known else None
    return Prediction(costs.draft[-1] / costs.plain, speedup, tps)


def rests_on(target: KnownTarget) -> str:
    """One line: what the predictions for a drafter of this target rest on."""
    if target.costs is not None:
        drafts = "a draft's by its bytes" if target.by_bytes else "a quantised draft's is unknown"
        return f"speed: from times measured with {target.name} loaded here, {drafts}; {ASSUMED}"
    if not target.by_bytes:
        return (
            "speed unknown: MLX computes on the CPU here, where time does not follow bytes; "
            f"load {target.name} with this drafter to measure it"
        )
    rate = "" if target.bandwidth is None else f" at {size_words(target.bandwidth)}/s, measured"
    return (
        f"speed: computed from the bytes that {target.name} in {target.bits} bit and the drafter "
        f"read{rate}, a verification as one pass; {ASSUMED}; nothing of this pair was run"
    )


def _shape(config: DrafterConfig) -> DrafterConfig:
    return replace(config, quantization=None)
