"""The only door from foreign text to the screen."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.content import Content

from dfly_core.records.visible import one_line, visible


def content(text: str, style: str = "") -> Content:
    """Text for any widget: controls made visible, markup never parsed."""
    shown = Content(visible(text))
    return shown.stylize(style) if style else shown


def line(text: str, style: str = "", limit: int = 400) -> Content:
    """The same on one line."""
    shown = Content(one_line(text, limit))
    return shown.stylize(style) if style else shown


def markdown(text: str) -> str:
    """Text for a Markdown widget, which takes only strings."""
    return visible(text)


def cell(text: str, style: str | Style = "") -> Text:
    """Text for a table cell, which takes no `Content`."""
    return Text(one_line(text), style=style, no_wrap=True)


def middle(text: str, width: int) -> str:
    """One line of at most `width` characters, cut in the middle: a path's end names the file."""
    flat = one_line(text, max(len(text), 1))
    if len(flat) <= width:
        return flat
    tail = max((width - 1) * 2 // 3, 1)
    return f"{flat[: max(width - 1 - tail, 0)]}…{flat[-tail:]}"
