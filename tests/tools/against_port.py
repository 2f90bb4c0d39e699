"""Our decoding rate against the public port's (PyPI `dfly-mlx` over `dflash-mlx`), in turns.

    python -m tests.tools.against_port --port-python PYTHON [--trials 5 --tokens 128 --prompts N]

PYTHON is the interpreter of a venv that holds the port: `pip install dfly-mlx==0.1.0
dflash-mlx==0.1.8`. Both sides run in a process of their own, on float32 copies of the embedded
pair, greedy, thinking off, on our own prompts, whose token ids must be the same on both. Ours runs
as it does by default (`--verify exact`, the width its own choice) and at the full width; the port
as its command line runs it, copying of n-grams included. Who goes first changes with every prompt
and trial; a first round of all prompts warms up and is not counted. `--openblas` preloads that
library in both.

Rate: (tokens - 1) / (time at which the last token came - time at which the first came), both seen
by the caller of the stream; the stop token counts, what comes after it does not. A ratio is that
of a prompt's rates in the same trial. Printed are medians: over trials, then over prompts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import mlx.core as mx

from dfly_core.bench.prompts import Prompt, read_prompts
from dfly_core.model.locate import EMBEDDED

ROOT = Path(__file__).resolve().parents[2]
PORT_DRIVER = Path(__file__).with_name("port_driver.py")
WAYS = ("auto", "full", "port")  # ours by default, ours at the full width, the port
TITLES = {"auto": "ours", "full": "ours, width 7", "port": "the port"}
WIDTHS: dict[str, int | None] = {"auto": None, "full": 7, "alone": 0}


@dataclass(frozen=True)
class Answer:
    """One decoding: token ids with the seconds at which each came, and its cycles."""

    prompt_ids: list[int]
    ids: list[int]
    times: list[float]
    cycles: int
    cycle_tokens: int
    copied: int

    def until(self, stop_ids: Sequence[int]) -> Answer:
        """The same, ended at the first stop token."""
        ends = (index for index, token in enumerate(self.ids, start=1) if token in stop_ids)
        size = next(ends, len(self.ids))
        beyond = len(self.ids) - size
        return replace(
            self,
            ids=self.ids[:size],
            times=self.times[:size],
            cycle_tokens=self.cycle_tokens - beyond,
        )

    @property
    def rate(self) -> float | None:
        """Tokens/s from the first token to the last; None when there is but one moment."""
        span = self.times[-1] - self.times[0] if self.times else 0.0
        return (len(self.ids) - 1) / span if span > 0 else None


class Side:
    """A child that answers prompts; it has said what it is in `about`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._name = command[0]
        self._child = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            encoding="utf-8", cwd=ROOT, env=dict(environment),
        )  # fmt: skip
        self.about = self._read()

    def ask(self, prompt: str, max_tokens: int, width: int | None = None) -> Answer:
        """One answer, ended at its stop token."""
        assert self._child.stdin is not None
        request = {"prompt": prompt, "max_tokens": max_tokens, "width": width}
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        found = self._read()
        answer = Answer(**{one.name: found[one.name] for one in fields(Answer)})
        return answer.until(self.about["stop_ids"])

    def close(self) -> None:
        """End the child: it ends when its input does."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()

    def _read(self) -> Any:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise SystemExit(f"{self._name} ended with {self._child.wait()}; see above")
        return json.loads(line)


def float32_pair(folder: Path) -> tuple[Path, Path]:
    """Copies of the embedded target and drafter with every weight widened to float32."""
    for part in ("target", "drafter"):
        shutil.copytree(EMBEDDED / part, folder / part)
        path = folder / part / "model.safetensors"
        weights: dict[str, mx.array] = mx.load(str(path))  # type: ignore[assignment]
        wide = {name: value.astype(mx.float32) for name, value in weights.items()}
        mx.eval(wide)
        mx.save_safetensors(str(path), wide, {"format": "mlx"})
        config = folder / part / "config.json"
        said = json.loads(config.read_text(encoding="utf-8")) | {"torch_dtype": "float32"}
        config.write_text(json.dumps(said), encoding="utf-8")
    return folder / "target", folder / "drafter"


@contextmanager
def both_sides(
    ours: Sequence[str], port: Sequence[str], library: str | None
) -> Iterator[tuple[Side, Side]]:
    """The two children, ended afterwards; refuses two that can't be compared."""
    environment = dict(os.environ)
    if library is not None:
        environment["LD_PRELOAD"] = library
    with ExitStack() as stack:
        sides = []
        for command in (ours, port):
            sides.append(Side(command, environment))
            stack.callback(sides[-1].close)
        for name in ("blas", "dtypes", "stop_ids"):
            values = [side.about[name] for side in sides]
            if values[0] != values[1]:
                raise SystemExit(f"the sides differ in {name}: {values[0]} and {values[1]}")
        yield sides[0], sides[1]


