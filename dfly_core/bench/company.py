"""How busy the machine was while a row was measured."""

from __future__ import annotations

import os
import time

from dfly_core.model.machine import available_cores
from dfly_core.records.marks import Company


class Watch:
    """Looks from its making on."""

    def __init__(self) -> None:
        self._wall, self._ours = time.perf_counter(), time.process_time()

    def seen(self) -> Company | None:
        """The load until now; None where the system does not tell."""
        try:
            average = os.getloadavg()[0]
        except OSError:
            return None
        wall = time.perf_counter() - self._wall
        own = (time.process_time() - self._ours) / wall if wall > 0 else 0.0
        return Company(round(average, 2), available_cores(), round(own, 2))
