"""Every flow of `tests.tools.flows` once, in the smaller terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.terminal import needs_tmux
from tests.tools.flows import SIZES, UPSTREAM, walk


@needs_tmux
@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="the recipe is not in the wheel")
def test_the_flows_of_a_user_from_an_empty_home(tmp_path: Path) -> None:
    told: list[str] = []
    walk(tmp_path, SIZES[-1], told.append, False)
    assert len(told) == 8
    assert all(line.startswith("ok ") for line in told)
