"""Decoding speed of a made pair against its target alone, in one run.

    python -m tests.tools.speed [--hidden 384 --vocabulary 8192] [--rounds 5]

The pair is made on the spot with random float32 weights: the official pair's shape (36 target
layers, 5 draft layers and taps, a head of 1/20 of the target), made narrow. Ids are in order of
frequency as a real tokenizer's are: the head's rows shrink so that 96 % of the tokens are among
the first eighth. What it proposes is scripted, but the whole draft is computed, so its cost is
paid: an oracle that makes 80 % of the proposals right, each by its own coin, and a hostile one
that makes none right. The ways of decoding go on in turns, some sixty tokens each, the device
waited for between them, so that whatever else the machine does hits all of them. Prints medians
over rounds, ratios to the target alone in the same round, the ideal computed from the medians of
the cycle's own parts, the same at a long context, and what the draft's attention alone takes at
each: nothing else of a draft is to grow. Run it with OpenBLAS preloaded on Linux: the wheel's
own BLAS makes a block cost as much as its rows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_reduce

from dfly_core.bench.components import Parts, medians, rates
from dfly_core.engine.calibrate import measure_costs
from dfly_core.engine.context import Context
from dfly_core.engine.generate import generate
from dfly_core.engine.propose import Draft, propose
from dfly_core.model.config import drafter_config
from dfly_core.model.drafter import Drafter
from dfly_core.model.layout import lay_out
from dfly_core.model.pair import Pair, describe
from dfly_core.records.commands import GenerateOptions, Load
from dfly_core.records.loaded import Costs
from dfly_core.records.stats import Stats
from dfly_core.records.step import Step
from tests.tiny import TinyTokenizer, draft_config, half, make_target, randomize, wrong

LIMIT = 8192
BLOCK = 8
LAYERS, DRAFT_LAYERS, TAPS = 36, 5, (1, 9, 17, 25, 33)  # the official pair's
TURN = 60  # tokens that one way decodes before it is another's turn
ATTENDED = 15  # times that attention alone is run
FALL = 0.15  # head row i is (1 + i / 8) ** -FALL as long as the first


def build(hidden: int, vocabulary: int) -> Pair:
    """A random pair."""
    sizes = {
        "vocab_size": vocabulary, "hidden_size": hidden, "head_dim": 64,
        "num_attention_heads": hidden // 64, "num_key_value_heads": hidden // 128,
        "intermediate_size": hidden * 8 // 3 // 64 * 64, "max_position_embeddings": LIMIT,
    }  # fmt: skip
    target = make_target(**sizes, num_hidden_layers=LAYERS)
    head = target.model.lm_head
    head.weight = head.weight * ((1 + mx.arange(vocabulary) / 8) ** -FALL)[:, None]
    target.taps = TAPS
    config = drafter_config(
        draft_config(
            **sizes, num_hidden_layers=DRAFT_LAYERS, target_hidden_size=hidden,
            target_num_hidden_layers=LAYERS, target_layer_ids=list(TAPS),
            num_target_layers=len(TAPS), block_size=BLOCK,
            hidden_correction_intermediate_size=hidden,
        )
    )  # fmt: skip
    drafter = Drafter(config)
    randomize(drafter, 2)
    mx.eval(target.model.parameters())
    lay_out(target.model)
    lay_out(drafter)
    info = describe(Load("made", "made"), target, drafter)
    return Pair(target, drafter, TinyTokenizer(), frozenset(), info, Path(), Path())


Propose = Callable[[Context, int], Draft]


def paid(script: Propose) -> Propose:
    """`script`'s proposals at the price of the real draft."""

    def both(context: Context, width: int) -> Draft:
        return Draft(mx.minimum(propose(context, width).ids, 0) + script(context, width).ids)

    return both


class Answer:
    """One way's answer, decoded turn by turn; no script means the target alone."""

    def __init__(
        self, context: Context, prompt: list[int], count: int, script: Propose | None, costs: Costs
    ) -> None:
        # Each way starts from nothing, as a first answer does, but for the prompt's keys and
        # values, which it has from the round before.
        context.pair.acceptance, context.head = None, Context(context.pair).head
        options, known = GenerateOptions(max_tokens=count), costs if script else None
        self._events = generate(context, prompt, options, lambda: False, script or propose, known)
        self.steps = [next(event for event in self._events if isinstance(event, Step))]
        mx.synchronize()
        self.seconds = 0.0
        self.done = False

    @property
    def ids(self) -> list[int]:
        return [token.id for step in self.steps for token in step.emitted]

    @property
    def rate(self) -> float:
        """Tokens/s after the first token."""
        return (len(self.ids) - 1) / self.seconds

    def turn(self) -> None:
        """Decode some tokens more."""
        start, wanted = time.perf_counter(), len(self.ids) + TURN
        while len(self.ids) < wanted:
            event = next(self._events, None)
            if event is None:
                self.done = True
                break
            assert isinstance(event, Step)
            self.steps.append(event)
        mx.synchronize()
        self.seconds += time.perf_counter() - start


