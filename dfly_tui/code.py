"""Colours for code, calm: a handful of kinds, all from the theme."""

from __future__ import annotations

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound
from textual.content import Content

_MOST = 20_000  # characters: beyond that colours cost more than they tell

_STYLES = (
    (Token.Comment, "$foreground 65%"),
    (Token.Keyword, "$primary"),
    (Token.Operator.Word, "$primary"),
    (Token.String, "$success"),
    (Token.Number, "$warning"),
    (Token.Name.Function, "bold"),
    (Token.Name.Class, "bold"),
    (Token.Name.Builtin, "$secondary"),
    (Token.Name.Decorator, "$secondary"),
)


def highlighted(code: str, language: str) -> Content:
    """The code with colours if the language is known."""
    lexer = _lexer(language) if language and len(code) <= _MOST else None
    if lexer is None:
        return Content(code)
    parts: list[tuple[str, str]] = []
    for kind, text in lexer.get_tokens(code):
        style = next((style for known, style in _STYLES if kind in known), "")
        if parts and parts[-1][1] == style:
            parts[-1] = (parts[-1][0] + text, style)
        else:
            parts.append((text, style))
    body = Content("").join(Content(t).stylize(s) if s else Content(t) for t, s in parts)
    # Lexers end the text with a newline of their own.
    return body.right_crop(1) if body.plain.endswith("\n") and not code.endswith("\n") else body


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=True)
    except ClassNotFound:
        return None
