"""Whether the official pair would fit here, told before any download."""

from __future__ import annotations

from dfly_core.records.memory import CONTEXT, official_need, usable
from dfly_core.records.sizes import memory_words

OFFICIAL = "AngelSlim/Qwen3-8B-DFly-Block8"


def first_run_words(memory: int | None, mac: bool) -> str:
    """Whether Qwen3-8B would fit here and be of use, before any download."""
    need = official_need()
    said = f"Qwen3-8B with its drafter, in 4 bit, needs {need.words}"
    if not mac:
        return f"{said}, and a Mac's GPU: on the processor alone each token takes seconds."
    if memory is None:
        return f"{said}."
    fits = need.at(CONTEXT) <= usable(memory)
    return (
        f"{said}; this machine has {memory_words(memory)}: it {'fits' if fits else 'does not fit'}."
    )
