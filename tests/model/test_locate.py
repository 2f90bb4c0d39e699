"""A name is a folder, a hub id, or a fault that says so; half a download is none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from dfly_core.model.config import read_config
from dfly_core.model.headers import read_headers
from dfly_core.model.locate import cached_folder, locate
from dfly_core.records.errors import Missing, Refused

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


def test_a_pipe_in_the_place_of_weights_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(Refused, match="it is no file"):
        read_headers(tmp_path)
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(Refused, match=r"config.json can't be read"):
        read_config(tmp_path)
