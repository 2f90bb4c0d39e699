"""Foreign text can do nothing to a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfly_core.records.visible import one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [/] text", "plain [/] text"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("a\x9b2Jb", "a<9B>2Jb"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("한글 👨‍👩‍👧 é", "한글 👨‍👩‍👧 é"),
        ("\u202egnp", "<202E>gnp"),
        ("\x7f", "␡"),
    ],
)
def test_controls_become_pictures(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(), st.integers(min_value=0, max_value=20))
def test_chunks_do_not_matter_and_nothing_harmful_stays(text: str, cut: int) -> None:
    assert visible(text[:cut]) + visible(text[cut:]) == visible(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in visible(text))


def test_one_line_is_one_line() -> None:
    assert one_line("a\n b\x1bc") == "a b␛c"
    assert len(one_line("x" * 900)) == 400
