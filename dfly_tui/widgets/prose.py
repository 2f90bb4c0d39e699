"""A Markdown text in one widget, cheap to append to: only its last block is parsed again."""

from __future__ import annotations

from markdown_it import MarkdownIt
from textual.content import Content
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widget import Widget

from dfly_tui.markdown import Block, blocks, parser
from dfly_tui.text import markdown


class Prose(Widget):
    """Shows Markdown; `feed` appends, `settle` parses the whole once more at the end.

    A reference or a list may change what came before it, so a text grown piece by piece is
    only final after `settle`.
    """

    DEFAULT_CSS = "Prose { width: 1fr; height: auto; }"

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._parse: MarkdownIt = parser()
        self._source = ""
        self._blocks: list[Block] = []
        self._rows: list[Content] = []
        self._starts: list[int] = []  # the first row of each block
        self._width = 0
        self._strips: dict[int, Strip] = {}
        if text:
            self._source = markdown(text)
            self._blocks = blocks(self._source, self._parse)

    @property
    def source(self) -> str:
        """The sanitised source shown."""
        return self._source

    @property
    def rows(self) -> list[str]:
        """The rows as plain text."""
        return [row.plain for row in self._rows]

    def feed(self, text: str) -> None:
        """Append a piece of the original text."""
        self._source += markdown(text)
        keep = max(len(self._blocks) - 1, 0)
        # From the last block's first line on; a list or table may still grow by lines.
        since = self._blocks[-1].start if self._blocks else 0
        tail = "\n".join(self._source.split("\n")[since:])
        fresh = [
            Block(block.start + since, block.lines, block.table)
            for block in blocks(tail, self._parse)
        ]
        self._replace(keep, fresh)

    def settle(self) -> None:
        """Parse the whole; from here on it equals a one-shot parse."""
        whole = blocks(self._source, self._parse)
        same = 0
        for old, new in zip(self._blocks, whole, strict=False):
            if old != new:
                break
            same += 1
        if same < max(len(whole), len(self._blocks)):
            self._replace(same, whole[same:])

    def _replace(self, keep: int, fresh: list[Block]) -> None:
        self._blocks[keep:] = fresh
        if not self._width:
            return
        before = len(self._rows)
        self._lay_out(keep)
        if len(self._rows) != before:
            self.refresh(layout=True)
        else:
            first = self._starts[keep] if keep < len(self._starts) else 0
            self.refresh(Region(0, first, self._width, max(len(self._rows) - first, 1)))

    def _lay_out(self, first: int) -> None:
        """Cut the blocks from `first` on into rows."""
        cut = self._starts[first] if first < len(self._starts) else len(self._rows)
        del self._rows[cut:]
        del self._starts[first:]
        for y in [y for y in self._strips if y >= cut]:
            del self._strips[y]
        for block in self._blocks[first:]:
            self._starts.append(len(self._rows))
            if self._rows:
                self._rows.append(Content(""))
            self._rows += block.rows(self._width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the rows at that width."""
        if width != self._width:
            self._width = width
            self._rows, self._starts = [], []
            self._strips.clear()
            self._lay_out(0)
        return max(len(self._rows), 1)

    def notify_style_update(self) -> None:
        """A new theme paints every row again."""
        super().notify_style_update()
        self._strips.clear()

    def selection_updated(self, selection: Selection | None) -> None:
        """A selection is painted into the rows."""
        self._strips.clear()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text."""
        return selection.extract("\n".join(self.rows)), "\n"

    def render_line(self, y: int) -> Strip:
        """One row, painted once."""
        width = self.size.width
        strip = self._strips.get(y)
        if strip is None or strip.cell_length != width:
            strip = self._strips[y] = self._paint(y, width)
        return strip

    def _paint(self, y: int, width: int) -> Strip:
        if y >= len(self._rows):
            return Strip.blank(width, self.visual_style.rich_style)
        row = self._rows[y]
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            start, end = span
            style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            row = row.stylize(style, start, None if end == -1 else end)
        strips = Visual.to_strips(
            self, row, width, 1, self.visual_style, apply_selection=False, pad=True
        )
        return strips[0].apply_offsets(0, y)
