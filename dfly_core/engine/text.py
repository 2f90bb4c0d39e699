"""Token ids -> text as they come, never half a character."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

Decode = Callable[[Sequence[int]], str]

BROKEN = "\ufffd"  # what a decoder puts where bytes are no character (yet)


class TextStream:
    """Incremental detokeniser: the joined pieces equal decode(all ids).

    A piece is handed out once the text so far ends in whole characters; until then it is
    held, so no U+FFFD appears that the final text lacks. Decoding starts at the piece before
    the last one, not at the beginning, so that the cost does not grow with the answer, and
    tokenizers that treat the first token of a text specially (leading spaces) stay right.

    `byte_ids` are those of sentencepiece's byte fallback. A run of them is decoded as a whole:
    one bad byte turns all of it into U+FFFD, characters that were complete before it too. So
    nothing of a run is handed out before it has ended.
    """

    def __init__(self, decode: Decode, byte_ids: Collection[int] = ()) -> None:
        self._decode = decode
        self._byte_ids = frozenset(byte_ids)
        self._window: list[int] = []  # ids of the last piece handed out, then those held
        self._shown = 0  # characters of the window's text already handed out
        self._known = 0  # ids of the window already handed out

    def push(self, token: int) -> str:
        """The text that `token` completes; may be empty."""
        self._window.append(token)
        if token in self._byte_ids:
            return ""
        text = self._decode(self._window)
        if text.endswith(BROKEN) or len(text) <= self._shown:
            return ""
        piece = text[self._shown :]
        self._window = self._window[self._known :]
        self._known = len(self._window)
        self._shown = len(self._decode(self._window))
        return piece

    def finish(self) -> str:
        """The text still held, as decode(all ids) ends with it."""
        piece = self._decode(self._window)[self._shown :]
        self._window, self._shown, self._known = [], 0, 0
        return piece


class Pieces:
    """The text of single ids for showing; remembers each id once it was asked for."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._known: dict[int, str] = {}

    def __getitem__(self, token: int) -> str:
        piece = self._known.get(token)
        if piece is None:
            piece = self._known[token] = self._decode([token])
        return piece
