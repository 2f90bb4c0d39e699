"""Time of one draft against the straightforward chain, where the head dominates.

    python -m tests.tools.draft_time [--vocabulary 32768] [--hidden 512]

Straightforward: the full head and the whole correction at each of the K-1 steps, one after
another. Ours reads the part of the head that the text asks for, V/16 to V/2: over real text about
V/4 where V is 49,152, V/14 to V/7 in Qwen's vocabulary of 151,936 (`tests.tools.head_share`).
Random weights, float32 on the CPU backend; medians of interleaved runs, and their ratios to the
straightforward chain.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.engine.coverage import ALIGN
from dfly_core.engine.head import DraftHead
from dfly_core.engine.propose import Draft, propose
from dfly_core.model.config import drafter_config
from dfly_core.model.drafter import Drafter
from dfly_core.model.layout import lay_out
from dfly_core.model.pair import Pair, describe
from dfly_core.model.target import Target
from dfly_core.records.commands import Load
from tests.tiny import TinyTokenizer, draft_config, make_target, randomize


def build(vocabulary: int, hidden: int) -> Pair:
    """A random pair of two thin target layers and a wide head."""
    target: Target = make_target(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=2 * hidden, head_dim=64,
        max_position_embeddings=1024,
    )  # fmt: skip
    config = draft_config(
        vocab_size=vocabulary, hidden_size=hidden, target_hidden_size=hidden, head_dim=64,
        intermediate_size=2 * hidden, hidden_correction_intermediate_size=hidden, block_size=8,
        max_position_embeddings=1024,
    )  # fmt: skip
    drafter = Drafter(drafter_config(config))
    randomize(drafter, 2)
    lay_out(target.model)
    lay_out(drafter)
    info = describe(Load("made", "made"), target, drafter)
    here = Path()
    return Pair(target, drafter, TinyTokenizer(), frozenset(), info, here, here)


def straightforward(context: Context) -> Draft:
    """The chain as the paper writes it, nothing saved."""
    drafter, target = context.drafter, context.pair.target
    assert drafter is not None
    config, correction = drafter.config, drafter.hidden_correction
    block = [context.ids[-1]] + [config.mask_token_id] * (config.block_size - 1)
    embedded = target.embed(mx.array([block]))
    rows, before, ids = drafter.backbone(embedded, context.draft_cache)[1:], embedded[0, :1], []
    for j in range(config.block_size - 1):
        row = rows[j : j + 1]
        row = correction(row, correction.prepare(row), correction.told(before))
        ids.append(mx.argmax(target.head(row), axis=-1).astype(mx.int32))
        before = target.embed(ids[-1])
    return Draft(mx.concatenate(ids))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", type=int, default=32768)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    pair = build(args.vocabulary, args.hidden)
    context = Context(pair)
    ids = [i % 3000 for i in range(100)]
    _, taps = pair.target.forward(mx.array([ids]), context.target_cache)
    context.commit([*ids, 7], len(ids), taps)
    context.read_pending()
    ways: dict[str, Callable[[Context], Draft]] = {"straightforward": straightforward}
    for share in (16, 8, 7, 5, 4, 2):
        ways[f"ours, V/{share}"] = reading(share)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for round_ in range(args.rounds + 2):
        for name, way in ways.items():
            start = time.perf_counter()
            mx.eval(way(context).ids)
            if round_ >= 2:
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(found) for name, found in times.items()}
    for name, seconds in medians.items():
        ratio = medians["straightforward"] / seconds
        print(f"{name:16} {seconds * 1e3:8.2f} ms a draft (median of {args.rounds})  {ratio:.2f}x")


def reading(share: int) -> Callable[[Context], Draft]:
    """Our draft once the text has shown V/`share` to be enough."""
    head: DraftHead | None = None

    def draft(context: Context) -> Draft:
        nonlocal head
        if head is None:
            head = context.head = DraftHead(context.pair.target, context.pair.info.vocab_size, [])
            size = context.pair.info.vocab_size // share // ALIGN * ALIGN
            for _ in range(40):  # tokens of which 3 in 100 lie just within that part
                head.judge([0] * 31 + [size - 1])
            assert head.coverage.size() == size
        context.head = head
        return propose(context, context.pair.block_size - 1)

    return draft


if __name__ == "__main__":
    main()
