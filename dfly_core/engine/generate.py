"""One answer: prompt, then cycles or plain steps, until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence

from dfly_core.engine.context import Context
from dfly_core.engine.cycle import speculate
from dfly_core.engine.plain import decode_plain
from dfly_core.engine.prefill import first_choice, learn, prefill
from dfly_core.engine.propose import Draft, propose
from dfly_core.engine.run import Run
from dfly_core.engine.sampling import chooser
from dfly_core.engine.stopping import StopRule
from dfly_core.engine.text import Pieces, TextStream
from dfly_core.engine.width import WidthPolicy
from dfly_core.records.commands import GenerateOptions
from dfly_core.records.errors import Refused, TooLong, Usage
from dfly_core.records.events import Progress
from dfly_core.records.loaded import Costs
from dfly_core.records.step import Step


def generate(
    context: Context,
    ids: Sequence[int],
    options: GenerateOptions,
    cancelled: Callable[[], bool],
    propose: Callable[[Context, int], Draft] = propose,
    costs: Costs | None = None,
) -> Iterator[Progress | Step]:
    """Answer the prompt `ids`: Progress while it is read, then Step 0, then the steps.

    The tokens equal the target's own, one at a time with the same options and seed, whatever
    `propose` proposes (the pair's drafter by default).
    Raises TooLong or Usage before anything is run.
    """
    check_request(context, ids, options)
    choose = chooser(options, context.pair.info.vocab_size)
    begun = time.perf_counter()
    context.reuse(ids)
    pair = context.pair
    run = Run(
        context=context,
        stop=StopRule(
            TextStream(pair.decode, pair.byte_ids),
            pair.stop_ids,
            options.stop,
            options.max_tokens,
            pair.target.context_limit - len(ids),
        ),
        policy=WidthPolicy(
            pair.widest if context.drafter else 0, options.width, costs, pair.acceptance
        ),
        pieces=Pieces(pair.decode),
        cancelled=cancelled,
        propose=propose,
        chooser=choose,
    )
    try:
        rows = yield from prefill(context, ids, cancelled)
        if cancelled():
            yield run.closing_step("cancelled")
            return
        logits = first_choice(context, ids[-1])
        first = choose.choose(logits, len(ids))
        token = int(first.item())  # type: ignore[arg-type]
        cut = run.stop.cut([token])
        context.commit([token][: cut.kept], 0, [])
        yield run.plain_step(len(ids) - 1, ids[-1], token, cut, None, time.perf_counter() - begun)
        if cut.finish is None:
            learn(context, logits, rows)
            del logits, rows  # of the prompt; decoding may take long
            yield from _decode(run)
    except GeneratorExit:
        raise  # closed at a yield, where the context is whole
    except BaseException:
        context.clear()
        raise
    finally:
        if context.drafter is not None and options.width != 0:
            pair.acceptance = run.policy.acceptance


def _decode(run: Run) -> Generator[Step, None, None]:
    """Cycles while they pay, plain steps while they don't."""
    while True:
        finish = None
        if run.policy.off is None and run.context.drafter is not None:
            finish = yield from speculate(run)
        if finish is None:
            finish = yield from decode_plain(run, run.policy.off or _why_plain(run.context))
        if finish is not None:
            return


def _why_plain(context: Context) -> str:
    if context.drafter is None:
        return "no drafter is loaded"
    verdict = context.pair.verdict
    return verdict.words if verdict and not verdict.width else "the context is almost full"


def check_request(context: Context, ids: Sequence[int], options: GenerateOptions) -> None:
    """Refuse what can't be answered, naming both values."""
    limit, most = context.pair.target.context_limit, context.pair.block_size - 1
    vocabulary = context.pair.info.vocab_size
    if not ids:
        raise Usage("the prompt is empty", "write something")
    if min(ids) < 0 or max(ids) >= vocabulary:
        # MLX would read beyond the embedding without a word.
        beyond = min(ids) if min(ids) < 0 else max(ids)
        raise Refused(
            f"the tokenizer made id {beyond}, the target's vocabulary has {vocabulary}",
            "take tokenizer and weights of one model",
        )
    if len(ids) >= limit:
        raise TooLong(
            f"the conversation has {len(ids)} tokens, the model's context holds {limit}",
            "shorten it or start a new one",
        )
    if options.max_tokens < 0:
        raise Usage(f"max tokens is {options.max_tokens}", "give 0 or more")
    if options.width is not None and not 0 <= options.width <= max(most, 0):
        raise Usage(
            f"width {options.width} was asked for, this pair can verify 0 to {most}",
            f"give 0 to {most}, or auto",
        )
