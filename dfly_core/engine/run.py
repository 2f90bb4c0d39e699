"""What the loops of one answer share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import mlx.core as mx

from dfly_core.engine.context import Context
from dfly_core.engine.propose import Draft, propose
from dfly_core.engine.sampling import GREEDY, Chooser
from dfly_core.engine.stopping import Cut, StopRule
from dfly_core.engine.text import Pieces
from dfly_core.engine.width import WidthPolicy
from dfly_core.records.step import Finish, Seconds, Step, Token

CLEAR_EVERY = 256  # steps between returns of MLX's free buffers to the system


@dataclass
class Run:
    """One answer in the making."""

    context: Context
    stop: StopRule
    policy: WidthPolicy
    pieces: Pieces
    cancelled: Callable[[], bool]
    propose: Callable[[Context, int], Draft] = propose
    chooser: Chooser = GREEDY
    index: int = field(default=0)

    def token(self, id: int) -> Token:
        """An id with its text."""
        return Token(id, self.pieces[id])

    def tokens(self, ids: list[int]) -> tuple[Token, ...]:
        """Ids with their texts."""
        return tuple(self.token(i) for i in ids)

    def plain_step(
        self, position: int, anchor: int | None, token: int, cut: Cut, off: str | None, total: float
    ) -> Step:
        """The record of one token chosen by the target alone."""
        return Step(
            index=self._count(),
            position=position,
            anchor=None if anchor is None else self.token(anchor),
            proposals=(),
            accepted=0,
            chosen=(self.token(token),),
            kept=cut.kept,
            texts=cut.texts,
            finish=cut.finish,
            off=off,
            seconds=Seconds(total),
        )

    def cycle_step(
        self,
        position: int,
        anchor: int,
        proposals: list[int],
        chosen: list[int],
        cut: Cut,
        seconds: Seconds,
    ) -> Step:
        """The record of one cycle."""
        return Step(
            index=self._count(),
            position=position,
            anchor=self.token(anchor),
            proposals=self.tokens(proposals),
            accepted=len(chosen) - 1,
            chosen=self.tokens(chosen),
            kept=cut.kept,
            texts=cut.texts,
            finish=cut.finish,
            off=None,
            seconds=seconds,
        )

    def closing_step(self, finish: Finish) -> Step:
        """The record that ends an answer between steps: no token, only text that was held."""
        tail = self.stop.close()
        return Step(
            index=self._count(),
            position=self.context.length,
            anchor=None,
            proposals=(),
            accepted=0,
            chosen=(),
            kept=0,
            texts=(tail,) if tail else (),
            finish=finish,
            off=None,
            seconds=Seconds(0.0),
        )

    def _count(self) -> int:
        self.index += 1
        if self.index % CLEAR_EVERY == 0:
            mx.clear_cache()
        return self.index - 1
