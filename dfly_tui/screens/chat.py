"""The chat screen: head, conversation, composer, live panel."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Static

from dfly_core.records.events import Progress
from dfly_tui.commands import by_word, candidates, completed, slash
from dfly_tui.state.conversation import Turn
from dfly_tui.state.panel import PanelState
from dfly_tui.talk import Talk
from dfly_tui.text import line
from dfly_tui.widgets.composer import Composer
from dfly_tui.widgets.keys import Keys
from dfly_tui.widgets.notice import Notice
from dfly_tui.widgets.panel import Meter, Panel
from dfly_tui.widgets.step_strip import StepStrip
from dfly_tui.widgets.transcript import Transcript
from dfly_tui.widgets.welcome import Welcome

if TYPE_CHECKING:
    from dfly_tui.app import DflyApp

WIDE = 100  # columns from which the panel stands beside the chat
LOW = 12  # rows below which everything but chat and composer goes


class ChatScreen(Screen[None]):
    """Shows `Talk` and sends it what the user says."""

    app: DflyApp

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", id="chat.stop"),
        Binding("escape", "leave_edit", "Leave the edit", id="chat.leave_edit"),
        Binding("escape", "read", "Close the warning", id="chat.read"),
        Binding("escape", "stop_load", "Stop loading", id="chat.stop_load"),
        Binding("escape", "home", "To the composer", show=False),
        Binding("tab", "complete", "Complete", id="chat.complete", priority=True),
        Binding("tab", "example", "Example", id="chat.example", priority=True),
        # With priority: the composer's TextArea has pages of its own.
        Binding("pageup", "page(-1)", "Scroll up", False, id="chat.page_up", priority=True),
        Binding("pagedown", "page(1)", "Scroll down", False, id="chat.page_down", priority=True),
    ]

    DEFAULT_CSS = """
    ChatScreen {
        background: $background;
        & > #head { height: 1; padding: 0 2; background: $foreground 6%; }
        & > #head > #title {
            width: 1fr; height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis;
        }
        & > #head > #pair {
            width: auto; max-width: 70%; height: 1; color: $foreground 70%; padding: 0 0 0 2;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        & #talk { width: 1fr; layers: text notes; }
        & #below { height: auto; max-height: 3; padding: 0 2; color: $primary; display: none; }
        &.-low > #head, &.-low Meter, &.-low > Keys { display: none; }
        &.-low Welcome > #about, &.-low Welcome > #bigger { display: none; }
        &.-low Welcome > #how { margin: 0; }
        &.-low Composer { border: none; min-height: 1; max-height: 3; }
    }
    """

    def __init__(self, panel: PanelState) -> None:
        super().__init__()
        self.panel_state = panel
        self.transcript = Transcript()
        self.composer = Composer()
        self.panel = Panel()
        self.meter = Meter()
        self.welcome = Welcome()
        self.notice = Notice()
        self.talk: Talk
        self._dirty = True
        self._gain = ""
        self.editing: Turn | None = None
        self._below = ""
        self._head = ("", "")
        self._tab = (False, True)  # what the keys say of it: completes, takes an example

    def compose(self) -> ComposeResult:
        """Head, body with the panel beside it, composer, keys."""
        with Horizontal(id="head"):
            yield Static(id="title")
            yield Static(id="pair")
        with Horizontal(id="body"):
            with Vertical(id="talk"):
                yield self.welcome
                yield self.transcript
                yield Static(id="below")
                yield self.meter
                yield self.composer
                yield self.notice
            yield self.panel
        yield Keys()

    def on_mount(self) -> None:
        """The composer has the keys."""
        self.composer.focus()
        self.replaced()
        self.app.begin()

    # What `Talk` calls.

    def said(self) -> None:
        """Turns were added."""
        self._show_empty_or_not()
        self.show_head()
        self.transcript.said()
        self._dirty = True
        self.refresh_bindings()

    def replaced(self) -> None:
        """Another conversation, or one that lost turns."""
        self._show_empty_or_not()
        self.transcript.show(self.talk.chat)
        said = [turn.text for turn in self.talk.chat.turns if turn.who == "user"]
        self.composer.remember(said)
        self.show_head()
        self._dirty = True

    def grew(self, text: str) -> None:
        """The answer grew."""
        self.show_head()
        self.transcript.feed(text)
        self._dirty = True
        self._show_below()

    def settled(self) -> None:
        """The answer ended."""
        self.transcript.settle()
        said = [turn.text for turn in self.talk.chat.turns if turn.who == "user"]
        self.composer.remember(said)
        self._dirty = True
        self.show_head()
        self.refresh_bindings()
        self.app.answered()

    def progressed(self, progress: Progress) -> None:
        """The prompt is being read."""
        self.show_head(f"reading {progress.done:,} of {progress.total:,} {progress.unit}")

    def trouble(self, words: str) -> None:
        """Something the user has to know."""
        self.notice.say(words)
        self.refresh_bindings()

    def clear_notice(self) -> None:
        """Nothing is wrong any more."""
        self.notice.clear()
        self.refresh_bindings()

    # What the app calls.

    def tick(self) -> None:
        """Paint the panel if anything changed."""
        gain = self.panel_state.gain  # it ages while nothing else changes
        if (self._dirty or gain != self._gain) and self.is_attached:
            self._dirty, self._gain = False, gain
            self._make_room()
            self.panel.show(self.panel_state)
            self.meter.show(self.panel_state)

    def show_head(self, doing: str = "") -> None:
        """Title on the left; pair and what it does on the right."""
        if self.talk.answering and not self.panel_state.steps:
            doing = doing or "reading the prompt"
        head = (self.talk.chat.shown_title, doing or self.app.pair_words)
        if head != self._head:
            self._head = head
            for name, words in zip(("#title", "#pair"), head, strict=True):
                self.query_one(name, Static).update(line(words))

    def text_comes(self) -> None:
        """Whatever has the focus, text is for the composer."""
        if self.focused is not self.composer:
            self.set_focus(self.composer)

    def dirty(self) -> None:
        """The panel's state changed."""
        self._dirty = True

    # What the user does.

    @on(Composer.Sent)
    async def _send(self, event: Composer.Sent) -> None:
        command = slash(event.text)
        if command is not None:
            await self._run(*command)
        elif self.editing is not None:
            if self.app.say_instead(self.editing.number, event.text):
                self._leave_editing()
        elif self._say(event.text):
            self.composer.set_draft("")
            self.transcript.follow()

    async def _run(self, word: str, rest: str) -> None:
        known = by_word(word)
        if known is None:
            self.trouble(f"There is no command /{word}: /help lists them")
        elif why := known.why_not(self.app):
            self.trouble(f"/{word} can't be done now. {why}")
        elif rest and not known.takes:
            self.trouble(f"/{word} takes nothing behind it: send it alone")
        else:
            self.composer.set_draft("")
            self.clear_notice()
            # The words may hold quotes and brackets: the action gets them unparsed.
            act = getattr(self.app, f"action_{known.action}")
            done = act(rest) if rest else act()
            if isawaitable(done):
                await done

    @on(Composer.Empty)
    def _nothing_typed(self) -> None:
        self.app.say_line("Type a message first; / and ctrl+p list the commands")

    @on(Composer.Changed)
    def _typed(self, event: Composer.Changed) -> None:
        self._show_below()
        tab = (self._completable, self._replaceable)
        if tab != self._tab:
            self._tab = tab
            self.refresh_bindings()

    @property
    def _completable(self) -> bool:
        text = self.composer.text
        return text.startswith("/") and not set(text) & set(" \n")

    @property
    def _replaceable(self) -> bool:
        """Whether an example may take the draft's place: one of the user's own stays."""
        return self.composer.text == "" or self.welcome.offers(self.composer.text)

    def edit(self, question: Turn) -> None:
        """Take a message back into the composer."""
        self.editing = question
        self.composer.set_draft(question.text)
        self.composer.focus()
        self._show_below()
        self.refresh_bindings()

    def _leave_editing(self) -> None:
        self.editing = None
        self.composer.set_draft("")
        self._show_below()
        self.refresh_bindings()

    @on(Welcome.Picked)
    def _picked(self, event: Welcome.Picked) -> None:
        self._say(event.prompt)

    def _say(self, text: str) -> bool:
        self.clear_notice()
        return self.app.say(text)

    @on(Composer.Followed)
    def _follow(self) -> None:
        self.transcript.follow()
        self._show_below()

    @on(StepStrip.Chosen)
    def _replay(self, event: StepStrip.Chosen) -> None:
        self.app.action_replay(event.at)

    @on(Transcript.Moved)
    def _moved(self) -> None:
        self._show_below()

    def action_stop(self) -> None:
        """Stop the answer."""
        self.app.stop()

    def action_stop_load(self) -> None:
        """Stop the loading of a pair: the last thing Esc does, when all else is closed."""
        self.app.stop()

    def action_leave_edit(self) -> None:
        """Leave the message as it was."""
        self._leave_editing()

    def action_read(self) -> None:
        """The note is read; the composer has the keys again."""
        self.clear_notice()
        self.composer.focus()

    def action_home(self) -> None:
        """The composer has the keys again."""
        self.composer.focus()

    def action_complete(self) -> None:
        """Complete the slash command as far as only one way leads on."""
        self.composer.set_draft(completed(self.composer.text))

    def action_example(self) -> None:
        """Draft the next example."""
        self.composer.set_draft(self.welcome.next_example())

    def toggle_panel(self) -> None:
        """Show or hide the panel."""
        self.app.settings.panel = not self.app.settings.panel
        self.app.save_settings()
        self._arrange()
        self.app.clear_notifications()  # what was said of it no longer holds
        if self.app.settings.panel and not (self.panel.display or self.meter.display):
            few = self.size.height < LOW
            need = f"from {LOW} rows on" if few else "with the next answer"
            self.app.say_line(f"The panel is on; here it shows {need}")
        elif not self.app.settings.panel:
            self.app.say_line("The panel is off; F2 shows it again")

    def action_page(self, by: int) -> None:
        """Scroll the conversation while the composer keeps the keys."""
        if by < 0:
            self.transcript.action_page_up()
        else:
            self.transcript.action_page_down()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only the keys that do something now: none of them behind a box."""
        if not self.is_active:
            return False
        if action == "stop":
            return self.talk.answering
        if action == "stop_load":
            return self.app.loading.stoppable
        if action == "leave_edit":
            return self.editing is not None and not self.talk.answering
        if action == "page":
            return not self.panel.strip.has_focus
        if action == "read":
            return bool(self.notice.words)
        if action == "complete":
            return self.composer.has_focus and self._completable
        if action == "example":
            # Else Tab is Textual's own: the next widget.
            empty = not self.talk.chat.turns and self._replaceable
            return empty and self.composer.has_focus
        return True

    def on_resize(self) -> None:
        """Give the panel the room there is."""
        self._arrange()

    def _arrange(self) -> None:
        self._make_room()
        self._dirty = True
        self.call_after_refresh(self.tick)

    def _make_room(self) -> None:
        wide, low = self.size.width >= WIDE, self.size.height < LOW
        shown = self.app.settings.panel
        self.set_class(low, "-low")
        self.panel.display = wide and not low and shown
        begun = self.panel_state.asked
        self.meter.display = begun and not self.panel.display and not low and shown

    def _show_empty_or_not(self) -> None:
        empty = not self.talk.chat.turns
        self.welcome.display = empty
        self.transcript.display = not empty

    def _show_below(self) -> None:
        """The line above the composer: what is hidden, being edited, or could be typed."""
        words = ""
        if self.editing is not None:
            words = "Editing: Enter sends the new text, Esc keeps the old"
        elif self.composer.text.startswith("/") and "\n" not in self.composer.text:
            words = candidates(self.composer.text, self.app)
        elif self.talk.answering and not self.transcript.following:
            words = "New text below: End follows it again"
        below = self.query_one("#below", Static)
        if words != self._below:
            self._below = words
            below.update(line(words))
            below.display = bool(words)
