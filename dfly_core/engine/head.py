"""The target's head as the draft reads it: all of it, or the part that is enough."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from dfly_core.engine.coverage import Coverage
from dfly_core.engine.sampling import GREEDY, Chooser
from dfly_core.model.target import Target

PAD = 64  # extra rows are padded to a multiple, so that shapes rarely change
# Below, a reading of the whole head costs hardly more than the operations that pick a part
# (CPU, float32: 1 MB 1.4 to 2 times, 2 MB 2.5 to 3 times, 8 MB 5 times as long as an eighth).
SMALLEST_BYTES = 2_000_000


class DraftHead:
    """Best ids of corrected rows, over a part of the head's rows when that is enough.

    The part is a slice of the packed head (no copy) and the rows of the ids in
    `Coverage.extra`, gathered when they change. It changes proposals only, never the output.
    """

    def __init__(self, target: Target, vocabulary: int, specials: Sequence[int]) -> None:
        self._target = target
        self._module = target.head_module
        # A head with a bias is not worth a case of its own: it is read whole.
        bytes_read = sum(part.nbytes for part in self._parts().values())
        in_parts = "bias" not in self._module and bytes_read >= SMALLEST_BYTES
        self.coverage = Coverage(vocabulary if in_parts else 0, specials)
        self._extra_ids: mx.array | None = None
        self._extra_rows: dict[str, mx.array] = {}
        self._stale = True

    def read(self, tokens: Sequence[int]) -> None:
        """These tokens were committed."""
        self._stale |= self.coverage.read(tokens)

    def best(self, rows: mx.array, chooser: Chooser = GREEDY, position: int = 0) -> mx.array:
        """Rows (1, R, D) -> the ids (1, R) uint32 to propose from `position` on. Lazy."""
        size = self.coverage.size()
        if size is None:
            return chooser.choose(self._target.head(rows)[0], position)[None]
        extra = self._extra()
        logits = self._product(rows, {name: rows_[:size] for name, rows_ in self._parts().items()})
        if extra is None:
            return chooser.choose(logits[0], position, chooser.ids(size))[None]
        more = self._product(rows, self._extra_rows)
        both = mx.concatenate([logits, more], axis=-1)
        index = chooser.choose(both[0], position, chooser.ids(size, extra))[None]
        beyond = extra[mx.maximum(index, size) - size]
        return mx.where(index < size, index, beyond)

    def _parts(self) -> dict[str, mx.array]:
        names = ("weight", "scales", "biases")
        return {name: self._module[name] for name in names if name in self._module}

    def _product(self, rows: mx.array, parts: dict[str, mx.array]) -> mx.array:
        if "scales" not in parts:
            return rows @ parts["weight"].T
        return mx.quantized_matmul(
            rows,
            parts["weight"],
            parts["scales"],
            parts.get("biases"),
            transpose=True,
            group_size=self._module.group_size,
            bits=self._module.bits,
            mode=self._module.mode,
        )

    def _extra(self) -> mx.array | None:
        if self._stale:
            ids = self.coverage.extra
            if ids:
                ids = ids + [ids[0]] * (-len(ids) % PAD)
                self._extra_ids = mx.array(ids, dtype=mx.uint32)
                parts = self._parts().items()
                self._extra_rows = {name: rows[self._extra_ids] for name, rows in parts}
            self._stale = False
        return self._extra_ids
