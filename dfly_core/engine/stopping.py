"""Where an answer ends: stop ids, stop strings, token limits; pure, and told before a commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dfly_core.engine.text import TextStream
from dfly_core.records.step import Finish


@dataclass(frozen=True)
class Cut:
    """How many of the chosen tokens enter the answer, their texts, and why it ends if it does.

    `texts` holds one string per kept token; when nothing is kept but held text is released,
    it holds that one string.
    """

    kept: int
    texts: tuple[str, ...]
    finish: Finish | None


class StopRule:
    """Decides, block by block, what is kept. A stop id itself never enters the answer."""

    def __init__(
        self,
        text: TextStream,
        stop_ids: Collection[int],
        stop_strings: Sequence[str],
        max_tokens: int,
        room: int,
    ) -> None:
        self._text = text
        self._stop_ids = frozenset(stop_ids)
        self._strings = tuple(s for s in stop_strings if s)
        self.remaining = max(0, min(max_tokens, room))
        self._at_limit: Finish = "length" if max_tokens <= room else "context"
        self._held = ""
        self._stopped = False

    def cut(self, chosen: Sequence[int]) -> Cut:
        """Keep what comes before the first stop; later tokens of the block are dropped."""
        texts: list[str] = []
        for token in chosen:
            if self.remaining == 0:
                return self._end(texts, len(texts), self._at_limit)
            if token in self._stop_ids:
                return self._end(texts, len(texts), "stop")
            self.remaining -= 1
            texts.append(self._release(self._text.push(token)))
            if self._stopped:
                return Cut(len(texts), tuple(texts), "stop")
            if self.remaining == 0:
                return self._end(texts, len(texts), self._at_limit)
        return Cut(len(texts), tuple(texts), None)

    def close(self) -> str:
        """The text still held when the answer ends from outside (a cancel)."""
        if self._stopped:
            return ""
        piece = self._release(self._text.finish())
        held, self._held = ("" if self._stopped else self._held), ""
        self._stopped = True
        return piece + held

    def _end(self, texts: list[str], kept: int, finish: Finish) -> Cut:
        tail = self.close()
        if texts:
            texts[-1] += tail
        elif tail:
            texts.append(tail)
        return Cut(kept, tuple(texts), finish)

    def _release(self, piece: str) -> str:
        """The part of the text so far that no stop string can claim any more."""
        if not self._strings:
            return piece
        self._held += piece
        found = [at for s in self._strings if (at := self._held.find(s)) >= 0]
        if found:
            self._stopped = True
            out, self._held = self._held[: min(found)], ""
            return out
        keep = max(_overlap(self._held, s) for s in self._strings)
        out = self._held[: len(self._held) - keep]
        self._held = self._held[len(out) :]
        return out


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of `text` could begin `stop`."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if stop.startswith(text[-size:]):
            return size
    return 0
