"""A parser whose faults are one line, for both command lines."""

from __future__ import annotations

import argparse
from typing import NoReturn

from dfly_core.records.errors import EXIT_USAGE
from dfly_core.records.visible import one_line


class OneLineParser(argparse.ArgumentParser):
    """An ArgumentParser that reports a usage fault in one line."""

    def error(self, message: str) -> NoReturn:
        """Say the fault and its remedy on stderr; exit 2."""
        self.exit(EXIT_USAGE, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")
