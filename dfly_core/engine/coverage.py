"""Which part of the vocabulary is enough to draft from; pure, judged on every committed token.

Ids of a byte-pair vocabulary are roughly in order of frequency, so the first n of them, with
those the context has shown, hold nearly every token. A draft can only lose by it where the
token that comes is outside; and that is known for each token that came, without asking the
full head.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHARES = (8, 6, 5, 4, 3, 2)  # the first V/8, V/6... V/2 ids
ALIGN = 64  # MLX's fastest one-row kernels want a multiple of 8 rows (Metal)
MISSES_ALLOWED = 0.012  # of tokens; costs at most 3 % of mean accepted length at K 8
PRIOR_MISSES, PRIOR_TOKENS = 0.3, 50.0
DECAY = 0.995  # per token; about the last 200 count
MOST_EXTRA = 4096


class Coverage:
    """Counts, for each candidate part, how often the token that came was outside of it.

    A `vocabulary` of 0 has no parts: the whole is always read.
    """

    def __init__(self, vocabulary: int, specials: Iterable[int]) -> None:
        self.sizes = tuple(vocabulary // share // ALIGN * ALIGN for share in SHARES if vocabulary)
        self._missed = [PRIOR_MISSES] * len(self.sizes)
        self._tokens = PRIOR_TOKENS
        self._extra = dict.fromkeys(
            i for i in specials if self.sizes and self.sizes[0] <= i < vocabulary
        )

    @property
    def extra(self) -> list[int]:
        """Ids beyond the smallest part that the context has shown, oldest first."""
        return list(self._extra)

    def read(self, tokens: Sequence[int]) -> bool:
        """Judge the parts by tokens that came, then add these; whether `extra` grew."""
        if not self.sizes:
            return False
        grew = False
        for token in tokens:
            self._tokens = self._tokens * DECAY + 1
            known = token in self._extra
            for i, size in enumerate(self.sizes):
                outside = token >= size and not known
                self._missed[i] = self._missed[i] * DECAY + outside
            if token >= self.sizes[0] and not known:
                self._extra[token] = None
                grew = True
        while len(self._extra) > MOST_EXTRA:
            del self._extra[next(iter(self._extra))]
        return grew

    def size(self) -> int | None:
        """The smallest part that loses few enough tokens; None means the whole vocabulary."""
        for size, missed in zip(self.sizes, self._missed, strict=True):
            if missed / self._tokens <= MISSES_ALLOWED:
                return size
        return None
