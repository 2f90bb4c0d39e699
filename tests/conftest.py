"""Nothing a test does may touch the user's own caches, or depend on the user's hub settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing on a machine that does other things too.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Before anything imports huggingface_hub, which reads its settings once.
for name in [n for n in os.environ if n.startswith(("HF_", "HUGGING_FACE_", "TRANSFORMERS_"))]:
    del os.environ[name]


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder for this run, which child processes inherit."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder
