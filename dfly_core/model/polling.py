"""Waits for what blocks, a network above all, and goes on asking whether it is still wanted."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from dfly_core.records.errors import Stopped

Value = TypeVar("Value")
Heard = tuple[bool, Value | BaseException | None]  # whether a value, and it, an error, or the end

POLL_SECONDS = 0.1


def polled(work: Iterator[Value], cancelled: Callable[[], bool]) -> Iterator[Value]:
    """What `work` yields, made in a thread of its own; raises Stopped soon after a cancel.

    The thread is left behind then. It ends at the next value it makes, or when what it waits for
    gives up; whatever it writes to must be closed by that time.
    """
    heard: queue.SimpleQueue[Heard[Value]] = queue.SimpleQueue()
    unwanted = threading.Event()

    def make() -> None:
        try:
            for value in work:
                heard.put((True, value))
                if unwanted.is_set():
                    return
            heard.put((False, None))
        except BaseException as error:  # noqa: BLE001  told where the values are waited for
            heard.put((False, error))

    threading.Thread(target=make, daemon=True, name="polled").start()
    try:
        while True:
            try:
                good, value = heard.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if cancelled():
                    raise Stopped from None
                continue
            if isinstance(value, BaseException):
                raise value
            if not good:
                return
            yield value  # type: ignore[misc]
    finally:
        unwanted.set()


def waited(call: Callable[[], Value], cancelled: Callable[[], bool]) -> Value:
    """What a call returns, or raises; raises Stopped soon after a cancel."""
    return next(polled((call() for _ in (0,)), cancelled))
