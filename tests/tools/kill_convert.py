"""Kill conversions at many moments: the destination is absent, old or whole, never half.

    python -m tests.tools.kill_convert [--moments 100]

A third of the moments write a new output, the others replace an old one, in one step and in two;
they are spread over every line the converter executes, each of the last (sync, rename, clean
up) included.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from pathlib import Path

from tests.convert.killing import HOWS, Case
from tests.convert.small import SAMPLES


def moments(total: int, count: int) -> list[int]:
    """Line numbers to die at: the last ones each, and the rest evenly."""
    tail = min(40, count // 2)
    step = (total - tail) / (count - tail)
    return [1 + int(i * step) for i in range(count - tail)] + list(
        range(total - tail + 1, total + 1)
    )


def shares(count: int) -> tuple[int, int, int]:
    """How many moments each way of writing gets."""
    return count - 2 * (count // 3), count // 3, count // 3


def main() -> int:
    """Run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=100)
    args = parser.parse_args()
    source = SAMPLES / "serving-bin"
    with tempfile.TemporaryDirectory(prefix="dfly-kill-") as folder:
        for how, count in zip(HOWS, shares(args.moments), strict=True):
            case = Case(source, Path(folder, how), how)
            total = case.total()
            states: collections.Counter[str] = collections.Counter()
            for line in moments(total, count):
                states[case.kill_at(line)] += 1
            print(
                f"{how}: killed at {count} of {total} lines; the destination was {dict(states)}; "
                "the next run was whole each time"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
