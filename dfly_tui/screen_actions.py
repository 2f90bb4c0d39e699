"""The keys that open a screen, as actions of the app; each screen is imported when first asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dfly_core.records.commands import Load
from dfly_tui.chat_actions import ChatActions
from dfly_tui.state.conversation import Run

if TYPE_CHECKING:
    from dfly_tui.state.panel import PanelState


class ScreenActions(ChatActions):
    """Mixed into the app."""

    panel: PanelState

    def load(self, load: Load) -> None:
        """Load another pair; the app knows how."""
        raise NotImplementedError

    def action_panel(self) -> None:
        """Show or hide the live panel."""
        self.chat_screen.toggle_panel()

    def action_help(self) -> None:
        """Keys and commands."""
        from dfly_tui.screens.help import HelpScreen

        self.push_screen(HelpScreen())

    def action_replay(self, at: int | None = None) -> None:
        """Look at one step after another."""
        from dfly_tui.screens.replay import ReplayScreen

        steps = self.panel.steps
        if steps:
            self.push_screen(ReplayScreen(steps, len(steps) - 1 if at is None else at))
        else:
            self.say_line("There are no steps yet: ask something first")

    def action_tokens(self) -> None:
        """The last answer by origin."""
        from dfly_tui.screens.tokens import TokensScreen

        answer = self.talk.chat.last("assistant")
        runs: list[Run] = answer.runs if answer else []
        if runs:
            self.push_screen(TokensScreen(runs))
        else:
            self.say_line("There is no answer whose tokens are known")

    def action_race(self) -> None:
        """Both decoders on the last message."""
        from dfly_tui.screens.race import RaceScreen

        question = self.talk.chat.last("user")
        if question is None:
            self.say_line("Ask something first: A/B repeats your last message")
        elif self.panel.pair is None or self.panel.pair.draft is None:
            self.say_line("No drafter is loaded: there is nothing to compare")
        elif self._free():
            messages = self.talk.chat.messages(upto=question.number + 1)
            self.push_screen(RaceScreen(messages, self.options))

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