@dataclass
class Measured:
    """The answers to one prompt: by the target alone, and by each way, trial by trial."""

    prompt: Prompt
    alone: Answer
    answers: dict[str, list[Answer]] = field(default_factory=lambda: {way: [] for way in WAYS})
    warm: dict[str, Answer] = field(default_factory=dict)

    def rate(self, way: str) -> float | None:
        """The median rate of a way over the trials."""
        return _median([answer.rate for answer in self.answers[way]])

    def ratio(self, way: str) -> float | None:
        """The median over the trials of a way's rate over the port's in the same trial."""
        pairs = zip(self.answers[way], self.answers["port"], strict=True)
        rates = [(mine.rate, theirs.rate) for mine, theirs in pairs]
        return _median([a / b if a and b else None for a, b in rates])

    def equal(self, way: str) -> bool:
        """Whether every answer of a way, the warm-up's too, is the target's own."""
        answers = [*self.answers[way], self.warm[way]]
        return all(answer.ids == self.alone.ids for answer in answers)


def measure(
    ours: Side, port: Side, prompts: Sequence[Prompt], trials: int, max_tokens: int
) -> list[Measured]:
    """All prompts, all ways; the first round warms up."""

    def one(way: str, prompt: Prompt) -> Answer:
        if way == "port":
            return port.ask(prompt.prompt, max_tokens)
        return ours.ask(prompt.prompt, max_tokens, WIDTHS[way])

    found = [Measured(prompt, one("alone", prompt)) for prompt in prompts]
    orders = list(permutations(WAYS))
    for trial in range(-1, trials):
        for number, measured in enumerate(found):
            for way in orders[(trial + number) % len(orders)]:
                answer = one(way, measured.prompt)
                if answer.prompt_ids != measured.alone.prompt_ids:
                    raise SystemExit(f"prompt {measured.prompt.id}: the sides read other ids")
                if trial < 0:
                    measured.warm[way] = answer
                else:
                    measured.answers[way].append(answer)
    return found


def table(found: Sequence[Measured]) -> Iterator[str]:
    """Lines: a row per category, then all."""
    yield (
        f"{'':10} {'way':14} {'tokens/s':>9} {'ratio':>6} {'least':>6} {'most':>6} "
        f"{'a cycle':>8} {'parked':>7} {'as alone':>9}"
    )
    categories = list(dict.fromkeys(one.prompt.category for one in found))
    for category in [*categories, "all"]:
        group = [one for one in found if category in ("all", one.prompt.category)]
        for way in WAYS:
            yield f"{category if way == WAYS[0] else '':10} {_cells(group, way)}"


def _cells(group: Sequence[Measured], way: str) -> str:
    answers = [answer for one in group for answer in one.answers[way]]
    cycles = sum(answer.cycles for answer in answers)
    in_cycles = sum(answer.cycle_tokens for answer in answers)
    parked = sum(len(answer.ids) - 1 - answer.cycle_tokens for answer in answers)
    ratios = [ratio for one in group if (ratio := one.ratio(way)) is not None]
    shown = [_median(ratios), min(ratios, default=None), max(ratios, default=None)]
    equal = sum(one.equal(way) for one in group)
    return (
        f"{TITLES[way]:14} {_number(_median([one.rate(way) for one in group]), 1):>9} "
        + " ".join(f"{_number(value, 2):>6}" for value in shown)
        + f" {_number(in_cycles / cycles if cycles else None, 2):>8}"
        f" {parked / max(1, parked + in_cycles):>6.0%} {equal:>4} of {len(group)}"
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def report(ours: Side, port: Side, found: Sequence[Measured], max_tokens: int) -> Iterator[str]:
    """Everything that is printed, line by line."""
    cycles = sum(answer.cycles for one in found for answer in one.answers["port"])
    copied = sum(answer.copied for one in found for answer in one.answers["port"])
    yield f"ours: {ours.about['name']}; {ours.about['words']}"
    yield f"the port: {port.about['name']}"
    yield f"  copying of n-grams: {port.about['copying']}; {copied} of its {cycles} cycles were one"
    yield f"weights of both: {', '.join(ours.about['dtypes'])}; BLAS: {ours.about['blas']}"
    yield f"{len(found)} prompts, at most {max_tokens} tokens; ratio = rate over the port's"
    yield from table(found)
    for one in found:
        for way in WAYS:
            if not one.equal(way):
                yield f"{one.prompt.id}: {TITLES[way]} leaves the target's own tokens"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port-python", required=True, metavar="PYTHON")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--prompts", type=int, metavar="N", help="only the first N")
    parser.add_argument(
        "--openblas", nargs="?", const="libopenblas.so.0", metavar="LIBRARY", help="preload it"
    )
    args = parser.parse_args()
    prompts = read_prompts()[: args.prompts]
    with tempfile.TemporaryDirectory() as folder:
        models = [str(path) for path in float32_pair(Path(folder))]
        our_command = [sys.executable, "-m", "tests.tools.engine_driver", *models]
        port_command = [args.port_python, "-I", str(PORT_DRIVER), *models]
        with both_sides(our_command, port_command, args.openblas) as (ours, port):
            if args.openblas and "openblas" not in ours.about["blas"]:
                raise SystemExit(f"{args.openblas} was not loaded; name the file")
            found = measure(ours, port, prompts, args.trials, args.tokens)
            for line in report(ours, port, found, args.tokens):
                print(line)


if __name__ == "__main__":
    main()
