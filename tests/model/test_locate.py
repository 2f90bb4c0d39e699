"""A name is a folder, a hub id, or a fault that says so; half a download is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from dfly_core.model.locate import cached_folder, locate
from dfly_core.records.errors import Missing

NAMES = [
    ("~nobody-by-this-name/x", "can't be read|no folder"),
    ("a" * 5000, "can't be read"),
    ("a\0b/c", "no folder"),
    ("a/b--c", "a/b--c is no hub id"),
    ("a/b..c", "a/b..c is no hub id"),
    ("a/b-", "a/b- is no hub id"),
]


@pytest.mark.parametrize(("name", "said"), NAMES, ids=[name[:8] for name, _ in NAMES])
def test_a_name_that_is_nothing_says_so(name: str, said: str) -> None:
    with pytest.raises(Missing, match=said) as caught:
        locate(name)
    assert caught.value.remedy == "name a model folder or a hub id such as owner/model"


@pytest.mark.parametrize(
    ("shards", "whole"), [((1, 2), True), ((1,), False), ((), False)], ids=["all", "one", "none"]
)
def test_a_download_that_was_interrupted_is_not_taken_for_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: tuple[int, ...], whole: bool
) -> None:
    def snapshot(*_: Any, **__: Any) -> str:
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    named = {f"t{n}": f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": named}))
    for n in shards:
        (tmp_path / named[f"t{n}"]).touch()
    assert cached_folder("owner/model") == (tmp_path if whole else None)
