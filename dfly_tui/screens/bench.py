"""The benchmark tab: options, rows as they come, earlier reports, comparison, export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast, get_args

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import DataTable, Input, Label, OptionList, Select, Static
from textual.widgets.option_list import Option

from dfly_core.records.commands import Bench, Load
from dfly_core.records.events import Benchmarked, Cancelled, Event, Failed, Progress, Rowed
from dfly_core.records.loaded import VerifyMode
from dfly_core.records.report import NOTHING_KEPT
from dfly_tui.engine import Gone
from dfly_tui.screens.dialogs import LOW, TINY
from dfly_tui.state.export import export, free_name
from dfly_tui.state.models import find_models, load_words, model_roots, pairs
from dfly_tui.state.reports import (
    MIDDLE,
    Report,
    Row,
    incomparable,
    next_path,
    read_report,
    read_reports,
    summary,
)
from dfly_tui.text import cell, content, line
from dfly_tui.widgets.keys import Keys
from dfly_tui.widgets.line_input import LineInput
from dfly_tui.widgets.progress_line import ProgressLine
from dfly_tui.widgets.rows_table import RowsTable

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp


class BenchScreen(Screen[None]):
    """Chat waits while this runs: one device, one job."""

    app: DflyApp

    AUTO_FOCUS = "#trials"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "start", "Run", id="bench.start"),
        Binding("ctrl+e", "export", "Export Markdown", id="bench.export", priority=True),
        Binding("ctrl+k", "compare", "Compare", id="bench.compare", priority=True),
        Binding("ctrl+s", "cannot('start')", show=False),
        Binding("ctrl+e", "cannot('export')", show=False, priority=True),
        Binding("ctrl+k", "cannot('compare')", show=False, priority=True),
        Binding("escape", "leave", "Stop or back", id="bench.back"),
    ]
    DEFAULT_CSS = """
    BenchScreen {
        & > #bench-head {
            height: 1; padding: 0 2; background: $foreground 6%; text-style: bold;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        & #choices, & #options { height: 1; padding: 0 2; margin: 1 0 0 0; }
        & #choices Label, & #options Label { color: $foreground 60%; padding: 0 1 0 0; }
        & #choices Select { width: 1fr; }
        & #choices #verify { width: 11; }
        & #choices SelectCurrent { background: $foreground 8%; }
        & #choices Select:focus > SelectCurrent { background: $primary 20%; }
        & #options Input {
            border: none; height: 1; width: 8; padding: 0 1; margin: 0 3 0 0;
            background: $foreground 8%;
        }
        & #options #prompts { width: 1fr; margin: 0; }
        & #options Input:focus { border: none; background: $primary 20%; }
        &.-narrow #options {
            layout: grid; grid-size: 4 2; grid-columns: 8 10 8 1fr; grid-rows: 1; height: 2;
        }
        &.-narrow #options #prompts { column-span: 3; width: 100%; }
        &.-low #choices, &.-low #options, &.-low #bench-words { margin: 0; }
        &.-low #earlier { max-height: 3; }
        &.-empty RowsTable, &.-form #earlier { display: none; }
        &.-rows > #bench-head, &.-rows #choices, &.-rows #options, &.-rows #earlier,
        &.-rows RowsTable > Static { display: none; }
        &.-rows RowsTable { min-height: 1; margin: 0; }
        &.-rows DataTable { scrollbar-size-horizontal: 0; }
        & ProgressLine { margin: 1 2 0 2; }
        &.-low ProgressLine { margin: 0 2; }
        & #bench-words { height: auto; padding: 0 2; margin: 1 0; }
        &.-rows #bench-words {
            height: 1; margin: 0; text-wrap: nowrap; text-overflow: ellipsis;
        }
        & #earlier { height: auto; max-height: 8; padding: 0 2; }
        & #earlier.-none { display: none; }
        & #earlier > Static { color: $foreground 60%; height: 1; }
        & #earlier > OptionList {
            height: auto; max-height: 6; border: none; background: $background; padding: 0;
        }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []
        self._reports: list[Report] = []
        self._shown: Report | None = None
        self._pairs: list[Load] = []
        self._foreign = False  # whether the engine is left with another pair than the chat's
        self._busy = False

    def compose(self) -> ComposeResult:
        """What is measured, and how, in two lines; then the table, then earlier reports."""
        self._pairs = self._find_pairs()
        modes: list[tuple[Text, VerifyMode]] = [(Text(m), m) for m in get_args(VerifyMode)]
        yield Static("Benchmark", id="bench-head")
        with Horizontal(id="choices"):
            yield Label("pair")
            names = [(cell(load_words(load)), at) for at, load in enumerate(self._pairs)]
            yield Select[int](names, allow_blank=False, compact=True, id="pair")
            yield Label("  verify")
            yield Select[VerifyMode](
                modes, allow_blank=False, value=self.app.loaded.verify, compact=True, id="verify"
            )
        with Horizontal(id="options"):
            yield Label("trials")
            yield Input("3", id="trials", type="integer")
            yield Label("tokens")
            yield Input("128", id="tokens", type="integer")
            yield Label("prompts")
            yield LineInput(placeholder="empty: our 24; or a file, one a line", id="prompts")
        yield ProgressLine()
        yield Static(
            "Each prompt is decoded with and without the drafter in turn. A row is published "
            "only if both give the same tokens in every trial.",
            id="bench-words",
        )
        yield RowsTable()
        with Vertical(id="earlier"):
            yield Static("Reports: Enter shows one, ctrl+k compares with it")
            yield OptionList(markup=False, id="reports")
        yield Keys()

    def on_resize(self) -> None:
        """Fewer columns take the prompts' line apart, fewer rows the air."""
        self._fit()
        self._show_list()

    def _fit(self) -> None:
        self.set_class(self.app.size.width < MIDDLE, "-narrow")
        self.set_class(self.app.size.height < LOW, "-low")
        tiny, shown = self.app.size.height < TINY, self._busy or bool(self._rows)
        # Where there is room for one of the two only: the form until there are rows.
        self.set_class(not shown, "-empty")
        self.set_class(tiny and not shown, "-form")
        self.set_class(tiny and shown, "-rows")
        table = self.query_one(DataTable)
        table.header_height = 1 if tiny else 2
        if tiny and shown and not table.has_focus:
            table.focus()  # what had the keys is hidden

    def on_mount(self) -> None:
        """An empty table; what was measured before."""
        self._list_reports()

    def _find_pairs(self) -> list[Load]:
        """What is loaded, the embedded pair, and what F6 lists: each with a drafter."""
        here = find_models(model_roots(self.app.start.data))
        listed = [Load(str(t.path), str(d.path)) for t, d in pairs(here)]
        mine = self.app.loaded
        if mine.no_draft:  # nothing to compare; another drafter for that target comes first
            listed.sort(key=lambda load: load.model != mine.model)
            found = [*listed, Load()] if mine.model else [Load(), *listed]
        else:
            found = [Load(mine.model, mine.draft), Load(), *listed]
        return list(dict.fromkeys(found))

    @property
    def _chosen(self) -> Load:
        at = self.query_one("#pair", Select).value
        mode = self.query_one("#verify", Select).value
        return replace(self._pairs[cast(int, at)], verify=cast(VerifyMode, mode))

    @property
    def _folder(self) -> Path:
        return self.app.start.data / "reports"

    def _list_reports(self) -> None:
        self._reports = read_reports(self._folder)
        self._show_list()

    def _show_list(self) -> None:
        """Each report on one line of the width there is."""
        options = self.query_one("#reports", OptionList)
        at, room = options.highlighted, max(self.app.size.width - 6, 10)
        options.clear_options()
        options.add_options(
            [Option(line(f"{r.path.stem} · {r.words}", limit=room)) for r in self._reports]
        )
        options.highlighted = at
        self.query_one("#earlier").set_class(not self._reports, "-none")

    def action_start(self) -> None:
        """Run it."""
        try:
            trials, tokens = (
                int(self.query_one(f"#{n}", Input).value) for n in ("trials", "tokens")
            )
            if trials < 1 or tokens < 1:
                raise ValueError
        except ValueError:
            self._say("Trials and tokens are numbers from 1 on", "$error")
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        load = self._chosen
        command = Bench(
            output=str(next_path(self._folder)),
            model=load.model,
            draft=load.draft,
            prompts=self.query_one("#prompts", Input).value.strip() or None,
            trials=trials,
            max_tokens=tokens,
            verify=load.verify,
        )
        if not self.app.desk.ask("benchmark", command, self):
            self._say(self.app.desk.busy_words, "$error")
            return
        self._busy, self._rows, self._shown = True, [], None
        self._fit()
        self._foreign = load != self.app.loaded
        self.query_one(RowsTable).show([], whole=False)
        self._say("Chat waits until this is done; Esc stops it and keeps the finished rows.", "")

    def hear(self, events: list[Event]) -> None:
        """Rows as they come."""
        if not self.is_attached:
            return
        progress = self.query_one(ProgressLine)
        for event in events:
            if isinstance(event, Progress):
                trial = event.unit == "trials" and event.item
                progress.show(replace(event, item=f"prompt {event.item}") if trial else event)
                continue
            if isinstance(event, Rowed):
                self._rows.append(event.row)
                self.query_one(RowsTable).add(event.row)
                self._say(summary(self._rows), "")
                continue
            self._busy = False
            progress.hide()
            if isinstance(event, Benchmarked):
                self._ended(event)
            elif isinstance(event, Failed):
                self._say(f"{event.what}: {event.remedy}" if event.remedy else event.what, "$error")
            elif isinstance(event, Cancelled):
                self._say("Stopped", "")
            if self._foreign:
                self._foreign = False
                self.app.loading.restore()
        self.refresh_bindings()

    def _ended(self, event: Benchmarked) -> None:
        self._list_reports()
        if event.path is None:
            self._say(NOTHING_KEPT, "")
            return
        left = f", {event.left} not run" if event.left else ""
        self._say(f"{summary(self._rows)}{left}. Report: {event.path}", "")
        self._shown = read_report(Path(event.path))
        self.query_one(RowsTable).show(self._rows)

    def lost(self, gone: Gone) -> None:
        """The engine died; finished rows are in the report."""
        self._busy = False
        if self.is_attached:
            self._say(f"The engine ended ({gone.words}); finished rows are kept", "$error")

    @on(OptionList.OptionSelected, "#reports")
    def _show_report(self, event: OptionList.OptionSelected) -> None:
        if self._busy:
            self.action_cannot("show")
            return
        report = self._reports[event.option_index]
        self._rows, self._shown = list(report.rows), report
        self.query_one(RowsTable).show(self._rows)
        self._say(f"{report.path.stem}: {report.words}", "")

    def action_compare(self) -> None:
        """Put the chosen report beside the rows shown, or the one before them; or say why not."""
        mine = self._shown.path if self._shown else None
        at = self.query_one("#reports", OptionList).highlighted
        others = [report.path for report in self._reports]
        if at is None or others[at] == mine:
            at = others.index(mine) + 1 if mine in others else 0
        name = mine.stem if mine else "these rows"
        if at >= len(self._reports):
            self._say(f"There is no report before {name} to compare it with", "")
            return
        before = self._reports[at]
        if why := incomparable(self._rows, before.rows):
            self._say(f"{name} and {before.path.stem} have no prompt {why}", "")
            return
        self.query_one(RowsTable).show(self._rows, before)

    def action_export(self) -> None:
        """Write the rows shown as Markdown beside the reports."""
        from dfly_tui.screens.dialogs import AskLine

        report = self._shown
        if report is None:
            self._say("There is no report to export yet", "")
            return
        page = report.page()

        def fault(name: str) -> str:
            return export(page, name, self._folder) if name else ""

        def told(name: str | None) -> None:
            if name:
                self._say(f"Exported to {name}", "")

        default = free_name(report.path.with_suffix(".md"))
        self.app.push_screen(AskLine("Export as Markdown to", str(default), fault=fault), told)

    def action_cannot(self, action: str) -> None:
        """A key that can do nothing now."""
        none = "There are no rows yet: ctrl+s measures, Enter on an earlier report shows it"
        running = "The benchmark still runs; Esc stops it and keeps the finished rows"
        self.app.say_line(running if self._busy or action == "start" else none)

    def _say(self, words: str, style: str) -> None:
        self._fit()
        self.query_one("#bench-words", Static).update(content(words, style))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only the keys that do something now."""
        if action in ("export", "compare"):
            return bool(self._rows) and not self._busy
        return not self._busy if action == "start" else True

    def action_leave(self) -> None:
        """Stop what runs; else go back."""
        if self._busy:
            self.app.desk.cancel()
        else:
            self.dismiss(None)
