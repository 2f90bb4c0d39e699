"""The 90 evaluation prompts through the MLX engine: right answers and mean accepted length.

`python -m tests.tools.ninety [--model DIR --draft DIR] [--width 7] [--tokens 200]`. Prints one JSON
object; `--plain` also answers by the target alone and counts equal ids and its tokens a second.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from dfly_core.embedded import recipe
from dfly_core.embedded.recipe.check import right
from dfly_core.engine.context import Context
from dfly_core.model.pair import load_pair
from dfly_core.model.prompt import prompt_ids
from dfly_core.records.commands import GenerateOptions, Load, Message
from tests.tiny import answer

PROMPTS = Path(recipe.__file__).with_name("eval_prompts.jsonl")


def measure(model: str | None, draft: str | None, options: GenerateOptions, plain: bool) -> Any:
    """Every prompt on its own, with fresh caches."""
    pair = load_pair(Load(model, draft))
    good: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    emitted: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    equal, tokens, seconds = 0, 0, 0.0
    for line in PROMPTS.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        ids = prompt_ids(pair.tokenizer, [Message("user", case["prompt"])])
        got = answer(Context(pair), ids, options)
        text = pair.decode([i for i in got.ids if i not in pair.stop_ids])
        for key in ("all", case["category"], case["kind"]):
            good[key][0] += right(text, case["check"])
            good[key][1] += 1
            for step in got.steps:
                if step.is_cycle:
                    emitted[key][0] += len(step.emitted)
                    emitted[key][1] += 1
        if plain:
            begun = time.perf_counter()
            alone = answer(Context(pair), ids, GenerateOptions(options.max_tokens, width=0))
            seconds += time.perf_counter() - begun
            tokens += len(alone.ids)
            equal += alone.ids == got.ids
    result: dict[str, Any] = {
        "right": dict(good),
        "mean_accepted_length": {k: round(a / max(b, 1), 3) for k, (a, b) in emitted.items()},
    }
    if plain:
        result |= {"equal_ids": equal, "plain_tokens_per_second": round(tokens / seconds, 1)}
    return result


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--draft")
    parser.add_argument("--width", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--plain", action="store_true")
    args = parser.parse_args()
    options = GenerateOptions(max_tokens=args.tokens, width=args.width)
    print(json.dumps(measure(args.model, args.draft, options, args.plain), indent=1))


if __name__ == "__main__":
    main()
