"""The target's head as the draft reads it: all of it, or the part that is enough."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from dfly_core.engine.coverage import SMALLEST_BYTES, Coverage
from dfly_core.engine.ranking import Ranking
from dfly_core.engine.sampling import GREEDY, Chooser
from dfly_core.model.layout import by_columns
from dfly_core.model.target import Target

ORDER_EVERY = 16  # tokens between two orders of the ids; each copies the part's rows


class DraftHead:
    """Best ids of corrected rows, over a part of the head's rows when that is enough.

    The part is a copy of the rows of the likeliest ids, made again now and then. It changes
    proposals only, never the output. A `vocabulary` of 0 stands for no drafting at all.
    """

    def __init__(self, target: Target, vocabulary: int, specials: Sequence[int]) -> None:
        self._target = target
        self._module = target.head_module
        names = ("weight", "scales", "biases")
        self._whole = {name: self._module[name] for name in names if name in self._module}
        # A head with a bias is not worth a case of its own: it is read whole.
        in_parts = (
            vocabulary > 0
            and "bias" not in self._module
            and sum(part.nbytes for part in self._whole.values()) >= SMALLEST_BYTES
        )
        self.coverage = Coverage(vocabulary if in_parts else 0)
        self._ranking = Ranking(vocabulary, specials) if in_parts else None
        self._rank = mx.zeros((0,), dtype=mx.int32)
        self._ids = mx.zeros((0,), dtype=mx.uint32)
        self._part: dict[str, mx.array] = {}
        self._since = ORDER_EVERY
        self._surprised = False

    @property
    def size(self) -> int | None:
        """Rows of the head that a step of the next draft reads; None is all of them."""
        return None if self._surprised else self._ids.size or None

    @property
    def learns(self) -> bool:
        """Whether the target's distributions are of use; not where the whole head is read."""
        return self._ranking is not None

    def read(self, tokens: Sequence[int]) -> None:
        """These tokens were committed."""
        if self._ranking is not None:
            self._ranking.read(tokens)
            self._since += len(tokens)

    def saw(self, logits: mx.array) -> None:
        """The target's logits (R, V) for committed positions, the prompt's too."""
        if self._ranking is not None:
            self._ranking.saw(logits)

    def ranks(self, ids: mx.array) -> mx.array:
        """Ids (R,) -> their ranks (R,) int32 in the present draft's order; (0,) if all are read."""
        return self._rank[ids] if self._ranking is not None else self._rank

    def judge(self, ranks: Sequence[int]) -> None:
        """Tokens of these `ranks` came in the last cycle."""
        self.coverage.judge(ranks)
        # Rare tokens come together: after one the next draft reads the whole head.
        self._surprised = bool(ranks) and bool(self._part) and ranks[-1] >= self._ids.size

    def prepare(self) -> int:
        """Before a draft: a new order when it is time, or when the part is no longer enough.

        Returns how many rows of the head that copies, mostly none.
        """
        if self._ranking is None:
            return 0
        size, now = self.coverage.size(), self._ids.size
        grown = bool(self._part) and (size is None or size > now)
        if self._since < ORDER_EVERY and not grown:
            return 0
        self._since = 0
        order = self._ranking.order()
        places = mx.arange(order.size, dtype=mx.int32)
        self._rank = mx.zeros(order.shape, dtype=mx.int32)
        self._rank[order] = places
        # In order of id, so that at a tie the first one wins, as in the whole head.
        self._ids = mx.sort(order[: size or 0])
        rows = self._whole.items() if size else ()
        self._part = {name: whole[self._ids] for name, whole in rows}
        if self._part and "scales" not in self._part:  # packed weights are read as they lie
            self._part["weight"] = by_columns(self._part["weight"])
        return self._ids.size

    def best(self, rows: mx.array, chooser: Chooser = GREEDY, position: int = 0) -> mx.array:
        """Rows (R, D) -> the ids (R,) uint32 to propose from `position` on. Lazy."""
        if self.size is None:
            return chooser.choose(self._target.head(rows), position)
        return self._ids[chooser.choose(self._product(rows), position, self._ids)]

    def _product(self, rows: mx.array) -> mx.array:
        part = self._part
        if "scales" not in part:
            return rows @ part["weight"].T
        return mx.quantized_matmul(
            rows,
            part["weight"],
            part["scales"],
            part.get("biases"),
            transpose=True,
            group_size=self._module.group_size,
            bits=self._module.bits,
            mode=self._module.mode,
        )
