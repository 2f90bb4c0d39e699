"""A/B: the same prompt with the drafter and without, side by side, with the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from dfly_core.records.commands import Diagnose, Generate, GenerateOptions, Message
from dfly_core.records.events import Diagnosed, Event, Failed, Generated, Stepped
from dfly_core.records.stats import Stats
from dfly_core.records.step import Finish, Step, Token
from dfly_tui.engine import Gone
from dfly_tui.screens.dialogs import LOW
from dfly_tui.state.panel import NO_REASON, Comparison, compare, was_off
from dfly_tui.text import content, line
from dfly_tui.widgets.keys import Keys
from dfly_tui.widgets.prose import Prose

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

ENDS: dict[Finish, str] = {  # "stop" alone reads as if somebody had stopped it
    "stop": "complete",
    "length": "cut at the longest answer allowed",
    "context": "cut at the context limit",
    "cancelled": "stopped",
}


@dataclass
class Lane:
    """One decoder's run; `off` is why it last decoded a step without a draft."""

    title: str
    drafts: bool = True
    stats: Stats = field(default_factory=Stats)
    tokens: list[Token] = field(default_factory=list)
    finish: Finish | None = None
    off: str = ""

    def add(self, step: Step) -> None:
        """One more step."""
        self.stats = self.stats.add(step)
        self.tokens += step.emitted
        if was_off(step):
            self.off = step.off or NO_REASON

    @property
    def head(self) -> str:
        """Who decodes; with the drafter it may have decoded no step."""
        never = self.drafts and self.off and not self.stats.cycles
        return f"{self.title}: drafting off" if never else self.title

    @property
    def words(self) -> str:
        """Tokens, rate and end; in how many steps drafting was off, and why."""
        stats, pace = self.stats, self.stats.tokens_per_second
        words = f"{stats.emitted} tokens" + (f" · {pace:.0f} tok/s" if pace else "")
        if self.finish:
            words += f" · {ENDS[self.finish]}"
        if self.drafts and self.off:
            off, cycles = stats.plain_steps, stats.cycles
            steps = f"{off} of {off + cycles} steps" if cycles else "all steps"
            words += f"\nDrafting off in {steps}: {self.off}"
        return words


class LaneView(Vertical):
    """A run on screen."""

    DEFAULT_CSS = """
    LaneView {
        width: 1fr; padding: 1 2;
        & > .head { height: auto; text-style: bold; }
        & > .rate { height: auto; max-height: 50%; color: $foreground 70%; margin: 0 0 1 0; }
        & > VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    }
    """

    def __init__(self, lane: Lane) -> None:
        super().__init__()
        self.lane = lane
        self.prose = Prose()

    def compose(self) -> ComposeResult:
        """Title, rate, text."""
        yield Static(content(self.lane.title), classes="head")
        yield Static("waiting", classes="rate")
        with VerticalScroll():
            yield self.prose

    def show(self, text: str) -> None:
        """New text and the rate so far."""
        self.prose.feed(text)
        if self.lane.finish:
            self.prose.settle()
        self.query_one(".head", Static).update(content(self.lane.head))
        self.query_one(".rate", Static).update(content(self.lane.words))


