"""Which part of the vocabulary is enough to draft from; pure, judged on every committed token.

Ids are ranked by how likely they are to come (`dfly_core.engine.ranking`); a part is the first
n of them. A draft can only lose by it where the token that comes is outside; and that is
known for each token that came, without asking the full head.
"""

from __future__ import annotations

from collections.abc import Sequence

# Below, a reading of the whole head costs hardly more than the operations that pick a part
# (CPU, float32: 1 MB 1.4 to 2 times, 2 MB 2.5 to 3 times, 8 MB 5 times as long as an eighth).
SMALLEST_BYTES = 2_000_000
SHARES = (24, 16, 12, 10, 8, 7, 6, 5, 4.5, 4, 3.5, 3, 2.5, 2)  # the best V/24, V/16... V/2 ids
# What the parts came to on real text in Qwen's vocabulary (`tests.tools.head_share`); in one a
# third as large it is 1/4.
TYPICAL_SHARE = 1 / 7
ALIGN = 64  # MLX's fastest one-row kernels want a multiple of 8 rows (Metal)
MISSES_ALLOWED = 0.01  # of tokens; cost 0 to 4 % of mean accepted length on real text (K 8)
# Before anything was seen, V/n is taken to miss n / 400 of the tokens, as it does on real text.
PRIOR_RATE, PRIOR_TOKENS = 1 / 400, 50.0
DECAY = 0.995  # per token; about the last 200 count


class Coverage:
    """Counts, for each candidate part, how often the token that came was outside of it.

    A `vocabulary` of 0 has no parts: the whole is always read.
    """

    def __init__(self, vocabulary: int) -> None:
        self.sizes = tuple(
            int(vocabulary / share) // ALIGN * ALIGN for share in SHARES if vocabulary
        )
        self._missed = [PRIOR_RATE * share * PRIOR_TOKENS for share in SHARES]
        self._tokens = PRIOR_TOKENS

    def judge(self, ranks: Sequence[int]) -> None:
        """Tokens of these ranks came, the ranks being those the draft was made with."""
        for rank in ranks:
            self._tokens = self._tokens * DECAY + 1
            for i, size in enumerate(self.sizes):
                self._missed[i] = self._missed[i] * DECAY + (rank >= size)

    def size(self) -> int | None:
        """The smallest part that loses few enough tokens; None means the whole vocabulary."""
        for size, missed in zip(self.sizes, self._missed, strict=True):
            if missed / self._tokens <= MISSES_ALLOWED:
                return size
        return None
