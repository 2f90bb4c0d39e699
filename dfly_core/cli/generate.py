"""`dfly-mlx generate`: one answer to stdout, its summary to stderr."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict
from typing import Any, TextIO

from dfly_core.cli.arguments import add_pair_arguments, count, interruptible, load_request, say
from dfly_core.cli.progress import shown
from dfly_core.records.commands import Generate, GenerateOptions, Message
from dfly_core.records.errors import EXIT_DONE, EXIT_INTERRUPTED, Unavailable, Usage
from dfly_core.records.events import Generated, Loaded, Stepped
from dfly_core.records.files import drained, to_write, why_unread
from dfly_core.records.interrupt import ends_at_once
from dfly_core.records.loaded import PairInfo
from dfly_core.records.stats import summary_words
from dfly_core.records.step import Step
from dfly_core.records.usage import as_utf8
from dfly_core.records.visible import visible

NAME = "generate"
HELP = "answer one prompt"
LONE = "--prompt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--prompt", required=True, metavar="TEXT|-", help="the question; - reads stdin"
    )
    parser.add_argument("--system", metavar="TEXT", help="a system prompt")
    add_pair_arguments(parser)
    parser.add_argument(
        "--max-tokens", type=count, default=1024, metavar="N", help="at most N tokens (1024)"
    )
    parser.add_argument(
        "--width", type=_width, default=None, metavar="N|auto",
        help="proposals to verify per cycle; 0 decodes with the target alone (auto)",
    )  # fmt: skip
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T",
        help="0 takes the likeliest token; above, tokens are drawn as the target alone would (0)",
    )  # fmt: skip
    parser.add_argument(
        "--top-p", type=float, default=1.0, metavar="P", help="draw from this much probability (1)"
    )
    parser.add_argument(
        "--top-k", type=count, default=0, metavar="N", help="draw from the N likeliest; 0 all (0)"
    )
    parser.add_argument(
        "--seed", type=count, metavar="N", help="the same seed draws the same text (a new one)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument("--steps", metavar="FILE", help="write one JSON line per step")


def _width(text: str) -> int | None:
    return None if text == "auto" else count(text)


def run(args: argparse.Namespace) -> int:
    """Answer, stream, sum up; 130 when interrupted, with what there is."""
    messages = _messages(args)
    request = load_request(args)
    with ExitStack() as stack:
        steps_file = _open_steps(args.steps, stack)
        with ends_at_once("dfly-mlx"):
            from dfly_core.jobs import Program

        program = Program()
        events = shown(program.run(request, lambda: False))
        (loaded,) = (event for event in events if isinstance(event, Loaded))
        _introduce(loaded)
        options = GenerateOptions(
            max_tokens=args.max_tokens,
            width=args.width,
            temperature=args.temperature,
            top_p=args.top_p,
            top_k=args.top_k,
            seed=args.seed,
        )
        steps, done = [], None
        cancelled = stack.enter_context(interruptible())
        try:
            for event in program.run(Generate(messages, options), cancelled.is_set):
                if isinstance(event, Stepped):
                    steps.append(event.step)
                    _show(event.step, args.json, steps_file)
                elif isinstance(event, Generated):
                    done = event
        finally:
            if steps and not args.json:
                say("")  # what follows, a fault too, begins its own line
    assert done is not None
    if args.json:
        say(json.dumps(as_json(loaded.pair, steps, done)))
    else:
        print(summary_words(done.stats, done.finish), file=sys.stderr)
    return EXIT_INTERRUPTED if done.finish == "cancelled" else EXIT_DONE


def as_json(pair: PairInfo, steps: list[Step], done: Generated) -> dict[str, Any]:
    """The answer and its numbers; seconds, bytes, tokens/s; null where there is nothing to tell."""
    stats = done.stats
    return {
        "text": "".join(step.text for step in steps),
        "token_ids": [token.id for step in steps for token in step.emitted],
        "prompt_tokens": stats.prompt_tokens,
        "generated_tokens": stats.emitted,
        "finish_reason": done.finish,
        "cycles": stats.cycles,
        "plain_steps": stats.plain_steps,
        "drafted": stats.verified,
        "accepted": stats.accepted,
        "mean_accepted_length": stats.mean_accepted_length,
        "acceptance_rate": stats.acceptance_rate,
        "position_acceptance": [list(pair_) for pair_ in stats.positions],
        "prefill_seconds": stats.prefill_seconds,
        "decode_seconds": stats.decode_seconds,
        "draft_seconds": stats.draft_seconds,
        "verify_seconds": stats.verify_seconds,
        "tokens_per_second": stats.tokens_per_second,
        "time_to_first_token": stats.time_to_first_token,
        "peak_memory_bytes": done.peak_memory_bytes,
        "model": pair.model,
        "draft": pair.draft,
    }


def _messages(args: argparse.Namespace) -> tuple[Message, ...]:
    text: str = args.prompt
    if text == "-":
        try:
            text = drained(sys.stdin.buffer.read).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Usage(
                f"stdin can't be read ({why_unread(error)})", "give a pipe or a file of UTF-8 text"
            ) from error
    if not text.strip():
        raise Usage("the prompt is empty", "give --prompt TEXT, or - and text on stdin")
    system = (Message("system", as_utf8(args.system, "--system")),) if args.system else ()
    return (*system, Message("user", as_utf8(text, "--prompt")))


def _open_steps(path: str | None, stack: ExitStack) -> TextIO | None:
    if path is None:
        return None
    try:
        return stack.enter_context(to_write(path))
    except OSError as error:
        raise Usage(f"{path} can't be written ({error.strerror})", "name another file") from error


def _introduce(loaded: Loaded) -> None:
    pair, verdict = loaded.pair, loaded.verdict
    if pair.embedded:
        what = "pair" if pair.draft else "target"
        print(f"using the embedded {what}; --model and --draft choose another", file=sys.stderr)
    if pair.draft is None:
        print("no drafter: the target decodes alone", file=sys.stderr)
    if verdict and (verdict.taken == "fast" or verdict.route != "native"):
        print(verdict.words, file=sys.stderr)


def _show(step: Step, quiet: bool, steps_file: TextIO | None) -> None:
    if steps_file:
        _write_step(step, steps_file)
    if not quiet:
        say(visible(step.text) if sys.stdout.isatty() else step.text, end="")


def _write_step(step: Step, file: TextIO) -> None:
    try:
        file.write(json.dumps(asdict(step)) + "\n")
        file.flush()
    except OSError as error:
        with suppress(OSError):
            file.close()  # would try once more
        raise Unavailable(
            f"{file.name} can't be written ({error.strerror})", "make room, or name another file"
        ) from error
