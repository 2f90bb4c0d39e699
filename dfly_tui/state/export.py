"""Writing a page where the user wants it, over nothing that is there."""

from __future__ import annotations

from itertools import chain, count
from pathlib import Path


def free_name(path: Path) -> Path:
    """That path, or with a number the first that is free."""
    others = (path.with_name(f"{path.stem}-{n}{path.suffix}") for n in count(2))
    return next(name for name in chain([path], others) if not name.exists())


def export(page: str, name: str, own: Path) -> str:
    """Write the page to a new file; returns why not, or nothing.

    `own` is the one folder that is made when it is missing.
    """
    try:
        path = Path(name).expanduser()
        if path.parent == own:
            own.mkdir(parents=True, exist_ok=True)
        elif not path.parent.is_dir():
            return f"there is no folder {path.parent}: make it, or choose another"
        with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
            try:
                file.write(page)
                file.flush()
            except OSError:
                path.unlink()
                raise
    except FileExistsError:
        return f"{path} exists: choose another name"
    except (OSError, ValueError, RuntimeError) as error:
        # A name with a zero byte, and ~ of somebody unknown, are no OSErrors.
        return f"not exported: {getattr(error, 'strerror', None) or error}"
    return ""