def attention_seconds(context: Context) -> float:
    """Seconds of the attention of all draft layers over the context's rows, a median."""
    drafter, times = context.drafter, []
    assert drafter is not None
    caches = [store.state[:2] for store in context.draft_cache]
    attend = mx.fast.scaled_dot_product_attention
    for _ in range(ATTENDED):
        shapes = [(1, layer.self_attn.heads, BLOCK, 64) for layer in drafter.layers]
        queries = [mx.random.normal(shape) for shape in shapes]
        mx.eval(queries, caches)
        start = time.perf_counter()
        mx.eval([attend(q, k, v, scale=0.125) for q, (k, v) in zip(queries, caches, strict=True)])
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(
    pair: Pair, prompt_length: int, count: int, rounds: int, costs: Costs
) -> tuple[float, float]:
    """Run the ways in turns and print their medians; milliseconds of a draft and its attention."""
    prompt = [(17 * i) % 90 for i in range(prompt_length)]
    contexts: dict[str, Context] = {}

    def answer(name: str, count: int, script: Propose | None) -> Answer:
        context = contexts.setdefault(name, Context(pair, draft=script is not None))
        return Answer(context, prompt, count, script, costs)

    alone = answer("target alone", count + BLOCK, None)
    while not alone.done:
        alone.turn()
    truth = alone.ids

    def scripts(seed: int) -> dict[str, Propose | None]:
        return {
            "target alone": None,
            "oracle, 80 % right": paid(half(truth, prompt_length, seed, 0.8)),
            "hostile, none right": paid(wrong(truth, prompt_length)),
        }

    names = list(scripts(0))
    found: dict[str, list[Answer]] = {name: [] for name in names}
    parts = Parts(pair, prompt + truth[: count // 2])  # the middle of an answer
    for number in range(rounds):
        round_ = {name: answer(name, count, script) for name, script in scripts(number).items()}
        while not all(one.done for one in round_.values()):
            for one in round_.values():
                if not one.done:
                    one.turn()
        for name, one in round_.items():
            if one.ids != truth[:count]:
                raise SystemExit(f"{name}: the ids differ from the target's own")
            found[name].append(one)
        parts.round()
    found_parts, attention = medians(parts.times), attention_seconds(parts.context)
    plain = found_parts["verify 0"]
    print(f"\ncontext {prompt_length}, {count} tokens, medians of {rounds}")
    print(f"  one target step {plain * 1e3:.2f} ms; in target steps:", end=" ")
    print(f"draft {found_parts['draft'] / plain:.2f}", end=" (")
    print(
        ", ".join(f"{n} {found_parts[n] / plain:.2f}" for n in ("backbone", "correction", "head"))
    )
    print(f"  alone), verify of 1..{BLOCK} rows", end=" ")
    print(" ".join(f"{found_parts[f'verify {w}'] / plain:.2f}" for w in range(BLOCK)))
    for name, answers in found.items():
        rate = statistics.median(one.rate for one in answers)
        bases = zip(answers, found[names[0]], strict=True)
        ratios = [one.rate / base.rate for one, base in bases]
        stats = Stats()
        for one in answers:
            stats = stats.extend(one.steps)
        mean = stats.mean_accepted_length
        ideal: float | None = rates(stats, found_parts, BLOCK - 1)["ideal_tps"]
        print(
            f"  {name:20} {rate:8.1f} tokens/s  x{statistics.median(ratios):.2f}"
            f" ({min(ratios):.2f} to {max(ratios):.2f})"
            + (f"  mean accepted length {mean:.2f}" if mean else "")
            + (f"  {rate / ideal:.2f} of the ideal" if ideal and "oracle" in name else "")
        )
    return found_parts["draft"] * 1e3, attention * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--contexts", type=int, nargs="*", default=[200, 4000])
    args = parser.parse_args()
    pair = build(args.hidden, args.vocabulary)
    assert pair.drafter is not None
    sizes = [
        tree_reduce(lambda n, a: n + a.size, module.parameters(), 0) / 1e6
        for module in (pair.target.model, pair.drafter)
    ]
    print(f"target {sizes[0]:.0f} M parameters, drafter {sizes[1]:.0f} M, K {BLOCK}")
    costs = measure_costs(pair)
    assert costs is not None
    grown = [measure(pair, n, args.count, args.rounds, costs) for n in args.contexts]
    for length, (draft, attention) in zip(args.contexts, grown, strict=True):
        print(f"context {length}: a draft {draft:.2f} ms, its attention alone {attention:.2f} ms")


if __name__ == "__main__":
    main()
