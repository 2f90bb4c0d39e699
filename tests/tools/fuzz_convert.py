"""Fuzz the converter: mutated checkpoints of every format.

    python -m tests.tools.fuzz_convert [--count 10000] [--seed 1] [--first 0]

Every case is the right weights or one clean error, within 5 s of processor time, with no file
outside the output; the process may take 1 GB of address space beyond what it starts with. A
failure prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import collections
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.convert.fuzz import Wrong, run_case

GIGABYTE = 1 << 30


def limit_memory() -> None:
    """Let this process map 1 GB more than it has now, and no more."""
    status = Path("/proc/self/status")
    if status.exists():
        (size,) = (line for line in status.read_text().splitlines() if line.startswith("VmSize"))
        ceiling = int(size.split()[1]) * 1024 + GIGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling))


def main() -> int:
    """Run the cases; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    verdicts: collections.Counter[str] = collections.Counter()
    wrong, slowest, start = 0, 0.0, time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="dfly-fuzz-") as folder:
        # Where relative paths would end up, and the home of anything that looks for one.
        elsewhere, work = Path(folder, "elsewhere"), Path(folder, "work")
        elsewhere.mkdir()
        work.mkdir()
        os.environ["HOME"] = str(elsewhere)
        os.chdir(elsewhere)
        run_case(args.seed, 0, work)  # imports and first allocations
        limit_memory()
        for index in range(args.first, args.first + args.count):
            try:
                outcome = run_case(args.seed, index, work)
            except Wrong as error:
                wrong += 1
                print(f"{error}\n  --seed {args.seed} --first {index} --count 1", flush=True)
                work = Path(tempfile.mkdtemp(dir=folder))
                continue
            verdicts[outcome.verdict] += 1
            slowest = max(slowest, outcome.seconds)
        if list(elsewhere.iterdir()):
            wrong += 1
            print(f"files appeared elsewhere: {list(elsewhere.iterdir())}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak *= 1 if sys.platform == "darwin" else 1024
    print(
        f"{sum(verdicts.values())} cases of seed {args.seed} in {time.perf_counter() - start:.0f} "
        f"s: {dict(verdicts)}; {wrong} wrong; slowest {slowest:.2f} s of processor "
        f"time; peak {peak / 1e6:.0f} MB"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
