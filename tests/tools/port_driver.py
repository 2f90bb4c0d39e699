"""The public port's side of `against_port`; runs in the port's own venv, imports nothing of ours.

    PORT_PYTHON -I port_driver.py TARGET DRAFTER

Speaks JSON lines: first what it is, then for every request {"prompt", "max_tokens"} one answer
(the fields of `against_port.Answer`). The port is called as its own command line calls it:
`generate(bundle, prompt, max_tokens=..., stream=True)`, all else at its defaults.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from importlib import import_module, metadata
from pathlib import Path
from typing import Any


class Watch(io.StringIO):
    """Takes the place of the screen: notes when each token was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def write(self, text: str) -> int:
        self.times.append(time.perf_counter())
        return len(text)


def answered(bundle: Any, prompt: str, max_tokens: int) -> dict[str, Any]:
    """One answer; times in seconds since the call."""
    port = import_module("dfly_mlx.generate")
    watch = Watch()
    start = time.perf_counter()
    with contextlib.redirect_stdout(watch):
        result = port.generate(bundle, prompt, max_tokens=max_tokens, stream=True)
    ids = [int(token) for token in result.token_ids]
    if len(ids) != len(watch.times):
        raise RuntimeError(f"{len(ids)} tokens, but {len(watch.times)} were written")
    cycles = int(result.summary["cycles_completed"])
    return {
        "prompt_ids": port.no_thinking_prompt_tokens(bundle.tokenizer, prompt),
        "ids": ids,
        "times": [at - start for at in watch.times],
        "cycles": cycles,
        # All but the first, which the prompt's own pass gives.
        "cycle_tokens": len(ids) - 1,
        "copied": int(result.summary.get("copyspec_hits") or 0),
    }


def copying() -> str:
    """What the port's default says about copying n-grams instead of drafting."""
    context = import_module("dflash_mlx.runtime.context")
    runtime = context.build_offline_runtime_context(verify_mode="dflash").runtime
    if hasattr(runtime, "copyspec_mode"):
        return "off, switched off by the port"
    return "on, this version has no switch"


def about(bundle: Any) -> dict[str, Any]:
    """What runs here."""
    runtime = import_module("dflash_mlx.runtime")
    names = ("dfly-mlx", "dflash-mlx", "mlx", "mlx-lm")
    maps = Path("/proc/self/maps")
    lines = maps.read_text(encoding="utf-8").splitlines() if maps.exists() else []
    loaded = {line.split()[-1] for line in lines if "blas" in line.lower()}
    # numpy brings one of its own, which MLX does not see.
    blas = sorted({Path(name).name for name in loaded if "numpy" not in name})
    models = (bundle.target_model, bundle.draft_model)
    flatten = import_module("mlx.utils").tree_flatten
    dtypes = {str(value.dtype) for model in models for _, value in flatten(model.parameters())}
    return {
        "name": ", ".join(f"{name} {metadata.version(name)}" for name in names),
        "blas": ", ".join(blas) or "built in",
        "dtypes": sorted(dtypes),
        "stop_ids": sorted(runtime.get_stop_token_ids(bundle.tokenizer)),
        "copying": copying(),
    }


def main() -> None:
    """Answer requests until input ends."""
    # Answers go to the output we were given; what libraries print goes with the errors.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    target, drafter = sys.argv[1:]
    bundle = import_module("dfly_mlx.loading").load_runtime(target, drafter)
    print(json.dumps(about(bundle)), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        found = answered(bundle, request["prompt"], request["max_tokens"])
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
