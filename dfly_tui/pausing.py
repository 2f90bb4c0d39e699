"""Stopped and continued from outside, as by `kill -STOP` or a shell's `fg`.

Textual's own answer to SIGCONT begins its work in the terminal anew even where it never ended. Then
two threads read the keys, which come out of order, and the terminal stays raw in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable
from typing import Any

from textual.app import App

_LFLAG = 3  # where tcgetattr keeps the local modes


def catch(number: int, act: Callable[..., object], *args: object) -> None:
    """Do this on a signal, in the loop's turn; nothing where there are no signals to be had."""
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        asyncio.get_running_loop().add_signal_handler(number, act, *args)


def watch(app: App[Any]) -> None:
    """Leave the terminal when asked to stop, and take it again, once, when continued."""
    catch(signal.SIGTSTP, _pause, app)
    catch(signal.SIGCONT, _go_on, app)


def _pause(app: App[Any]) -> None:
    with app.suspend():
        os.kill(os.getpid(), signal.SIGSTOP)


def _go_on(app: App[Any]) -> None:
    if _was_lent():
        with app.suspend():
            pass
    app.refresh(layout=True)


def _was_lent() -> bool:
    """Whether somebody else, such as a shell, has had the terminal: it is no longer raw."""
    try:
        modes = termios.tcgetattr(sys.__stdin__.fileno() if sys.__stdin__ else 0)[_LFLAG]
    except (termios.error, OSError, ValueError):
        return False
    return bool(modes & termios.ICANON)
