"""Where whole glyphs end: enough of the Unicode rules for a backspace that takes one."""

from __future__ import annotations

import unicodedata

ZWJ = "\u200d"


def last_glyph(text: str) -> int:
    """How many code points at the end of `text` make up its last glyph."""
    at = len(text)
    if at == 0:
        return 0
    at -= 1
    while at > 0 and _joins(text, at):
        at -= 1
    return len(text) - at


def first_glyph(text: str) -> int:
    """How many code points at the start of `text` make up its first glyph."""
    at = 1
    while at < len(text) and _joins(text, at):
        at += 1
    return min(at, len(text))


def _joins(text: str, at: int) -> bool:
    """Whether code point `at` belongs to the same glyph as the one before it."""
    here, before = text[at], text[at - 1]
    if here == ZWJ or before == ZWJ or unicodedata.category(here) in ("Mn", "Me", "Mc"):
        return True
    if 0x1F3FB <= ord(here) <= 0x1F3FF or 0xE0020 <= ord(here) <= 0xE007F:
        return True  # skin tones, tag sequences
    if 0x1160 <= ord(here) <= 0x11FF:
        return True  # conjoining Hangul vowels and finals
    if _flag(here) and _flag(before):
        run = 0
        while run < at and _flag(text[at - 1 - run]):
            run += 1
        return run % 2 == 1  # flags are pairs
    return False


def _flag(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF
