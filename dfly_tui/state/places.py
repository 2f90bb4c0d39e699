"""Where the user's data lies on this platform; nothing is ever written elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

NAME = "dfly-tui"


def data_dir(env: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The folder for chats, settings and logs; it may not exist yet."""
    chosen = env.get("XDG_DATA_HOME", "")
    if chosen and Path(chosen).is_absolute():
        return Path(chosen) / NAME
    home = Path(env.get("HOME") or Path.home())
    if platform == "darwin":
        return home / "Library" / "Application Support" / NAME
    return home / ".local" / "share" / NAME
