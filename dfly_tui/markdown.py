"""Markdown -> lines of styled text, block by block, so that a growing answer costs its last block.

Our own renderer rather than Textual's Markdown widget: that one mounts a widget a block, and
layout over thousands of widgets makes keys wait while a long answer streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token as Node
from textual.content import Content

from dfly_tui.code import highlighted
from dfly_tui.table import table_lines

BLANK = Content("")


@dataclass(frozen=True)
class Line:
    """One line before wrapping: `head` leads its first row, `rest` the others."""

    body: Content
    head: Content = BLANK
    rest: Content = BLANK
    code: bool = False

    def rows(self, width: int) -> list[Content]:
        """The line cut to rows of `width` cells."""
        room = max(width - self.head.cell_length, 4)
        cut = self.body.fold(room) if self.code else self.body.wrap(room)
        if self.code:
            cut = [row.extend_right(max(room - row.cell_length, 0)) for row in cut]
            cut = [row.stylize_before("on $foreground 6%") for row in cut]
        leads = [self.head] + [self.rest] * (len(cut) - 1)
        return [lead + row for lead, row in zip(leads, cut, strict=True)]


@dataclass(frozen=True)
class Block:
    """A top-level block: the source line it starts at, and its lines or table."""

    start: int
    lines: tuple[Line, ...]
    table: tuple[tuple[Content, ...], ...] = ()

    def rows(self, width: int) -> list[Content]:
        """The block cut to rows of `width` cells."""
        if self.table:
            return table_lines(self.table, width)
        return [row for line in self.lines for row in line.rows(width)]


def parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough; HTML is text like any other."""
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def blocks(text: str, parse: MarkdownIt) -> list[Block]:
    """The top-level blocks of sanitised `text`."""
    found = []
    nodes = parse.parse(text)
    for group in _top_level(nodes):
        start = group[0].map[0] if group[0].map else 0
        if group[0].type == "table_open":
            found.append(Block(start, (), _cells(group)))
        else:
            found.append(Block(start, tuple(_Walk().lines(group))))
    return found


def _top_level(nodes: list[Node]) -> Iterator[list[Node]]:
    group: list[Node] = []
    for node in nodes:
        group.append(node)
        if node.level == 0 and node.nesting <= 0:
            yield group
            group = []


def _cells(group: list[Node]) -> tuple[tuple[Content, ...], ...]:
    rows: list[list[Content]] = []
    for node in group:
        if node.type == "tr_open":
            rows.append([])
        elif node.type == "inline":
            rows[-1].append(inline(node))
    return tuple(tuple(row) for row in rows)


@dataclass
class _Walk:
    """Walks the nodes of one block and keeps the prefixes of quotes and lists."""

    prefix: list[Content] = field(default_factory=list)
    counters: list[int | None] = field(default_factory=list)
    bullet: Content | None = None
    tight: bool = True
    lead: str = ""

    def lines(self, group: list[Node]) -> Iterator[Line]:
        said = False
        for node in group:
            kind = node.type
            if kind in ("bullet_list_open", "ordered_list_open"):
                ordered = kind == "ordered_list_open"
                self.counters.append(int(node.attrs.get("start", 1)) if ordered else None)
            elif kind in ("bullet_list_close", "ordered_list_close"):
                self.counters.pop()
            elif kind == "list_item_open":
                self._open_item()
            elif kind in ("list_item_close", "blockquote_close"):
                self.prefix.pop()
            elif kind == "blockquote_open":
                self.prefix.append(Content("▎ ").stylize("$secondary"))
            elif kind == "heading_open":
                self.lead = "bold $primary" if node.tag in ("h1", "h2") else "bold"
            elif kind == "heading_close":
                self.lead = ""
            elif kind == "paragraph_open" and said and not node.hidden:
                yield Line(BLANK, self._rest(), self._rest())
            elif kind == "inline":
                said = True
                yield from self._text(node)
            elif kind in ("fence", "code_block"):
                said = True
                yield from self._code(node)
            elif kind == "hr":
                yield Line(Content("─" * 24).stylize("$foreground 40%"))
            elif kind in ("html_block", "table_open"):
                yield Line(Content(node.content.rstrip("\n")))

    def _open_item(self) -> None:
        number = self.counters[-1]
        mark = "• " if number is None else f"{number}. "
        if number is not None:
            self.counters[-1] = number + 1
        self.bullet = self._rest() + Content(mark).stylize("$primary")
        self.prefix.append(Content(" " * len(mark)))

    def _rest(self) -> Content:
        return Content("").join(self.prefix)

    def _head(self) -> Content:
        head, self.bullet = self.bullet or self._rest(), None
        return head

    def _text(self, node: Node) -> Iterator[Line]:
        for body in inline(node).split("\n", allow_blank=True):
            shown = body.stylize_before(self.lead) if self.lead else body
            yield Line(shown, self._head(), self._rest())

    def _code(self, node: Node) -> Iterator[Line]:
        language = node.info.split()[0] if node.info.strip() else ""
        body = highlighted(node.content.rstrip("\n"), language)
        edge = Content(" ").stylize("on $foreground 6%")
        for row in body.split("\n", allow_blank=True):
            yield Line(row, self._head() + edge, self._rest() + edge, code=True)


_STYLES = {"strong": "bold", "em": "italic", "s": "strike", "link": "underline"}


def inline(node: Node) -> Content:
    """The styled text of an inline node; a link shows where it leads."""
    parts: list[Content] = []
    open_styles: list[str] = []
    links: list[tuple[str, int]] = []
    for child in node.children or ():
        name = child.type.removesuffix("_open").removesuffix("_close")
        if child.type in ("softbreak", "hardbreak"):
            parts.append(Content("\n"))
        elif child.type == "code_inline":
            parts.append(Content(child.content).stylize("$accent"))
        elif child.type == "image":
            parts.append(Content(f"[{child.content}]({child.attrs.get('src', '')})"))
        elif child.nesting == 1:
            open_styles.append(_STYLES.get(name, ""))
            if name == "link":
                links.append((str(child.attrs.get("href", "")), len(parts)))
        elif child.nesting == -1:
            open_styles.pop()
            if name == "link":
                target, since = links.pop()
                if "".join(part.plain for part in parts[since:]) != target:
                    parts.append(Content(f" ({target})").stylize("$foreground 60%"))
        else:
            style = " ".join(filter(None, open_styles))
            shown = Content(child.content)
            parts.append(shown.stylize(style) if style else shown)
    return Content("").join(parts)
