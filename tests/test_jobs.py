"""Jobs in a row: what fails leaves nothing that a later job could mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dfly_core import jobs
from dfly_core.jobs import Program
from dfly_core.records.commands import Generate, GenerateOptions, Load, Message
from dfly_core.records.errors import Usage
from dfly_core.records.events import Event, Generated, Loaded
from tests.tiny import make_pair

ASK = Generate((Message("user", "Hello"),), GenerateOptions(max_tokens=5))


def never() -> bool:
    return False


def test_a_load_whose_self_test_fails_leaves_nothing_to_answer_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "load_pair", lambda _: make_pair())
    program = Program()
    assert isinstance(list(program.run(Load(), never))[-1], Loaded)
    assert isinstance(list(program.run(ASK, never))[-1], Generated)

    def broken(*_: Any) -> Iterator[Event]:
        raise RuntimeError
        yield

    monkeypatch.setattr(jobs, "prepare", broken)
    with pytest.raises(RuntimeError):
        list(program.run(Load(), never))
    with pytest.raises(Usage, match="no model is loaded"):
        list(program.run(ASK, never))


@pytest.mark.parametrize("options", [GenerateOptions(max_tokens=0)])
def test_without_a_token_there_is_no_time_to_the_first(
    monkeypatch: pytest.MonkeyPatch, options: GenerateOptions
) -> None:
    monkeypatch.setattr(jobs, "load_pair", lambda _: make_pair())
    program = Program()
    list(program.run(Load(no_draft=True), never))
    done = list(program.run(Generate(ASK.messages, options), never))[-1]
    assert isinstance(done, Generated)
    assert done.stats.emitted == 0
    assert done.stats.time_to_first_token is None
