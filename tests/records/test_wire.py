"""The wire: every record survives the trip, in any pieces; strangers are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfly_core.records.checked import Checked, Sizing
from dfly_core.records.commands import (
    Bench,
    Cancel,
    Command,
    Diagnose,
    Generate,
    GenerateOptions,
    Load,
    Message,
)
from dfly_core.records.events import (
    Diagnosed,
    Event,
    Failed,
    Generated,
    Hello,
    Progress,
    Stepped,
)
from dfly_core.records.stats import Stats
from dfly_core.records.step import Seconds, Step, Token
from dfly_core.records.wire import Envelope, LineDecoder, WireError, decode, encode

STEP = Step(
    index=3,
    position=40,
    anchor=Token(7, "é"),
    proposals=(Token(1, "a"), Token(2, "🙂")),
    accepted=1,
    chosen=(Token(1, "a"), Token(9, "[/]")),
    kept=2,
    texts=("a", ""),
    finish=None,
    off=None,
    seconds=Seconds(0.5, 0.1, 0.3, 0.05),
)
BODIES: list[Command | Event] = [
    Load(model="x/y", verify="auto"),
    Generate((Message("user", "a\nb\x1b"),), GenerateOptions(width=3, stop=("\n\n",))),
    Bench(output="r.json"),
    Cancel(4),
    Hello(1, "0.1.0"),
    Progress("read", "fc.weight", 5, 10, "bytes", 2.5),
    Stepped(STEP),
    Generated(Stats().add(STEP), "stop", 12, 99),
    Diagnose((Message("user", "a"),), (3, 1, 2)),
    Diagnosed((Token(1, "a"), Token(2, "")), (0.1, -3.5)),
    Checked(
        "x/y",
        "serving folder",
        "x/y",
        "abc",
        "5 layers",
        9,
        4,
        None,
        (Sizing(None, 9), Sizing(4, 3, 0.2, 2.5, 31.0)),
        "speed: computed",
        ("n",),
        (),
        ("no",),
    ),
    Failed("refused", "x", "y"),
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_every_record_comes_back_equal(body: Command | Event) -> None:
    assert decode(encode(7, body)) == Envelope(7, body)


@given(st.lists(st.integers(min_value=1, max_value=90), max_size=60))
def test_the_cut_into_pieces_does_not_matter(cuts: list[int]) -> None:
    stream = b"".join(encode(n, body) for n, body in enumerate(BODIES)) + b'{"type":'
    decoder, seen, at = LineDecoder(), [], 0
    for cut in [*cuts, len(stream)]:
        seen += list(decoder.feed(stream[at : at + cut]))
        at += cut
    assert seen == [Envelope(n, body) for n, body in enumerate(BODIES)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "not a line"),
        (b"[1]", "not a record"),
        (b'{"type":"Nope","job":1}', "unknown type 'Nope'"),
        (b'{"type":"Cancel","job":1,"target":1,"extra":2}', "unknown field 'extra'"),
        (b'{"type":"Cancel","job":1,"target":"1"}', "Cancel.target"),
        (b'{"type":"Cancel","job":1}', "target"),
        (b'{"type":"Cancel","target":1}', "without a job number"),
        (b'{"type":"Load","job":1,"verify":"maybe"}', "Load.verify"),
    ],
)
def test_what_it_does_not_know_is_named(line: bytes, said: str) -> None:
    with pytest.raises(WireError, match=said):
        decode(line)


@pytest.mark.parametrize(
    ("line", "job"),
    [
        (b'{"type":"Nope","job":31}', 31),
        (b'{"type":"Cancel","job":31,"target":"1"}', 31),
        (b'{"type":"Generate","job":31,"messages":[{"role":"user"}]}', 31),
        (b'{"type":"Cancel","job":"31","target":1}', 0),
        (b'{"type":"Cancel","job":true,"target":1}', 0),
        (b'{"type":"Cancel","job":31', 0),
    ],
)
def test_what_it_does_not_know_keeps_its_job_number(line: bytes, job: int) -> None:
    with pytest.raises(WireError) as caught:
        decode(line)
    assert caught.value.job == job


@pytest.mark.parametrize(
    "line",
    [b"[" * 100_000, b'{"type":' * 100_000, b"\xff\xfe", b'{"type":"Close","job":' + b"9" * 5000],
    ids=lambda line: repr(line[:10]),
)
def test_a_line_that_cannot_be_parsed_is_a_wire_error(line: bytes) -> None:
    with pytest.raises(WireError, match="not a line of the protocol"):
        decode(line)


def test_a_number_too_large_for_its_field_is_named() -> None:
    line = b'{"type":"Generate","job":1,"messages":[],"options":{"temperature":1%s}}' % (b"0" * 400)
    with pytest.raises(WireError, match="temperature"):
        decode(line)