class RaceScreen(Screen[None]):
    """Runs the drafter's lane, then the target alone; one device cannot run both at once.

    Where they part, the engine is asked how near the target's choice was.
    """

    app: DflyApp

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", id="race.back")]
    DEFAULT_CSS = """
    RaceScreen {
        overflow: hidden;
        & > #race-head {
            height: 1; padding: 0 2; background: $foreground 6%; text-style: bold;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        & LaneView.second { border-left: vkey $foreground 15%; padding: 1 1 1 2; }
        & > #verdict { height: auto; min-height: 1; padding: 0 2; margin: 0 0 1 0; }
        &.-low LaneView, &.-low LaneView.second { padding: 0 1 0 2; }
        &.-low LaneView > .rate, &.-low > #verdict { margin: 0; }
    }
    """

    def __init__(self, messages: tuple[Message, ...], options: GenerateOptions) -> None:
        super().__init__()
        self._messages = messages
        # The likeliest tokens are the ones that tell of the engine, and not of a seed.
        self._greedy = " at temperature 0" if options.temperature else ""
        self._options = replace(options, temperature=0.0)
        self._lanes = [Lane("With the drafter"), Lane("The target alone", drafts=False)]
        self._views = [LaneView(lane) for lane in self._lanes]
        self._at = 0
        self._found: Comparison | None = None

    def compose(self) -> ComposeResult:
        """Both lanes and the verdict."""
        yield Static(f"A/B on your last message{self._greedy}", id="race-head")
        with Horizontal():
            yield self._views[0]
            yield self._views[1].add_class("second")
        yield Static("Each decoder answers in turn; they must give the same tokens.", id="verdict")
        yield Keys()

    def on_resize(self) -> None:
        """Where there are few rows the texts come before the air around them."""
        self.set_class(self.app.size.height < LOW, "-low")

    def on_mount(self) -> None:
        """Start the first lane."""
        self._run()

    def _run(self) -> None:
        options = replace(self._options, width=0) if self._at else self._options
        if not self.app.desk.ask("A/B", Generate(self._messages, options), self):
            self._say(self.app.desk.busy_words)

    def hear(self, events: list[Event]) -> None:
        """Steps of the lane that runs."""
        if self._found is not None:
            self._hear_gap(self._found, events[-1])
            return
        lane, text = self._lanes[self._at], ""
        for event in events:
            if isinstance(event, Stepped):
                lane.add(event.step)
                text += event.step.text
            elif isinstance(event, Generated):
                lane.stats, lane.finish = event.stats, event.finish
            elif isinstance(event, Failed):
                self._say(f"{event.what}: {event.remedy}" if event.remedy else event.what)
        if not self.is_attached:
            return
        self._views[self._at].show(text)
        if lane.finish and lane.finish != "cancelled" and self._at == 0:
            self._at = 1
            self._run()
        elif lane.finish and lane.finish != "cancelled":
            self._judge()

    def lost(self, gone: Gone) -> None:
        """The engine died."""
        self._say(f"The engine ended ({gone.words}): Esc leaves, ctrl+r starts it again")

    def _judge(self) -> None:
        first, second = self._lanes
        found = compare(first.tokens, second.tokens)
        self.app.panel.judge(found, first.stats, second.stats)
        self.app.chat_screen.dirty()
        self._show_verdict(found)
        if found.parted:
            before = tuple(token.id for token in second.tokens[: found.same])
            ask = Diagnose(self._messages, before, self._options.thinking)
            if self.app.desk.ask("A/B", ask, self):
                self._found = found

    def _hear_gap(self, found: Comparison, event: Event) -> None:
        if isinstance(event, Diagnosed):
            self.app.panel.near(event.gap)
            self.app.chat_screen.dirty()
            if self.is_attached:
                self._show_verdict(found, event)
        elif isinstance(event, Failed):
            self._say(f"The gap could not be told: {event.what}")

    def _show_verdict(self, found: Comparison, near: Diagnosed | None = None) -> None:
        fast, slow = (lane.stats for lane in self._lanes)
        self.query_one("#verdict", Static).update(verdict(found, fast, slow, near))

    def _say(self, words: str) -> None:
        if self.is_attached:
            self.query_one("#verdict", Static).update(content(words))

    def action_leave(self) -> None:
        """Stop what runs and go back."""
        if self.app.desk.busy == "A/B":
            self.app.desk.cancel()
        self.dismiss(None)


def verdict(found: Comparison, fast: Stats, slow: Stats, near: Diagnosed | None = None) -> Content:
    """The words under the lanes."""
    pace, (rate, alone) = "", (fast.tokens_per_second, slow.tokens_per_second)
    if not fast.cycles:
        pace = " Nothing was drafted: both did the same work, so there is no speed-up to tell."
    elif rate and alone:
        pace = f" {rate / alone:.2f}x: {rate:.0f} tok/s against {alone:.0f}."
    if not found.parted:
        return Content(f"= The same {found.same} tokens.{pace}").stylize("$success")
    left = repr(found.left.piece) if found.left else "the end"
    right = repr(found.right.piece) if found.right else "the end"
    words = f"≠ First difference at token {found.same}: {left} with the drafter, {right} alone."
    if near is not None:
        (best, second), (high, low) = (token.piece for token in near.tokens), near.logits
        words += (
            f" The target's two best there, {best!r} ({high:.6g}) and {second!r} ({low:.6g}), "
            f"lie {near.gap:.3g} apart."
        )
    return line(words + pace, "$error")
