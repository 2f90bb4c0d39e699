"""Tables of styled text, fitted to a width."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content


def table_lines(rows: Sequence[Sequence[Content]], width: int) -> list[Content]:
    """The rows with aligned columns; the first is the head; cells wrap where they must."""
    columns = max(len(row) for row in rows)
    widths = _fit([_widest(rows, at) for at in range(columns)], width - 2 * (columns - 1))
    lines: list[Content] = []
    for number, row in enumerate(rows):
        cells = [
            (row[at] if at < len(row) else Content("")).wrap(widths[at]) for at in range(columns)
        ]
        for y in range(max(len(cell) for cell in cells)):
            parts = [
                _padded(cell[y] if y < len(cell) else Content(""), widths[at])
                for at, cell in enumerate(cells)
            ]
            body = Content("  ").join(parts)
            lines.append(body.stylize_before("bold") if number == 0 else body)
        if number == 0:
            rule = "  ".join("─" * w for w in widths)
            lines.append(Content(rule).stylize("$foreground 40%"))
    return lines


def _widest(rows: Sequence[Sequence[Content]], at: int) -> int:
    return max((row[at].cell_length for row in rows if at < len(row)), default=1) or 1


def _fit(wanted: list[int], room: int) -> list[int]:
    widths = list(wanted)
    while sum(widths) > room and max(widths) > 4:
        widths[widths.index(max(widths))] -= 1
    return widths


def _padded(cell: Content, width: int) -> Content:
    return cell.extend_right(max(width - cell.cell_length, 0))
