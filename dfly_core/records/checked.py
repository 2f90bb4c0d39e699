"""What a conversion would do, told before it: sizes, gates, and what drafting would bring."""

from __future__ import annotations

from dataclasses import dataclass

from dfly_core.records.sizes import size_words


@dataclass(frozen=True)
class Sizing:
    """The drafter with weights of `bits` (None: floats as stored or asked for).

    `output_bytes` is the size of its weights. `draft_steps` is what a draft costs in steps of
    the target alone, `speedup` the rate over the target alone, `tps` tokens/s; None where that
    can't be known.
    """

    bits: int | None
    output_bytes: int
    draft_steps: float | None = None
    speedup: float | None = None
    tps: float | None = None


@dataclass(frozen=True)
class Checked:
    """Ends a check; nothing was written, and of a hub id only small files were fetched.

    `layout`, `about` (sizes of the drafter in words) and `source_bytes` (its weights) are
    known as far as the source could be read; `download_bytes` are still to be fetched and
    `free_bytes` is the room where the output goes. `notes` say what is left out, `unchecked`
    what is looked at only while converting, `refused` every reason why a conversion would not
    begin. `rests_on` says what the predictions in `sizes` rest on, or why there are none.
    """

    source: str
    layout: str | None
    repository: str | None
    revision: str | None
    about: str
    source_bytes: int | None
    download_bytes: int
    free_bytes: int | None
    sizes: tuple[Sizing, ...]
    rests_on: str
    notes: tuple[str, ...]
    unchecked: tuple[str, ...]
    refused: tuple[str, ...]


def check_lines(found: Checked, bits: int | None) -> list[str]:
    """The check as lines, for a conversion to `bits`; one fact a line, refusals last."""
    lines = []
    where = f" of {found.repository}, revision {found.revision}" if found.repository else ""
    if found.layout:
        size = (
            "" if found.source_bytes is None else f": {size_words(found.source_bytes)} of weights"
        )
        load = f", {size_words(found.download_bytes)} to download" if found.download_bytes else ""
        lines.append(f"{found.layout}{where}{size}{load}")
    if found.about:
        lines.append(found.about)
    result = next((s.output_bytes for s in found.sizes if s.bits == bits), None)
    room = "" if found.free_bytes is None else f"{size_words(found.free_bytes)} free where it goes"
    if result is not None:
        lines.append(f"result {size_words(result)}" + (f", {room}" if room else ""))
    elif room:
        lines.append(room)
    lines += found.notes
    if found.unchecked:
        lines.append(f"not looked at before converting: {', '.join(found.unchecked)}")
    lines += [f"can't convert: {why}" for why in found.refused]
    return lines


def sizing_words(sizing: Sizing) -> str:
    """Weights, size and prediction: `4 bit: 637 MB, about 2.9x, a draft = 0.3 target steps`."""
    words = f"{sizing.bits} bit" if sizing.bits else "as stored"
    words += f": {size_words(sizing.output_bytes)}, "
    words += "speed unknown" if sizing.speedup is None else f"about {sizing.speedup:.1f}x"
    if sizing.tps is not None:
        words += f" ({sizing.tps:.0f} tok/s)"
    if sizing.draft_steps is not None:
        words += f", a draft = {sizing.draft_steps:.2g} target steps"
    return words
