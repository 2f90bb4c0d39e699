"""`dfly-mlx`, and `python -m dfly_core`: a guard around what takes long to import."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line; ctrl+c is one line even while Python still imports."""
    try:
        from dfly_core.records.interrupt import ended, ends_at_once

        with ends_at_once("dfly-mlx"):
            from dfly_core.cli.main import main as run
        return ended(run())
    except KeyboardInterrupt:
        os.write(2, b"dfly-mlx: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
