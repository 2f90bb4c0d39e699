"""Makes foreign text harmless for a terminal, one character at a time."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")


def visible(text: str) -> str:
    """`text` with control characters replaced by visible stand-ins.

    Maps single characters and keeps no state, so the way text is cut into chunks cannot
    matter: without ESC and the C1 controls no terminal sequence can begin. Newline and tab
    stay; C0 controls become their Unicode pictures; C1, bidirectional overrides and lone
    surrogates become bracketed codes.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    code = ord(character)
    if character in _KEPT or (32 <= code < 127):
        return character
    if code < 32:
        return chr(0x2400 + code)
    if code == 127:
        return "\u2421"
    if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000:
        return f"<{code:02X}>"
    if 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069:
        return f"<{code:04X}>"
    if unicodedata.category(character) in ("Zl", "Zp"):
        return "\n"
    return character


def one_line(text: str, limit: int = 400) -> str:
    """`text` made visible on one line of at most `limit` characters."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "\u2026"
