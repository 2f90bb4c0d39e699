"""The app: owns the engine's process, the open chat and the settings; ticks; leaves cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from dfly_core.records.commands import GenerateOptions, Load
from dfly_core.records.events import Event, Failed, Loaded, Progress
from dfly_tui.desk import Desk
from dfly_tui.engine import Engine, Gone
from dfly_tui.screens.chat import ChatScreen
from dfly_tui.state.conversation import Conversation
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


class DflyApp(App[int]):
    """Chat over the engine that `engine` runs in a process of its own."""

    TITLE = "dfly"
    ENABLE_COMMAND_PALETTE = True
    CSS = "ToastRack { margin: 0 2 5 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", id="app.quit", priority=True),
        Binding("ctrl+n", "new_chat", "New", id="app.new"),
        Binding("ctrl+r", "again", "Again", id="app.again"),
    ]

    def __init__(self, engine: Engine, start: Start) -> None:
        super().__init__()
        self.start = start
        self.settings, self._settings_fault = load_settings(self._settings_path)
        self.desk = Desk(engine)
        self.panel = PanelState()
        self.chat_screen = ChatScreen(self.panel)
        store = Store(start.data / "chats")
        self.talk = Talk(self.desk, store, self.panel, self.chat_screen)
        self.chat_screen.talk = self.talk
        self._waiting = start.prompt
        self._load = start.load or Load(
            self.settings.model,
            self.settings.draft,
            self.settings.no_draft,
            self.settings.verify if self.settings.verify in ("fast", "auto") else "exact",  # type: ignore[arg-type]
        )
        self._doing = ""
        self._tick_due = 0.0
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = (
            self.settings.theme if self.settings.theme in self.available_themes else "dfly-dark"
        )
        if self.settings.reduced_motion:
            self.animation_level = "none"

    @property
    def _settings_path(self) -> Path:
        return self.start.data / "settings.json"

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        return self.chat_screen

    def on_mount(self) -> None:
        """Be ready to be killed politely."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Textual leaves the terminal raw when it is killed.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(number, self.leave, 128 + number)

    def begin(self) -> None:
        """The chat is on screen: start the engine if it is not running yet, load, tick."""
        if self.start.resume is not None:
            self.open_chat(self.start.resume)
        if self._settings_fault:
            self.chat_screen.trouble(self._settings_fault)
        if self.desk.engine.pid is None:
            self.desk.start()
        self._load_pair()
        self._plan_tick(_TICK)

    # The engine.

    @property
    def pair_words(self) -> str:
        """The pair, and what the engine does when it is not ready."""
        if self.desk.gone:
            return "engine ended"
        pair = self.panel.pair
        if pair is None or self._doing:
            return self._doing or "starting the engine"
        if pair.embedded:
            return "embedded pair" if pair.draft else "embedded target alone"
        name = Path(pair.model).name
        return f"{name} + {Path(pair.draft).name}" if pair.draft else f"{name}, alone"

    def _load_pair(self) -> None:
        if self.desk.gone:
            self._say_gone(self.desk.gone)
        elif self.desk.ask("load", self._load, self):
            self._doing = "loading"
        self.chat_screen.show_head()

    def hear(self, events: list[Event]) -> None:
        """Events of loading."""
        for event in events:
            if isinstance(event, Progress):
                self._doing = f"loading {event.item}" if event.item else "loading"
            elif isinstance(event, Loaded):
                self._doing = ""
                self.panel.pair, self.panel.verdict = event.pair, event.verdict
                self._remember_pair(event)
                self._send_waiting()
            elif isinstance(event, Failed):
                self._doing = "no pair loaded"
                words = f"{event.what}: {event.remedy}" if event.remedy else event.what
                self.chat_screen.trouble(words)
        self.chat_screen.show_head()
        self.chat_screen.dirty()

    def lost(self, gone: Gone) -> None:
        """The engine died while loading; the tick says so."""

    def _remember_pair(self, loaded: Loaded) -> None:
        pair = loaded.pair
        chosen = (None, None) if pair.embedded else (self._load.model, self._load.draft)
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

    @property
    def options(self) -> GenerateOptions:
        """How answers are to be made."""
        chosen = self.settings
        return GenerateOptions(
            max_tokens=chosen.max_tokens, width=chosen.width, temperature=chosen.temperature
        )

    def say(self, text: str) -> bool:
        """Send a message, or keep it until the pair is loaded; False if it was not taken."""
        if self.desk.gone:
            self._say_gone(self.desk.gone)
            return False
        if self.desk.busy == "load":
            self.notify("The pair is loading: the message is sent when it is ready", markup=False)
            self._waiting = text
            return True
        if self.panel.pair is None:
            self.chat_screen.trouble("No pair is loaded: choose one with F6")
            return False
        if self.desk.busy:
            self.notify(f"One thing at a time: the {self.desk.busy} still runs", markup=False)
            return False
        return self.talk.ask(text, self.options)

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, ""
        if waiting:
            self.talk.ask(waiting, self.options)

    def action_again(self) -> None:
        """Answer the last question again; after a crash, start the engine again."""
        if self.desk.gone:
            self.desk.start()
            self.chat_screen.notice.clear()
            self.panel.pair = None
            self._load_pair()
        elif self.desk.busy:
            self.notify(f"One thing at a time: the {self.desk.busy} still runs", markup=False)
        else:
            self.talk.again(self.options)

    def action_new_chat(self) -> None:
        """Begin another conversation."""
        if self.talk.answering:
            self.notify("The answer still runs: Esc stops it", markup=False)
            return
        self.talk.open(Conversation(system=self.settings.system))
        self.chat_screen.composer.focus()

    def open_chat(self, number: int) -> None:
        """Open a conversation from disk."""
        try:
            self.talk.open(self.talk.store.load(number))
        except OSError as error:
            self.chat_screen.trouble(f"Chat {number} cannot be opened: {error.strerror or error}")

    def save_settings(self) -> None:
        """Keep the settings, or say why not."""
        try:
            save_settings(self._settings_path, self.settings)
        except OSError as error:
            reason = error.strerror or str(error)
            self.notify(f"Settings could not be saved: {reason}", severity="warning", markup=False)

    async def action_quit(self) -> None:
        """Leave: keep what there is, end the engine."""
        self.leave(0)

    def leave(self, code: int) -> None:
        """Leave with that exit code; the terminal is put back by Textual's normal way out."""
        self.talk.close()
        self.exit(code, return_code=code)
