"""The shipped drafter is what the converter makes of the recipe's upstream form."""

from __future__ import annotations

from pathlib import Path

import pytest

from dfly_core.convert.convert import convert
from dfly_core.model.locate import EMBEDDED
from dfly_core.records.commands import Convert

UPSTREAM = Path(__file__).parents[2] / "dfly_core" / "embedded" / "recipe" / "upstream"


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="the recipe is not in the wheel")
def test_the_converter_makes_the_shipped_drafter_byte_for_byte(tmp_path: Path) -> None:
    output = tmp_path / "drafter"
    for _ in convert(Convert(output=str(output), source=str(UPSTREAM)), lambda: False):
        pass
    for name in ("model.safetensors", "config.json", "LICENSE"):
        assert (output / name).read_bytes() == (EMBEDDED / "drafter" / name).read_bytes()
