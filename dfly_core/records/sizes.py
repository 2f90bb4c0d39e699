"""Numbers of bytes as people read them: the one place where they get a unit."""

from __future__ import annotations

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
