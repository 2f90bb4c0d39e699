"""One fuzz case: mutate a sample checkpoint, convert it, judge what came of it."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

from dfly_core.convert.names import PREFIXES, to_mlx
from dfly_core.records.errors import DflyError
from tests.convert.mutate import BYTES, mutations_of
from tests.convert.reference import Stated, read_file
from tests.convert.small import SAMPLES, report

BASES = (
    "serving-bin",
    "serving-bin-f32",
    "legacy-bin",
    "views-bin",
    "prefixed-pt",
    "safetensors-export",
    "sharded-bin",
)
SECONDS = 5.0  # of processor time
WALL_SECONDS = 60.0


@dataclass(frozen=True)
class Outcome:
    """What a case came to: `verdict` is "weights" or the kind of the refusal."""

    case: str
    verdict: str
    seconds: float


class Wrong(AssertionError):
    """A case that ended in neither the right weights nor one clean error."""


@contextmanager
def _deadline() -> Iterator[None]:
    def late(number: int, _: FrameType | None) -> None:
        raise Wrong(f"not done in time ({signal.Signals(number).name})")

    # Processor time is what the case itself needs, however busy the machine is; the wall clock
    # catches one that waits for ever.
    limits = (
        (signal.SIGPROF, signal.ITIMER_PROF, SECONDS),
        (signal.SIGALRM, signal.ITIMER_REAL, WALL_SECONDS),
    )
    before = [signal.signal(number, late) for number, _, _ in limits]
    for _, timer, seconds in limits:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(limits, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def run_case(seed: int, index: int, work: Path) -> Outcome:
    """Run case `index` of `seed` in the empty folder `work`; raises Wrong. Leaves it empty."""
    rng = random.Random(f"{seed}/{index}")
    base = BASES[index % len(BASES)]
    source, output = work / "source", work / "out"
    shutil.copytree(SAMPLES / base, source)
    target = rng.choice([p for p in sorted(source.iterdir()) if not p.name.startswith("License")])
    if target.name == "config.json" and rng.random() < 0.7:
        target = max(source.iterdir(), key=lambda path: path.stat().st_size)
    mutation = rng.choice(mutations_of(target))
    name = getattr(mutation, "__name__", "mutation")
    case = f"seed {seed} case {index}: {name} of {base}/{target.name}"
    before = target.read_bytes()
    after = mutation(before, rng)
    target.write_bytes(after)
    start = time.process_time()
    try:
        with _deadline():
            report(source, output)
        verdict = "weights"
    except DflyError as error:
        verdict = error.kind
        if "\n" in str(error) or not error.what:
            raise Wrong(f"{case}: not one line: {error!r}") from error
    except Exception as error:
        raise Wrong(f"{case}: {type(error).__name__}: {error}") from error
    seconds = time.process_time() - start
    _judge(case, verdict, source, output, sealed=mutation in BYTES, base=base)
    if {path.name for path in work.iterdir()} - {"source", "out"}:
        raise Wrong(f"{case}: files outside the output: {sorted(work.iterdir())}")
    if target.read_bytes() != after:
        raise Wrong(f"{case}: the source was changed")
    for path in work.iterdir():
        shutil.rmtree(path)
    return Outcome(case, verdict, seconds)


def _judge(case: str, verdict: str, source: Path, output: Path, sealed: bool, base: str) -> None:
    if verdict != "weights":
        if output.exists():
            raise Wrong(f"{case}: refused, and yet there is an output")
        return
    found = read_file(output / "model.safetensors")
    references = [source]
    if sealed and (SAMPLES / base / "pytorch_model.bin").exists() and base != "legacy-bin":
        references.append(SAMPLES / base)  # zip checksums: only the original may come through
    for folder in references:
        try:
            _compare(found, _stated_by(folder), folder.name)
        except Wrong as error:
            raise Wrong(f"{case}: {error}") from error
        except Exception as error:
            raise Wrong(f"{case}: taken, but the reference fails: {error!r}") from error


def _compare(found: dict[str, Stated], stated: dict[str, Stated], where: str) -> None:
    for tensor, read in found.items():
        if tensor not in stated:
            raise Wrong(f"{tensor} comes from nowhere")
        (dtype, bits), (kind, due) = read(), stated[tensor]()
        if kind != dtype or not np.array_equal(bits, due):
            raise Wrong(f"{tensor} is not what {where} holds")


def _stated_by(folder: Path) -> dict[str, Stated]:
    out = {}
    for path in folder.iterdir():
        if path.suffix in (".bin", ".pt", ".safetensors"):
            for name, value in read_file(path).items():
                for prefix in PREFIXES:
                    if name.startswith(prefix):
                        name = name.removeprefix(prefix)
                        break
                out[to_mlx(name)] = value
    return out
