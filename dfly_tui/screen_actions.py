"""The keys that open a screen, as actions of the app; each screen is imported when first asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

from dfly_core.records.commands import Load
from dfly_tui.chat_actions import ChatActions

if TYPE_CHECKING:
    from dfly_tui.state.panel import PanelState


class ScreenActions(ChatActions):
    """Mixed into the app."""

    panel: PanelState
    race_waits = False  # whether A/B begins when the answer ends

    def load(self, load: Load) -> None:
        """Load another pair; the app knows how."""
        raise NotImplementedError

    def action_panel(self) -> None:
        """Show or hide the live panel."""
        self.chat_screen.toggle_panel()

    def action_help(self) -> None:
        """Keys and commands."""
        from dfly_tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

    def action_replay(self, at: int | None = None) -> None:
        """Look at one step after another."""
        from dfly_tui.screens.replay import ReplayScreen

        steps = self.panel.steps
        if self.may("replay"):
            self.push_screen(ReplayScreen(steps, len(steps) - 1 if at is None else at))

    def action_tokens(self) -> None:
        """The last answer by origin."""
        from dfly_tui.screens.tokens import TokensScreen

        answer = self.talk.chat.last("assistant")
        if self.may("tokens") and answer is not None:
            self.push_screen(TokensScreen(answer.runs))

    def action_race(self) -> None:
        """Both decoders on the last message, at once or when its answer has ended."""
        from dfly_tui.screens.race import RaceScreen

        question = self.talk.chat.last("user")
        if not self.may("race") or question is None:
            return
        if self.desk.busy:
            self.race_waits = True
            self.say_line("A/B begins when this answer has ended")
            return
        messages = self.talk.chat.messages(upto=question.number + 1)
        self.push_screen(RaceScreen(messages, self.options))

    def answered(self) -> None:
        """An answer ended; what waited for that begins, unless the user stopped it."""
        waited, self.race_waits = self.race_waits, False
        turns = self.talk.chat.turns
        if waited and turns and turns[-1].end in ("stop", "length", "context"):
            self.call_later(self.run_action, "app.race")

    def action_theme(self, name: str = "") -> None:
        """Choose colours, or take those."""
        if not name:
            self.action_change_theme()
        elif name in self.available_themes:
            self.theme = name
        else:
            names = ", ".join(sorted(self.available_themes))
            self.chat_screen.trouble(f"There is no theme {name}. There are: {names}")

    def action_elsewhere(self, key: str) -> None:
        """A key of the chat on another page."""
        runs = self.desk.busy in ("benchmark", "conversion", "check")
        back = f"stops the {self.desk.busy}, then goes back" if runs else "goes back"
        self.say_line(f"{self.get_key_display(Binding(key, ''))} works in the chat: Esc {back}")

    def action_models(self) -> None:
        """Choose target and drafter."""
        from dfly_tui.screens.models import ModelsScreen

        def chosen(load: Load | None) -> None:
            if load is not None and self._free():
                self.load(load)

        self.push_screen(ModelsScreen(), chosen)

    def action_settings(self) -> None:
        """Change what is kept."""
        from dfly_tui.screens.settings import SettingsScreen

        self.push_screen(SettingsScreen())

    def action_convert(self) -> None:
        """Convert a drafter checkpoint."""
        from dfly_tui.screens.convert import ConvertScreen

        self.push_screen(ConvertScreen())

    def action_bench(self) -> None:
        """Measure parity and speed."""
        from dfly_tui.screens.bench import BenchScreen

        self.push_screen(BenchScreen())
