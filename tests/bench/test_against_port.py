"""The race against the public port, with the port played by a script that speaks its lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import pytest

from dfly_core.bench.prompts import Prompt
from dfly_core.model.locate import EMBEDDED
from dfly_core.model.pair import load_pair
from dfly_core.records.commands import Load
from tests.tools import against_port, port_driver
from tests.tools.engine_driver import Engine

# Five tokens, 2 the stop, at a rate the request's width tells; the port runs on behind the stop.
SCRIPT = """
import json, sys
about = json.loads(sys.argv[1])
print(json.dumps(about), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    ids = [10, 11, 12, 13, 2] + about["beyond"]
    if request["prompt"] == about["errs_on"]:
        ids[2] = 99
    gap = {7: 0.05, None: about["gap"], 0: 0.4}[request["width"]]
    times = [1 + gap * i for i in range(len(ids))]
    print(json.dumps({
        "prompt_ids": [len(request["prompt"]) + about["shift"]], "ids": ids, "times": times,
        "cycles": 2, "cycle_tokens": len(ids) - 1, "copied": about["copied"],
    }), flush=True)
"""

OURS: dict[str, Any] = {
    "name": "ours 1", "blas": "built in", "dtypes": ["float32"], "stop_ids": [2], "words": "exact",
    "copying": "none", "beyond": [], "errs_on": None, "gap": 0.1, "copied": 0, "shift": 0,
}  # fmt: skip
PORT = OURS | {"copying": "on", "beyond": [55, 56], "gap": 0.2, "copied": 1}
PROMPTS = [Prompt("a", "one", "code"), Prompt("b", "three", "chat")]


def lines(port: dict[str, Any]) -> list[str]:
    mine, other = ([sys.executable, "-c", SCRIPT, json.dumps(about)] for about in (OURS, port))
    with against_port.both_sides(mine, other, None) as (ours, theirs):
        found = against_port.measure(ours, theirs, PROMPTS, 3, 8)
        return list(against_port.report(ours, theirs, found, 8))


def test_rates_ratios_and_parity_of_both_sides_are_told() -> None:
    text = lines(PORT | {"errs_on": "three"})
    rows = [" ".join(line.split()) for line in text]
    whole = next(i for i, row in enumerate(rows) if row.startswith("all "))
    # tokens/s, ratio with the least and the most, tokens a cycle, parked, as the target alone
    assert rows[whole] == "all ours 10.0 2.00 2.00 2.00 2.00 0% 2 of 2"
    assert rows[whole + 1] == "ours, width 7 20.0 4.00 4.00 4.00 2.00 0% 2 of 2"
    # What came behind the stop counts for nothing.
    assert rows[whole + 2] == "the port 5.0 1.00 1.00 1.00 2.00 0% 1 of 2"
    assert text[whole + 3 :] == ["b: the port leaves the target's own tokens"]
    assert "  copying of n-grams: on; 6 of its 12 cycles were one" in text


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        ({"dtypes": ["bfloat16"]}, "differ in dtypes"),
        ({"blas": "libopenblas.so.0"}, "differ in blas"),
        ({"shift": 1}, "prompt a: the sides read other ids"),
    ],
)
def test_sides_that_run_something_else_are_not_compared(
    difference: dict[str, Any], said: str
) -> None:
    with pytest.raises(SystemExit, match=said):
        lines(PORT | difference)


def test_the_copies_hold_the_embedded_weights_in_float32(tmp_path: Path) -> None:
    for folder in against_port.float32_pair(tmp_path):
        paths = (EMBEDDED / folder.name, folder)
        found: list[Any] = [mx.load(str(path / "model.safetensors")) for path in paths]
        stored, copied = found
        assert {str(value.dtype) for value in copied.values()} == {"mlx.core.float32"}
        assert copied.keys() == stored.keys()
        assert all(mx.array_equal(copied[name], stored[name]).item() for name in stored)


def test_our_side_counts_the_stop_token(tmp_path: Path) -> None:
    target, drafter = against_port.float32_pair(tmp_path)
    engine = Engine(load_pair(Load(str(target), str(drafter))), None)
    assert engine.about()["dtypes"] == ["mlx.core.float32"]
    alone, drafted = (engine.answered("What is 3 + 4?", 40, width) for width in (0, 7))
    assert alone["ids"] == drafted["ids"]
    assert alone["ids"][-1] in engine.about()["stop_ids"]
    assert (alone["cycles"], alone["cycle_tokens"]) == (0, 0)
    # Every token but the prompt's own came with a cycle, and tokens of a cycle come at once.
    assert drafted["cycle_tokens"] == len(drafted["ids"]) - 1
    assert len(set(drafted["times"])) == drafted["cycles"] + 1
    assert drafted["times"] == sorted(drafted["times"])


def test_the_ports_tokens_are_timed_as_they_reach_its_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def generate(bundle: Any, prompt: str, **options: Any) -> Any:
        asked.append((prompt, options))
        for piece in ("a", "", "b"):
            sys.stdout.write(piece)
            sys.stdout.flush()
        return SimpleNamespace(token_ids=(5, 6, 2), summary={"cycles_completed": 1})

    stub = SimpleNamespace(generate=generate, no_thinking_prompt_tokens=lambda *_: [1, 2])
    monkeypatch.setitem(sys.modules, "dfly_mlx.generate", stub)
    found = port_driver.answered(SimpleNamespace(tokenizer=None), "hi", 9)
    # Its documented call and nothing else.
    assert asked == [("hi", {"max_tokens": 9, "stream": True})]
    times = found.pop("times")
    assert len(times) == 3
    assert times == sorted(times)
    assert found == {
        "prompt_ids": [1, 2], "ids": [5, 6, 2], "cycles": 1, "cycle_tokens": 2, "copied": 0
    }  # fmt: skip
