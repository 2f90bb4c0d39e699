"""Copying, and saying so only when it is true."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

_TOOLS = (
    ("pbcopy",),
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("xsel", "--clipboard", "--input"),
)


def tool(env: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """The program that fills the clipboard the user looks at; none over ssh."""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return None  # a program here would fill the clipboard of the wrong machine
    for argv in _TOOLS:
        wayland, x11 = env.get("WAYLAND_DISPLAY"), env.get("DISPLAY")
        shown = {"pbcopy": True, "wl-copy": wayland, "xclip": x11, "xsel": x11}[argv[0]]
        if shown and shutil.which(argv[0], path=env.get("PATH")):
            return argv
    return None


def copy_with(argv: tuple[str, ...], text: str) -> bool:
    """Hand the text to the program; whether it took it."""
    data = text.encode("utf-8", "replace")
    try:
        # wl-copy and xclip stay to serve the clipboard: their output must not be waited for.
        done = subprocess.run(
            argv,
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
