"""Bytes get their unit in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dfly_core
import dfly_tui
from dfly_core.records.sizes import memory_words, size_words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"),
        (9_994_000, "9.99 MB"), (9_995_000, "10.0 MB"), (18_240_000, "18.2 MB"),
        (637_000_000, "637 MB"), (4_610_000_000, "4.61 GB"), (2_000_000_000_000, "2000 GB"),
    ],
)  # fmt: skip
def test_sizes_are_told_in_three_figures(size: int, words: str) -> None:
    assert size_words(size) == words


def test_a_machine_has_the_memory_that_it_was_sold_with() -> None:
    assert memory_words(16 * 2**30) == "16 GB"
    assert memory_words(25_180_000_000) == "23.5 GB"


def test_no_other_place_gives_bytes_a_unit() -> None:
    """A number divided to GB, MB or kB, or a unit behind a number that is filled in."""
    own = re.compile(r"/ *1e[369]\b|/ *1_?000_?000|\} ?[GMk]i?B\b")
    folders = [*dfly_core.__path__, *dfly_tui.__path__]
    paths = [path for folder in folders for path in Path(folder).rglob("*.py")]
    found = [
        f"{path.name}: {line.strip()}"
        for path in paths
        if path.name != "sizes.py" and "recipe" not in path.parts
        for line in path.read_text("utf-8").splitlines()
        if own.search(line)
    ]
    assert len(paths) > 100
    assert not found
