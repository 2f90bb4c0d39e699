"""Choose a target and a drafter that fits it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dfly_core.records.commands import Load
from dfly_core.records.sizes import size_words
from dfly_tui.screens.dialogs import AskLine, Dialog
from dfly_tui.state.models import (
    Found,
    find_models,
    memory_size,
    misfit,
    model_roots,
    pair_words,
    read_model,
    too_large,
    typed_fault,
)
from dfly_tui.text import content, line

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

_DIM = "dim"  # no colour of its own: the row under the cursor has one


class ModelsScreen(Dialog[Load]):
    """Closes with what to load. Left the targets, right the drafters and whether they fit."""

    app: DflyApp

    DEFAULT_CSS = """
    ModelsScreen > .box { width: 110; }
    ModelsScreen Horizontal { height: 18; max-height: 50vh; }
    ModelsScreen.-tiny Horizontal { height: 1fr; max-height: 100%; }
    ModelsScreen .column { width: 1fr; }
    ModelsScreen #used { height: auto; margin: 0 0 1 0; }
    ModelsScreen.-low #used { margin: 0; }
    ModelsScreen .column > Static { color: $foreground 60%; height: 1; }
    ModelsScreen OptionList {
        height: 1fr; background: $surface; border: none; padding: 0;
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._targets: list[Found] = []
        self._drafters: list[Found] = []

    def compose(self) -> ComposeResult:
        """Two lists and what the choice means."""
        with Vertical(classes="box"):
            yield Static("Models on this machine", classes="title")
            yield Static(id="used")
            with Horizontal():
                with Vertical(classes="column"):
                    yield Static("Target")
                    yield OptionList(markup=False, id="targets")
                with Vertical(classes="column"):
                    yield Static("Drafter")
                    yield OptionList(markup=False, id="drafters")
            yield Static(id="words", classes="hint")
            yield Static("Enter on a target, then on a drafter; Esc leaves", classes="hint")

    def on_mount(self) -> None:
        """Look around."""
        found = find_models(model_roots(self.app.start.data))
        self._targets = [model for model in found if model.kind == "target"]
        self._drafters = [model for model in found if model.kind == "drafter"]
        pair = self.app.panel.pair
        used = f"In use: {pair_words(pair)}" if pair else "Nothing is loaded"
        self.query_one("#used", Static).update(content(used))
        self._fill_targets()
        self._start_at_pair()

    def _start_at_pair(self) -> None:
        """The cursor begins on the target in use."""
        at = [n for n, model in enumerate(self._targets, 1) if self._used(model)]
        self.query_one("#targets", OptionList).highlighted = at[0] if at else 0

    def _used(self, model: Found) -> bool:
        """Whether a model is of the pair that is loaded."""
        pair = self.app.panel.pair
        if pair is None or pair.embedded:
            return False
        names = [name for name in (pair.model, pair.draft) if name]
        folders = [Path(name).expanduser().resolve() for name in names]
        return model.path.resolve() in folders or model.name in names

    def _about(self, model: Found) -> str:
        return f"in use · {_about(model)}" if self._used(model) else _about(model)

    def _fill_targets(self) -> None:
        targets = self.query_one("#targets", OptionList)
        pair = self.app.panel.pair
        own = "in use · " if pair and pair.embedded else ""
        targets.clear_options()
        targets.add_options(
            [
                Option(_row("Embedded pair", f"{own}comes with this program")),
                *(Option(_row(model.name, self._about(model))) for model in self._targets),
                Option(_row("Another…", "a folder or a hub id")),
            ]
        )
        targets.highlighted = 0
        targets.focus()

    @property
    def _target(self) -> Found | None:
        at = self.query_one("#targets", OptionList).highlighted or 0
        return self._targets[at - 1] if 0 < at <= len(self._targets) else None

    @on(OptionList.OptionHighlighted, "#targets")
    def _highlighted(self) -> None:
        target = self._target
        drafters = self.query_one("#drafters", OptionList)
        drafters.clear_options()
        words = ""
        if target is not None:
            pair = self.app.panel.pair
            alone = "in use · " if self._used(target) and pair and not pair.draft else ""
            drafters.add_option(Option(_row("No drafter", f"{alone}the target alone")))
            for model in self._drafters:
                bad = misfit(target, model)
                drafters.add_option(
                    Option(_row(model.name, bad or self._about(model)), disabled=bool(bad))
                )
            drafters.add_option(Option(_row("Another…", "a folder or a hub id")))
            # The one in use, else the first that fits, else none.
            fits = [i for i, m in enumerate(self._drafters) if not misfit(target, m)]
            fits.sort(key=lambda i: not self._used(self._drafters[i]))
            drafters.highlighted = fits[0] + 1 if fits and not alone else 0
            words = too_large(target, memory_size())
        told = self.query_one("#words", Static)
        told.update(content(words))
        told.display = bool(words)

    @on(OptionList.OptionSelected, "#targets")
    def _target_chosen(self, event: OptionList.OptionSelected) -> None:
        if event.option_index == 0:
            self.dismiss(Load(verify=self.app.verify))
        elif self._target is None:
            ask = AskLine("Target: a folder or a hub id", fault=_fault_of("target"))
            self.app.push_screen(ask, self._typed_target)
        else:
            self.query_one("#drafters", OptionList).focus()

    def _typed_target(self, name: str | None) -> None:
        if name and name.strip():
            path = Path(name.strip()).expanduser()
            model = read_model(path) if path.is_dir() else None
            if model is not None and model.kind == "target":
                self._targets.append(model)
                self._fill_targets()
                self.query_one("#targets", OptionList).highlighted = len(self._targets)
            else:
                self._ask_drafter(name.strip())

    def _ask_drafter(self, target: str) -> None:
        def typed(name: str | None) -> None:
            if name is not None:
                self.dismiss(Load(target, name.strip() or None, not name.strip(), self.app.verify))

        hint = "Empty means none; Esc leaves"
        ask = AskLine("Drafter: a folder or a hub id", hint=hint, fault=_fault_of("drafter"))
        self.app.push_screen(ask, typed)

    @on(OptionList.OptionSelected, "#drafters")
    def _drafter_chosen(self, event: OptionList.OptionSelected) -> None:
        target = self._target
        if target is None:
            return
        at = event.option_index
        if at > len(self._drafters):
            self._ask_drafter(str(target.path))
        elif at == 0:
            self.dismiss(Load(str(target.path), None, True, self.app.verify))
        else:
            drafter = self._drafters[at - 1]
            self.dismiss(Load(str(target.path), str(drafter.path), False, self.app.verify))


def _fault_of(kind: str) -> Callable[[str], str]:
    return lambda name: typed_fault(name.strip(), kind) if name.strip() else ""


def _row(name: str, about: str) -> Content:
    return line(name) + Content("\n  ") + line(about).stylize(_DIM)


def _about(model: Found) -> str:
    bits = model.config.get("quantization")
    quantised = f"{bits.get('bits')} bit, " if isinstance(bits, dict) and bits.get("bits") else ""
    return f"{quantised}{size_words(model.size)}, {model.where}"
