"""What both models have read: the ids, both caches, one length."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
from mlx_lm.models.cache import KVCache

from dfly_core.engine.head import DraftHead
from dfly_core.model.pair import Pair

AUDIT_FIRST, AUDIT_EVERY = 64, 512  # tokens: soon, then 1 to 3 % of the time
PENDING_ROWS = 64  # tap rows that may wait; while parked they are projected in batches


class Context:
    """A conversation's state, whole between steps.

    The target cache holds `ids[:length]`; draft rows and pending tap rows together are
    `length` too. `len(ids) - length` is 1 while an anchor waits to be read, else 0.
    """

    def __init__(self, pair: Pair, draft: bool = True) -> None:
        self.pair = pair
        self.drafter = pair.drafter if draft else None
        specials = sorted(pair.stop_ids)
        read = pair.info.vocab_size if self.drafter else 0
        self.head = DraftHead(pair.target, read, specials)
        self.clear()

    def clear(self) -> None:
        """Forget all that was read; after a fault within a step nothing else is sure."""
        self.ids: list[int] = []
        self.length = 0
        self.target_cache: list[KVCache] = self.pair.target.make_cache()
        self.draft_cache: list[KVCache] = self.drafter.make_cache() if self.drafter else []
        self._pending: list[list[mx.array]] = []
        self.pending_rows = 0

    @property
    def draft_rows(self) -> int:
        """Context rows the drafter has read."""
        return self.draft_cache[0].offset if self.draft_cache else 0

    def common(self, ids: Sequence[int]) -> int:
        """The length of the longest prefix of `ids` that has been read.

        At least the last id is left to be read, since its logits are needed.
        """
        common = 0
        for mine, theirs in zip(self.ids[: self.length], ids[:-1], strict=False):
            if mine != theirs:
                break
            common += 1
        return common

    def reuse(self, ids: Sequence[int]) -> int:
        """Keep the longest common prefix with `ids`, drop the rest; returns its length."""
        common = self.common(ids)
        self.ids = self.ids[:common]
        self.length = common
        self.settle()
        self._cut_pending(max(0, common - self.draft_rows) if self.drafter else 0)
        return common

    def commit(
        self, tokens: Sequence[int], rows: int, taps: Sequence[mx.array], ahead: int = 0
    ) -> None:
        """Take over `rows` rows just run (of taps (1, >= rows, D) each) and append `tokens`.

        Rows run beyond those are dropped from the target cache, but for `ahead` of them.
        """
        self.length += rows
        self.ids.extend(tokens)
        self.head.read(tokens)
        self.settle(ahead)
        if self.drafter and rows:
            self.hold([tap[:, :rows] for tap in taps])
            if self.pending_rows >= PENDING_ROWS:
                self.read_pending()
                mx.async_eval([store.state[:2] for store in self.draft_cache])

    def hold(self, taps: Sequence[mx.array]) -> None:
        """Keep the tap rows (1, S, D) of positions just committed until the drafter reads."""
        self._pending.append(list(taps))
        self.pending_rows += taps[0].shape[1]

    def audit_due(self, tokens: int) -> bool:
        """Whether `tokens` more make a re-check due; never where exactness is not claimed.

        Counted over all contexts of a pair, so that short answers are not checked all the time.
        """
        verdict = self.pair.verdict
        if verdict is None or verdict.taken != "exact":
            return False
        pair = self.pair
        left = (AUDIT_FIRST if pair.until_audit is None else pair.until_audit) - tokens
        pair.until_audit = left if left > 0 else AUDIT_EVERY
        return left <= 0

    def settle(self, ahead: int = 0) -> None:
        """Trim both caches to the committed length (the target's and rows run ahead)."""
        for store in self.target_cache:
            store.trim(store.offset - self.length - ahead)
        for store in self.draft_cache:
            store.trim(max(0, store.offset - self.length))

    def read_pending(self) -> None:
        """Let the drafter read the tap rows that wait. Lazy."""
        taps = self.take_pending()
        if self.drafter and taps:
            self.drafter.read(taps, self.draft_cache)

    def take_pending(self) -> list[mx.array]:
        """The T tap rows (1, S, D) that wait, for the drafter to read at once; [] if none do."""
        parts = [list(rows) for rows in zip(*self._pending, strict=True)]
        self._cut_pending(0)
        return [part[0] if len(part) == 1 else mx.concatenate(part, axis=1) for part in parts]

    def _cut_pending(self, rows: int) -> None:
        kept: list[list[mx.array]] = []
        left = rows
        for taps in self._pending:
            if left <= 0:
                break
            size = min(left, taps[0].shape[1])
            kept.append([tap[:, :size] for tap in taps])
            left -= size
        self._pending, self.pending_rows = kept, rows - max(0, left)

    def check(self) -> None:
        """Raise AssertionError unless the context is whole; for tests and the audit."""
        assert len(self.ids) - self.length in (0, 1), (len(self.ids), self.length)
        assert all(s.offset == self.length for s in self.target_cache)
        if self.drafter:
            assert all(s.offset == self.draft_rows for s in self.draft_cache)
            waiting = sum(taps[0].shape[1] for taps in self._pending)
            assert waiting == self.pending_rows
            assert self.draft_rows + waiting == self.length
