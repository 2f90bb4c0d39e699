"""Whether the official pair would fit here, told before any download."""

from __future__ import annotations

from dfly_tui.state.progress import amount

OFFICIAL = "AngelSlim/Qwen3-8B-DFly-Block8"
# Drafter and target in 4 bit, and their caches, activations and buffers.
NEEDED_BYTES = 637_000_000 + 4_600_000_000 + 1_200_000_000


def first_run_words(memory: int | None, mac: bool) -> str:
    """Whether Qwen3-8B would fit here and be of use, before any download."""
    need = NEEDED_BYTES
    if not mac:
        return (
            f"Qwen3-8B in 4 bit needs about {amount(need, 'bytes')} of memory and a Mac: with "
            "MLX's CPU backend, which this system has by default, it takes seconds per token."
        )
    if memory is None:
        return f"Qwen3-8B in 4 bit needs about {amount(need, 'bytes')} of memory."
    fits = need * 1.25 <= memory
    return (
        f"Qwen3-8B in 4 bit needs about {amount(need, 'bytes')} of memory; "
        f"this machine has {memory / 1e9:.0f} GB: it {'fits' if fits else 'does not fit'}."
    )
