"""Keys in their turn, however fast they come: each is met after what the one before it did."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from textual import events
from textual.app import App

if TYPE_CHECKING:
    from dfly_tui.screens.chat import ChatScreen

_LONGEST = 1000  # turns of the loop that a key waits for a page that never comes to rest


class KeysInTurn(App[int]):
    """Textual hands a key to what has the focus when the key comes in.

    By then the key before it may not have been met yet: a Tab that will move the focus, an Enter
    that will close a list, a page that opens and has no focus so far. Typed fast, or while the
    screen is busy, text would land in the wrong field, or nowhere. So keys wait here while that
    can be; text after text goes straight on, since text moves nothing.
    """

    chat_screen: ChatScreen

    def __init__(self) -> None:
        super().__init__()
        self._early: deque[events.Key | events.Paste] = deque()
        self._moved = True  # whether the last key could move the focus; at first the page does
        self._calm = 0  # turns of the app's own queue since the page came to rest
        self._turns = 0

    async def on_event(self, event: events.Event) -> None:
        """Let a key wait behind the keys that wait already, and while things may still move."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._early or self._must_wait(event):
            self._early.append(event)
            if len(self._early) == 1:
                self._wait()
        else:
            await self._meet(event)

    def _must_wait(self, event: events.Event) -> bool:
        if not self.screen.is_mounted:
            return True
        if _is_text(event) and not self._moved:
            return False
        return not self._at_rest or self.message_queue_size > 0

    @property
    def _at_rest(self) -> bool:
        """Whether what the last key was given to has done with it, and all that it went on to."""
        at = self.focused or self.screen
        way = (node for node in at.ancestors_with_self if node is not self)
        return self.screen.is_mounted and not any(pump.message_queue_size for pump in way)

    def _wait(self) -> None:
        self._calm = self._turns = 0
        self.call_later(self._look_again)

    async def _look_again(self) -> None:
        """Meet the keys that wait: once the page is at rest, and what it asked of the app done."""
        await asyncio.sleep(0)  # the page's turn
        self._calm = self._calm + 1 if self._at_rest else 0
        self._turns += self.screen.is_mounted
        if self._calm < 2 and self._turns < _LONGEST:
            self.call_later(self._look_again)
            return
        await self._meet(self._early.popleft())
        while self._early and not self._moved and _is_text(self._early[0]):
            await self._meet(self._early.popleft())
        if self._early:
            self._wait()

    async def _meet(self, event: events.Key | events.Paste) -> None:
        self._moved = not _is_text(event)
        if not self._moved and self.screen is self.chat_screen:
            self.chat_screen.text_comes()
        await super().on_event(event)


def _is_text(event: events.Event) -> bool:
    return isinstance(event, events.Paste) or (isinstance(event, events.Key) and event.is_printable)
