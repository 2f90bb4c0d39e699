"""What the correction takes from a token, by its id: looked up, or worked out each time."""

from __future__ import annotations

import mlx.core as mx
from mlx.utils import tree_reduce

from dfly_core.model.drafter import Drafter
from dfly_core.model.target import Target

# A table of all ids is kept where it takes no more than this share of the drafter's own bytes:
# small vocabularies. It spares each step of the chain an embedding, a norm and a product, 13
# operations (a tenth of a draft of the embedded pair on the CPU). At Qwen3-8B's sizes it would
# take as much memory as the drafter.
SHARE = 0.5
ROWS = 1024  # ids worked out at once


class Told:
    """Ids (R,) -> `HiddenCorrection.told` of their embeddings, (R, 2C)."""

    def __init__(self, drafter: Drafter, target: Target) -> None:
        config = drafter.config
        self._correction, self._target = drafter.hidden_correction, target
        self._table: mx.array | None = None
        vocabulary, width = config.vocab_size, 2 * config.hidden_correction_intermediate_size
        room = SHARE * tree_reduce(lambda n, a: n + a.nbytes, drafter.parameters(), 0)
        if vocabulary * width * target.dtype.size <= room:
            parts = [
                self._work_out(mx.arange(first, min(first + ROWS, vocabulary)))
                for first in range(0, vocabulary, ROWS)
            ]
            self._table = mx.concatenate(parts)
            mx.eval(self._table)

    @property
    def looked_up(self) -> bool:
        """Whether there is a table."""
        return self._table is not None

    def __call__(self, ids: mx.array) -> mx.array:
        return self._work_out(ids) if self._table is None else self._table[ids]

    def _work_out(self, ids: mx.array) -> mx.array:
        return self._correction.told(self._target.embed(ids))
