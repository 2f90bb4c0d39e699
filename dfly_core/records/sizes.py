"""Sizes as people read them: bytes, memory, and what a model measures."""

from __future__ import annotations

from typing import Literal

Measure = Literal["layers", "hidden size", "vocabulary"]

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def size_words(size: float) -> str:
    """A number of bytes in three figures: `4.61 GB`, `637 MB`, `18.2 MB`, `512 B`."""
    for scale, unit in _UNITS:
        count = size / scale
        if count >= 0.9995:  # what would be shown as 1000 of the next unit is 1.00 of this one
            digits = 2 if count < 9.995 else 1 if count < 99.95 else 0
            return f"{count:.{digits}f} {unit}"
    return f"{size:.0f} B"


def memory_words(total: float) -> str:
    """The memory of a machine, in bytes, as it is sold: `16 GB` are 16 times 2**30 bytes."""
    return f"{round(total / 2**30, 1):g} GB"


def measure_words(measure: Measure, value: object) -> str:
    """What a model measures: `36 layers`, `a hidden size of 4,096`, `a vocabulary of 151,936`."""
    words = number_words(value)
    return f"{words} layers" if measure == "layers" else f"a {measure} of {words}"


def number_words(value: object) -> str:
    """A count from somebody's config.json: `151,936`; what is none as it stands there."""
    return f"{value:,}" if isinstance(value, int) else "none" if value is None else str(value)
