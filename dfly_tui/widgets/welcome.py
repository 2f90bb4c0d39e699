"""The empty chat: what this is, and prompts one key away."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from dfly_tui.state.checking import first_run_words
from dfly_tui.state.examples import Example, examples
from dfly_tui.state.models import memory_size, on_mac
from dfly_tui.text import content, line

_TINY = "The embedded pair is tiny and can do little else."


class Offer(Static):
    """One example prompt."""

    DEFAULT_CSS = """
    Offer {
        height: 1; padding: 0 1; color: $foreground 80%;
        &:hover { background: $foreground 8%; }
        &.chosen { color: $primary; text-style: bold; }
    }
    """

    def __init__(self, example: Example) -> None:
        super().__init__(line(example.title))
        self.example = example

    def on_click(self, event: events.Click) -> None:
        """A click sends the prompt."""
        event.stop()
        self.post_message(Welcome.Picked(self.example.prompt))


class Welcome(Vertical):
    """Shown while a chat has no turns."""

    DEFAULT_CSS = """
    Welcome {
        height: 1fr; align: center middle; padding: 0 2;
        & > Static { width: 100%; max-width: 60; height: auto; }
        & > #name { text-style: bold; color: $primary; }
        & > #about { margin: 0 0 1 0; color: $foreground 70%; }
        & > #bigger { margin: 1 0 0 0; color: $foreground 65%; }
        & > #how { margin: 1 0 0 0; color: $foreground 65%; }
        & > Offer { height: 1; }
    }
    """

    @dataclass
    class Picked(Message):
        """An example was clicked."""

        prompt: str

    def __init__(self) -> None:
        super().__init__(id="welcome")
        self._offers = [Offer(example) for example in examples()]
        self._at = -1

    def compose(self) -> ComposeResult:
        """Name, one sentence, the prompts, how to use them."""
        yield Static("dfly", id="name")
        yield Static(
            "A drafter guesses ahead, the target checks. The answer is the target's own.",
            id="about",
        )
        yield from self._offers
        yield Static("Tab for an example, Enter to send", id="how")
        words = first_run_words(memory_size(), on_mac())
        words += " F7 brings it here." if words.endswith("fits.") else ""
        yield Static(content(f"{_TINY} {words}"), id="bigger")

    def show_bigger(self, embedded: bool) -> None:
        """Whether to say that the pair is small, and speak of a bigger one."""
        self.query_one("#bigger").display = embedded

    def offers(self, text: str) -> bool:
        """Whether this is one of the examples."""
        return any(offer.example.prompt == text for offer in self._offers)

    def next_example(self) -> str:
        """The next example's prompt, marked in the list."""
        self._at = (self._at + 1) % len(self._offers)
        for at, offer in enumerate(self._offers):
            offer.set_class(at == self._at, "chosen")
        return self._offers[self._at].example.prompt
