"""Our side of `against_port`: the engine as the product runs it, over the same lines.

`python -m tests.tools.engine_driver TARGET DRAFTER`. A request's "width" is None for the
product's own choice, 0 for the target alone.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from mlx.utils import tree_flatten

from dfly_core import __version__
from dfly_core.engine.calibrate import measure_costs
from dfly_core.engine.context import Context
from dfly_core.engine.generate import generate
from dfly_core.exact.verdict import prepare
from dfly_core.model.machine import blas
from dfly_core.model.pair import Pair, load_pair
from dfly_core.model.prompt import prompt_ids
from dfly_core.records.commands import GenerateOptions, Load, Message
from dfly_core.records.loaded import Costs
from dfly_core.records.step import Step


@dataclass
class Engine:
    """The loaded pair, self-tested and its costs measured, as `dfly_core.jobs` does it."""

    pair: Pair
    costs: Costs | None

    @classmethod
    def load(cls, target: str, drafter: str) -> Engine:
        pair = load_pair(Load(target, drafter))
        with tempfile.TemporaryDirectory() as folder:
            for _ in prepare(pair, Load().verify, Path(folder)):
                pass
        return cls(pair, measure_costs(pair))

    def about(self) -> dict[str, Any]:
        """What runs here."""
        models = [self.pair.target.model, self.pair.drafter]
        weights: list[Any] = [tree_flatten(m.parameters()) for m in models if m is not None]
        names = ("mlx", "mlx-lm")
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
        return {
            "name": f"dfly-tui {__version__}, {versions}",
            "blas": blas(),
            "dtypes": sorted({str(value.dtype) for one in weights for _, value in one}),
            "stop_ids": sorted(self.pair.stop_ids),
            "copying": "none",
            "words": self.pair.verdict.words if self.pair.verdict else "",
        }

    def answered(self, prompt: str, max_tokens: int, width: int | None) -> dict[str, Any]:
        """One answer; times in seconds since the call."""
        start = time.perf_counter()
        ids: list[int] = []
        times: list[float] = []
        cycles = cycle_tokens = 0
        asked = prompt_ids(self.pair.tokenizer, [Message("user", prompt)])
        options = GenerateOptions(max_tokens=max_tokens, width=width)
        context = Context(self.pair)
        for event in generate(context, asked, options, lambda: False, costs=self.costs):
            if not isinstance(event, Step):
                continue
            now = time.perf_counter() - start
            # The stop token is kept out of an answer, but it was decoded, and the port counts it.
            decoded = event.chosen[: event.kept + (event.finish == "stop")]
            ids += [token.id for token in decoded]
            times += [now] * len(decoded)
            cycles += event.is_cycle
            cycle_tokens += len(decoded) if event.is_cycle else 0
        return {
            "prompt_ids": asked,
            "ids": ids,
            "times": times,
            "cycles": cycles,
            "cycle_tokens": cycle_tokens,
            "copied": 0,
        }


def main() -> None:
    """Answer requests until input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    engine = Engine.load(*sys.argv[1:])
    print(json.dumps(engine.about()), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        found = engine.answered(request["prompt"], request["max_tokens"], request["width"])
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
