"""The benchmark's rows as a table with the columns there is room for, and a line about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Vertical
from textual.widgets import DataTable, Static

from dfly_core.records.visible import one_line
from dfly_tui.state.reports import (
    BAR_WORDS,
    CATEGORY_SHORT,
    CATEGORY_WORDS,
    HEADS,
    MIDDLE,
    WIDE,
    Report,
    Row,
    categories,
    cells,
    columns,
    compared,
    compared_categories,
    diagnosis,
    doubts,
)
from dfly_tui.text import cell, content

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp


class RowsTable(Vertical):
    """Shows rows, and beside an earlier report how they changed."""

    app: DflyApp

    DEFAULT_CSS = """
    RowsTable {
        height: 1fr; min-height: 5; margin: 0 1;
        & > DataTable {
            height: 1fr; background: $background; scrollbar-size-vertical: 1;
            scrollbar-size-horizontal: 1;
        }
        & > Static { height: auto; padding: 0 1; color: $foreground 60%; }
        & > Static.-none { display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []
        self._before: Report | None = None
        self._whole = False
        self._columns: tuple[int, ...] = ()

    def compose(self) -> ComposeResult:
        """The table, the line."""
        yield DataTable[Text](cursor_type="row", header_height=2)
        yield Static()

    def on_mount(self) -> None:
        """Colours of cells are made once: a new theme makes them again."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self._paint())

    def on_resize(self, event: events.Resize) -> None:
        """Other columns may have room now."""
        if columns(self.size.width) != self._columns:
            self._paint()

    def show(self, rows: list[Row], before: Report | None = None, whole: bool = True) -> None:
        """These rows; `whole` adds their medians by category."""
        self._rows, self._before, self._whole = list(rows), before, whole
        self._paint()

    def add(self, row: Row) -> None:
        """One more row of a run."""
        self._rows.append(row)
        self._add(row)

    def _paint(self) -> None:
        table = self.query_one(DataTable)
        at = table.cursor_row
        self._columns = columns(self.size.width)
        table.clear(columns=True)
        heads = list(HEADS)
        if self._before and self.size.width < WIDE:
            # There the change stands in the place of parity.
            heads[-1] = f"rate vs\n{self._before.path.stem}"
        table.add_columns(*(heads[number] for number in self._columns))
        for row in self._rows:
            self._add(row)
        if self._whole:
            before = self._before.rows if self._before else []
            changes = compared_categories(self._rows, before) if before else []
            for number, shown in enumerate(categories(self._rows)):
                if changes:
                    self._beside(shown, changes[number])
                self._put(shown, ["italic"] * len(HEADS))
        table.move_cursor(row=at)
        self._tell()

    def _add(self, row: Row) -> None:
        shown, why = cells(row), diagnosis(row)
        wide = self.size.width >= WIDE
        if self.size.width < MIDDLE:
            shown[0] = one_line(shown[0], 10)
        if why:
            shown[-1] = why if wide else "withheld"
        change = compared([row], self._before.rows if self._before else [])
        self._beside(shown, change.get(str(row.get("id"))))
        parity = self._colour("error") if why else ""
        self._put(shown, ["", "", "bold", "bold", self._colour("success"), "", "", parity])

    def _beside(self, shown: list[str], ratio: float | None) -> None:
        """How a row, or a category, changed: behind its parity, or in its place."""
        if self._before is None or ratio is None:
            return
        if self.size.width >= WIDE:
            shown[-1] += f" · {ratio:.2f}x of {self._before.path.stem}"
        else:
            # What was compared has parity: where there is little room that need not be said.
            shown[-1] = f"{ratio:.2f}x"

    def _put(self, shown: list[str], styles: list[str | Style]) -> None:
        self.query_one(DataTable).add_row(*(cell(shown[n], styles[n]) for n in self._columns))

    def _colour(self, name: str) -> Style:
        return Style(color=Color.parse(self.app.theme_variables[name]).rich_color)

    @on(DataTable.RowHighlighted)
    def _tell(self) -> None:
        at = self.query_one(DataTable).cursor_row
        row = self._rows[at] if 0 <= at < len(self._rows) else None
        words = BAR_WORDS if 4 in self._columns else ""
        if row is not None and (why := diagnosis(row) or doubts(row)):
            words = f"{row.get('id')}{'?' * bool(doubts(row))} {why}"
        elif not words and any(map(diagnosis, self._rows)):
            words = "A withheld row says here why."
        elif any(map(doubts, self._rows)):
            words += f"{' ' * bool(words)}A row with ? says here why it is doubtful."
        legend = self._whole and len(self._rows) > 1
        if legend and not (row is not None and (diagnosis(row) or doubts(row))):
            told = CATEGORY_WORDS if self.size.width >= MIDDLE else CATEGORY_SHORT
            words += f"{' ' * bool(words)}{told}"
        if self._before:
            words += (
                f"{' · ' * bool(words)}Compared: DFly rate over that of {self._before.path.stem}"
            )
        below = self.query_one(Static)
        below.update(content(words))
        below.set_class(not (words and self._rows), "-none")
