"""Holds our baseline against mlx-lm's own decoding: it must be no straw man."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx_lm import stream_generate
from mlx_lm.tokenizer_utils import TokenizerWrapper

from dfly_core.bench.trials import Cancelled, run_trial
from dfly_core.model.pair import Pair

ROUNDS = 9
WITHIN = 0.02
NOTE = (
    "mlx-lm takes the best of logits - logsumexp, we of the logits themselves: in 16 bit the "
    "subtraction makes ties of its own, so the ids may differ where two tokens are nearly tied"
)


def check_baseline(
    pair: Pair, prompt: Sequence[int], tokens: int, cancelled: Cancelled
) -> dict[str, Any]:
    """Both decode the same tokens in turn, a few times; rates are tokens/s after the first one.

    At most `tokens`, and no more than come before a stop. `holds`: ours is at most 2 % slower.
    """
    tokens = len(run_trial(pair, prompt, tokens, False, None, cancelled).ids)
    ours: list[float] = []
    theirs: list[float] = []
    same = True
    for number in range(ROUNDS + 1):
        if cancelled() or tokens < 2:
            break
        run = run_trial(pair, prompt, tokens, False, None, cancelled)
        ids, rate = _mlx_lm(pair, prompt, tokens)
        same = same and ids == run.ids
        if number:  # the first round warms up
            ours.append(run.trial.tokens_per_second or 0.0)
            theirs.append(rate)
    # Each round's own ratio, since both of a round saw the same heat and the same company.
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True) if other]
    ratio = statistics.median(ratios) if ratios else None
    return {
        "ours_tps_median": statistics.median(ours) if ours else None,
        "mlx_lm_tps_median": statistics.median(theirs) if theirs else None,
        "ratio": ratio,
        "holds": ratio is not None and ratio >= 1 - WITHIN,
        "rounds": len(ours),
        "tokens": tokens,
        "same_ids": same,
        "note": NOTE,
    }


def _mlx_lm(pair: Pair, prompt: Sequence[int], tokens: int) -> tuple[list[int], float]:
    """mlx-lm's ids, and its tokens/s after the first."""
    mx.clear_cache()
    tokenizer = TokenizerWrapper(pair.tokenizer, eos_token_ids=pair.stop_ids)
    ids: list[int] = []
    times: list[float] = []
    for response in stream_generate(pair.target.model, tokenizer, list(prompt), max_tokens=tokens):
        ids.append(int(response.token))
        times.append(time.perf_counter())
    elapsed = times[-1] - times[0]
    return ids, (len(times) - 1) / elapsed if elapsed > 0 else 0.0
