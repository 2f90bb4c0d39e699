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
