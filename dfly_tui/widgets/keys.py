"""The line of keys at the foot of a screen: as many as fit, the least needed left out first."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

# Actions, most needed first; what is not named here goes before them, from the right.
_NEEDED = (
    "leave", "stop", "leave_edit", "read", "stop_load", "start", "use", "help", "command_palette",
    "quit", "send", "complete", "example",
)  # fmt: skip


class Keys(Footer):
    """Textual's footer, fitted to the width instead of cut by it."""

    DEFAULT_CSS = "Keys { background: $background; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)
        self._fitted = 0
        self._shown: list[tuple[object, ...]] = []

    def compose(self) -> ComposeResult:
        """The keys that do something now and have room."""
        keys = [key for key in super().compose() if isinstance(key, FooterKey)]
        self._shown, self._fitted = self._wanted(), self.screen.size.width
        room = self._fitted - 2
        while keys and sum(map(_width, keys)) > room:
            keys.remove(max(enumerate(keys), key=lambda pair: (_rank(pair[1]), pair[0]))[1])
        yield from keys

    async def recompose(self) -> None:
        """Put other keys there; those that stay need not be made and styled anew."""
        if not self.is_attached:
            return  # the screen was left before this was its turn
        same = self._wanted() == self._shown and self.screen.size.width == self._fitted
        if not (same and self.children):
            await super().recompose()

    async def on_resize(self, event: events.Resize) -> None:
        """Fit them again."""
        if self._fitted:
            await self.recompose()

    def _wanted(self) -> list[tuple[object, ...]]:
        return [
            (binding, enabled, tooltip)
            for _, binding, enabled, tooltip in self.screen.active_bindings.values()
            if binding.show
        ]


def _rank(key: FooterKey) -> int:
    return _NEEDED.index(key.action) if key.action in _NEEDED else len(_NEEDED)


def _width(key: FooterKey) -> int:
    return len(key.key_display) + len(key.description) + 3
