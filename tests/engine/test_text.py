"""Text comes out whole, in whatever pieces the tokens cut it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from dfly_core.engine.stopping import StopRule
from dfly_core.engine.text import BROKEN, TextStream
from dfly_core.model.locate import EMBEDDED
from dfly_core.model.prompt import byte_ids, load_tokenizer

SAMPLES = [
    "plain words",
    "🙂",
    "👨‍👩‍👧‍👦 family",
    "한글 자모 한글",
    "e\u0301 combining \u0065\u0301\u0323",
    "🇨🇭 flag 中文。",
    "\ufffd honest replacement \ufffd",
    "tail \ufffd",
]


def by_byte(ids: Sequence[int]) -> str:
    """A byte-level tokenizer's decoder: every id is a byte."""
    return bytes(ids).decode("utf-8", errors="replace")


def stripped(ids: Sequence[int]) -> str:
    """A decoder that drops the space before the first token, as sentencepiece does."""
    return "".join([" a", " bc", "d", " "][i % 4] for i in ids).removeprefix(" ")


def stream(decode: object, ids: Sequence[int]) -> list[str]:
    text = TextStream(decode)  # type: ignore[arg-type]
    return [*(text.push(i) for i in ids), text.finish()]


@pytest.mark.parametrize("sample", SAMPLES)
def test_pieces_join_to_the_decoded_whole(sample: str) -> None:
    pieces = stream(by_byte, sample.encode())
    assert "".join(pieces) == sample
    for end in range(len(pieces)):
        assert sample.startswith("".join(pieces[:end]))


@given(st.binary(max_size=60))
def test_any_bytes_join_to_the_decoded_whole(data: bytes) -> None:
    pieces = stream(by_byte, data)
    whole = by_byte(data)
    assert "".join(pieces) == whole
    shown = ""
    for piece in pieces:
        shown += piece
        assert whole.startswith(shown)


@given(st.lists(st.integers(0, 3), max_size=30))
def test_a_decoder_that_strips_the_first_space_is_served_too(ids: list[int]) -> None:
    assert "".join(stream(stripped, ids)) == stripped(ids)


def sentencepiece_like() -> PreTrainedTokenizerFast:
    """Words with `▁`, and a byte each for everything else, decoded as Llama's tokenizer does."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁a", "▁b", "c", "é"]
    model = models.BPE({word: i for i, word in enumerate(words)}, [], byte_fallback=True)
    made = Tokenizer(model)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)])
    return PreTrainedTokenizerFast(tokenizer_object=made)


FALLBACK = sentencepiece_like()
ALL_BYTES = byte_ids(FALLBACK)


def by_fallback(ids: Sequence[int]) -> str:
    return str(FALLBACK.decode(list(ids), clean_up_tokenization_spaces=False))


def test_the_byte_tokens_are_known_and_a_byte_level_tokenizer_has_none() -> None:
    assert frozenset(range(1, 257)) == ALL_BYTES
    assert byte_ids(load_tokenizer(EMBEDDED / "target")) == frozenset()


@given(st.lists(st.one_of(st.integers(1, 260), st.sampled_from([0xC4, 0xAA, 257, 259]))))
def test_one_bad_byte_spoils_its_whole_run_and_the_stream_has_it_so_too(ids: list[int]) -> None:
    text = TextStream(by_fallback, ALL_BYTES)
    pieces = [*(text.push(i) for i in ids), text.finish()]
    assert "".join(pieces) == by_fallback(ids)


def test_a_character_before_a_bad_byte_is_not_shown_too_early() -> None:
    ids = [257, 0xC3 + 1, 0xA9 + 1, 0xFF + 1, 259]  # " a", an é in two bytes, a bad byte, "c"
    assert by_fallback(ids) == "a\ufffd\ufffd\ufffdc"
    text = TextStream(by_fallback, ALL_BYTES)
    assert [text.push(i) for i in ids] == ["a", "", "", "", "\ufffd\ufffd\ufffdc"]
    good = [257, 0xC3 + 1, 0xA9 + 1, 259]
    text = TextStream(by_fallback, ALL_BYTES)
    assert [text.push(i) for i in good] == ["a", "", "", "éc"]


@pytest.mark.parametrize("sample", SAMPLES[:6])
def test_fault_16_no_half_character_is_ever_shown(sample: str) -> None:
    assert all(BROKEN not in piece for piece in stream(by_byte, sample.encode()))


def test_long_texts_are_decoded_from_the_last_piece_only() -> None:
    longest = 0

    def decode(ids: Sequence[int]) -> str:
        nonlocal longest
        longest = max(longest, len(ids))
        return by_byte(ids)

    stream(decode, ("한글🙂" * 300).encode())
    assert longest <= 12


def rule(stops: Sequence[str], most: int = 999) -> StopRule:
    return StopRule(TextStream(by_byte), [0], stops, most, 999)


@given(
    st.text(alphabet="ab한🙂", max_size=30),
    st.lists(st.text(alphabet="ab한", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(1, 7), min_size=1),
)
def test_a_stop_string_is_found_however_blocks_cut_it(
    text: str, stops: list[str], sizes: list[int]
) -> None:
    data, at, found, finish = list(text.encode()), 0, "", None
    stop = rule(stops)
    turn = 0
    while at < len(data) and finish is None:
        size = sizes[turn % len(sizes)]
        cut = stop.cut(data[at : at + size])
        found, finish = found + "".join(cut.texts), cut.finish
        at, turn = at + size, turn + 1
    found += stop.close()
    first = [text.index(s) for s in stops if s in text]
    # Of stop strings that end at the same token the earliest wins.
    assert found == (text[: len(found)] if first else text)
    if first:
        assert finish == "stop"
        assert any(text[len(found) :].startswith(s) for s in stops)
        assert not any(s in found for s in stops)


def test_text_that_could_begin_a_stop_is_released_at_the_end() -> None:
    stop = rule(["<end>"])
    cut = stop.cut(list(b"ok <en"))
    assert "".join(cut.texts) == "ok "
    cut = stop.cut([0])
    assert (cut.kept, cut.texts, cut.finish) == (0, ("<en",), "stop")


def test_the_context_is_named_when_it_was_the_limit() -> None:
    assert StopRule(TextStream(by_byte), [], [], 5, 3).cut(list(b"abcdef")).finish == "context"
    assert StopRule(TextStream(by_byte), [], [], 3, 5).cut(list(b"abcdef")).finish == "length"
