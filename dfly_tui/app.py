"""The app: owns the engine's process, the open chat and the settings; ticks; leaves cleanly."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import Theme

from dfly_core.records.commands import Load
from dfly_core.records.events import Costed, Loaded
from dfly_core.records.loaded import VerifyMode
from dfly_tui.commands import QUIET, applying, by_action
from dfly_tui.desk import Desk
from dfly_tui.engine import Engine, Gone
from dfly_tui.loading import Loading
from dfly_tui.own_keys import faults
from dfly_tui.pausing import catch, watch
from dfly_tui.screen_actions import ScreenActions
from dfly_tui.screens.chat import ChatScreen
from dfly_tui.state.panel import PanelState
from dfly_tui.state.settings import load_settings, save_settings
from dfly_tui.state.store import Store
from dfly_tui.talk import Talk
from dfly_tui.themes import DARK, LIGHT

_TICK = 0.1  # seconds between drains; slower when drains are dear
_SLOWEST = 0.5


@dataclass
class Start:
    """What the command line asked for."""

    data: Path
    load: Load | None = None
    prompt: str = ""
    resume: int | None = None
    debug: bool = False
    changes: dict[str, Any] = field(default_factory=dict)


class DflyApp(ScreenActions):
    """Chat over the engine that `engine` runs in a process of its own."""

    TITLE = "dfly"
    ENABLE_COMMAND_PALETTE = True
    CSS = """
    /* A short-lived line lies over the keys, which say nothing new while it is read. */
    ToastRack { margin: 0; }
    ChatScreen.-low ToastRack { margin: 0 0 1 0; }
    Toast { width: 100%; max-width: 100%; max-height: 2; margin: 0; padding: 0 1; }
    OptionList:focus { border: none; background-tint: $foreground 0%; }
    OptionList > .option-list--option-highlighted { background: $foreground 10%; }
    OptionList:focus > .option-list--option-highlighted {
        background: $primary 30%; color: $foreground; text-style: none;
    }
    /* Sixteen colours have no tints: there a tint is the full colour, and text on it is lost on
       one of the two grounds. What is chosen gets a text colour with its ground. */
    Notice:ansi, Input:ansi, Input:ansi:focus { background: ansi_default; color: ansi_default; }
    Input:ansi > .input--cursor, TextArea:ansi .text-area--cursor {
        background: ansi_default; color: ansi_default; text-style: reverse;
    }
    Input:ansi:focus { text-style: underline; }
    Input:ansi > .input--selection {
        background: ansi_default; color: ansi_default; text-style: reverse;
    }
    OptionList:ansi > .option-list--option-highlighted {
        background: ansi_bright_black; color: ansi_bright_white;
    }
    OptionList:ansi:focus > .option-list--option-highlighted, DataTable:ansi > .datatable--cursor {
        background: ansi_blue; color: ansi_bright_white; text-style: bold;
    }
    DataTable:ansi > .datatable--header {
        background: ansi_default; color: ansi_default; text-style: bold underline;
    }
    ToggleButton:ansi > .toggle--button, ToggleButton:ansi.-on > .toggle--button {
        background: ansi_default; color: ansi_default; text-style: bold;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", id="app.quit", priority=True),
        Binding("f1", "help", "Help", id="app.help"),
        Binding("ctrl+o", "chats", "Chats", id="app.chats"),
        Binding("ctrl+p", "command_palette", "Commands", id="app.commands", priority=True),
        *(
            # With priority: the composer's TextArea has ideas of its own about F6 and F7.
            Binding(key, action, label, show=False, id=f"app.{action}", priority=True)
            for key, action, label in QUIET
        ),
        # On the other pages, where the keys above don't reach.
        *(Binding(key, f"elsewhere('{key}')", show=False) for key, _, _ in QUIET),
        Binding("ctrl+o", "elsewhere('ctrl+o')", show=False),
    ]

    def __init__(self, engine: Engine, start: Start) -> None:
        super().__init__()
        self.start = start
        self.settings, self._settings_fault = load_settings(self.settings_path)
        self.panel = PanelState()
        self.desk = Desk(engine, self._costed)
        self.chat_screen = ChatScreen(self.panel)
        store = Store(start.data / "chats")
        self.talk = Talk(self.desk, store, self.panel, self.chat_screen)
        self.chat_screen.talk = self.talk
        self._waiting = start.prompt
        chosen = self.settings
        first = Load(chosen.model, chosen.draft, chosen.no_draft, self.verify)
        self.loading = Loading(self.desk, self.panel, self, start.load or first)
        self._tick_due = 0.0
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = (
            self.settings.theme if self.settings.theme in self.available_themes else "dfly-dark"
        )
        self.animation_level = "none" if self.settings.reduced_motion else "full"

    @property
    def settings_path(self) -> Path:
        return self.start.data / "settings.json"

    @property
    def keymap(self) -> dict[str, str]:
        """The user's own keys, by binding id."""
        return {name: str(keys) for name, keys in self.settings.keys.items()}

    @property
    def verify(self) -> VerifyMode:
        """How drafts are checked."""
        return self.settings.verify_mode

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        return self.chat_screen

    def on_mount(self) -> None:
        """Be ready to be killed politely, or stopped and continued."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Textual leaves the terminal raw when it is killed.
            catch(number, self.leave, 128 + number)
        watch(self)

    def on_unmount(self) -> None:
        """However the screen ends, other windows may have the chat."""
        self.talk.store.release()

    def begin(self) -> None:
        """The chat is on screen: start the engine if it is not running yet, load, tick."""
        if self.start.resume is not None:
            self.open_chat(self.start.resume)
        self.set_keymap(self.keymap)
        self.chat_screen.composer.bind_keys(self.keymap)
        self.theme_changed_signal.subscribe(self, self._keep_theme)
        nodes = (self.chat_screen.composer, self.chat_screen, self)
        wrong = [self._settings_fault, faults(self.keymap, (node._bindings for node in nodes))]
        if any(wrong):
            self.chat_screen.trouble(". ".join(filter(None, wrong)))
        if self.desk.engine.pid is None:
            self.desk.start()
        self._load_wanted()
        self._plan_tick(_TICK)
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        """The screen is there: import what the first answer needs, before a key waits for it."""
        import_module("dfly_tui.widgets.answer")

        # What was imported stays: without this, full collections walk it while keys wait.
        gc.freeze()

    def _keep_theme(self, theme: Theme) -> None:
        if theme.name != self.settings.theme:
            self.settings.theme = theme.name
            self.save_settings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that concern the chat act on the chat's own screen only."""
        quiet = {name for _, name, _ in QUIET}
        if action == "help":
            return not self.screen.is_modal
        if action in quiet or action in ("chats", "elsewhere"):
            return (self.screen is self.chat_screen) is (action != "elsewhere")
        return True

    # The engine.

    @property
    def pair_words(self) -> str:
        """The pair, and what the engine does when it is not ready."""
        return "engine ended" if self.desk.gone else self.loading.words

    @property
    def loaded(self) -> Load:
        """What was loaded last."""
        return self.loading.wanted

    def load(self, load: Load) -> None:
        """Load another pair; remembered once it is loaded."""
        if self.loading.begin(load):
            self.panel.clear()
            self.chat_screen.clear_notice()
        elif self.desk.gone:
            self._say_gone(self.desk.gone)

    def apply_settings(self) -> None:
        """Settings changed: what can change at once does."""
        self.animation_level = "none" if self.settings.reduced_motion else "full"
        if self.panel.pair and self.loaded.verify != self.verify and not self.desk.busy:
            self.load(replace(self.loaded, verify=self.verify))

    def _load_wanted(self) -> None:
        if not self.loading.begin(self.loaded) and self.desk.gone:
            self._say_gone(self.desk.gone)
        self.chat_screen.show_head()

    def may(self, action: str) -> bool:
        """Whether a command can be done now; says why not, in the table's words."""
        command = by_action(action)
        why = command.why_not(self) if command else ""
        if why:
            self.say_line(why)
        return not why

    def loading_changed(self) -> None:
        """The words for the head, or what Esc does, changed."""
        self.chat_screen.show_head()
        self.chat_screen.dirty()
        self.chat_screen.refresh_bindings()

    def loaded_pair(self, loaded: Loaded) -> None:
        """A pair is there: remember it, and send what waited for it."""
        self.chat_screen.welcome.show_bigger(loaded.pair.embedded)
        self._remember_pair(loaded)
        waiting, self._waiting = self._waiting, ""
        if waiting:
            self.talk.ask(waiting, self.options)

    def _costed(self, event: Costed) -> None:
        self.panel.costed(event)
        self.chat_screen.dirty()

    def load_failed(self, words: str, detail: str) -> None:
        """Say it; a message that waited for that pair is not sent to another."""
        shown = f"\n{detail}" if self.start.debug and detail else ""
        self.chat_screen.trouble(f"{words}{shown}")
        waiting, self._waiting = self._waiting, ""
        composer = self.chat_screen.composer
        if waiting and not composer.draft:
            composer.set_draft(waiting)

    def stop(self) -> None:
        """Stop what runs for the chat: the load, or the answer."""
        if self.loading.stoppable:
            self.loading.stop()
        else:
            self.talk.stop()

    def _remember_pair(self, loaded: Loaded) -> None:
        pair = loaded.pair
        chosen = (None, None) if pair.embedded else (self.loaded.model, self.loaded.draft)
        if (self.settings.model, self.settings.draft) != chosen:
            self.settings.model, self.settings.draft = chosen
            self.save_settings()

    def _say_gone(self, gone: Gone) -> None:
        why = self.desk.fault or f"The engine ended ({gone.words})"
        self.chat_screen.trouble(
            f"{why}. Your chat is saved. ctrl+r starts the engine again. "
            f"Log: {self.desk.engine.log}"
        )

    # The tick.

    def _plan_tick(self, delay: float) -> None:
        self._tick_due = time.perf_counter() + delay
        self.set_timer(delay, self._tick)

    def _tick(self) -> None:
        began = time.perf_counter()
        was_gone = self.desk.gone
        self.desk.drain()
        if self.desk.gone and not was_gone:
            self._say_gone(self.desk.gone)
            self.chat_screen.show_head()
        self.chat_screen.tick()
        late = max(began - self._tick_due, 0.0)
        base = 3 * _TICK if self.settings.reduced_motion else _TICK
        # Lateness is what layout and paint cost since the last tick.
        cost = time.perf_counter() - began + late
        self._plan_tick(min(max(base, 3 * cost), _SLOWEST))

    # What the user does.

    def say(self, text: str) -> bool:
        """Send a message, or keep it until the pair is loaded; False if it was not taken."""
        if self.desk.busy == "load":
            self.say_line("The pair is loading: the message is sent when it is ready")
            self._waiting = text
            return True
        return self._can_ask() and self.talk.ask(text, self.options)

    def say_instead(self, number: int, text: str) -> bool:
        """Put an edited message in the place of that turn; False if it was not taken."""
        return self._can_ask() and self.talk.edit(number, text, self.options)

    def _can_ask(self) -> bool:
        """Whether an answer can be asked for now; says why not."""
        if self.desk.gone:
            self._say_gone(self.desk.gone)
            return False
        if self.panel.pair is None and not self.desk.busy:
            self.chat_screen.trouble("No pair is loaded: choose one with F6")
            return False
        return self._free()

    def action_again(self) -> None:
        """Answer the last question again; after a crash, start the engine again."""
        if self.desk.gone:
            self.desk.start()
            self.chat_screen.clear_notice()
            self.panel.pair = None
            self._load_wanted()
        elif self.panel.pair is None and not self.desk.busy:
            self.load(self.loaded)
        elif self.may("again"):
            self.talk.again(self.options)

    def save_settings(self) -> None:
        """Keep the settings, or say why not."""
        try:
            kept = save_settings(self.settings_path, self.settings)
        except OSError as error:
            reason = error.strerror or str(error)
            self.say_line(f"Settings could not be saved: {reason}", serious=True)
        else:
            if kept is not None:
                self.say_line(f"Your broken settings are kept in {kept.name}", serious=True)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: what applies now, from the one table."""
        # Behind another page or a box nothing of the chat can be reached.
        anywhere = ("theme", "quit")
        for command in applying(self):
            if screen is not self.chat_screen and command.word not in anywhere:
                continue
            act = partial(self.run_action, command.action)
            yield SystemCommand(command.title, f"{command.help}  /{command.word}", act)

    async def action_quit(self) -> None:
        """Leave: keep what there is, end the engine."""
        self.leave(0)

    def leave(self, code: int) -> None:
        """Leave with that exit code; the terminal is put back by Textual's normal way out."""
        self.talk.close()
        self.exit(code, return_code=code)
