"""What must be right before MLX can even be imported; standard library only."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata

MLX_NEEDED = (0, 32, 4)
PYTHON_NEEDED, PYTHON_TRIED = (3, 10), (3, 13)


@dataclass(frozen=True)
class Problem:
    """Something off and the way out; `fatal` when chat can't work because of it."""

    what: str
    remedy: str
    fatal: bool


def preflight() -> list[Problem]:
    """Problems that show without loading anything."""
    found = [rosetta(), python_version(), mlx_version(), compiler_missing()]
    return [problem for problem in found if problem is not None]


def rosetta() -> Problem | None:
    """An x86 Python on Apple Silicon."""
    if platform.system() != "Darwin" or platform.machine() == "arm64":
        return None
    translated = ask("sysctl", "-n", "sysctl.proc_translated") == "1"
    if translated:
        return Problem(
            "this Python is an x86 one running under Rosetta, where MLX can't work",
            "install an arm64 Python (python.org, or Homebrew in /opt/homebrew) and reinstall",
            True,
        )
    return Problem("this Mac has an Intel processor, for which there is no MLX",
                   "use a Mac with Apple Silicon", True)  # fmt: skip


def python_version() -> Problem | None:
    """A Python outside the range this was tried with."""
    version = platform.python_version()
    here = tuple(int(n) for n in version.split(".")[:2])
    if here < PYTHON_NEEDED:
        return Problem(f"Python {version} is too old", "install Python 3.10 to 3.13", True)
    if here > PYTHON_TRIED:
        return Problem(
            f"Python {version} is newer than what was tried", "prefer Python 3.10 to 3.13", False
        )
    return None


def mlx_version() -> Problem | None:
    """MLX missing, or with the one-row kernel that adds in 16 bit."""
    installed = version_of("mlx")
    if installed is None:
        return Problem("MLX is not installed", "run `pip install -U dfly-tui`", True)
    numbers = tuple(int(n) for n in re.findall(r"\d+", installed)[:3])
    if numbers < MLX_NEEDED:
        needed = ".".join(str(n) for n in MLX_NEEDED)
        return Problem(
            f"mlx {installed} is older than {needed}: its kernels for one row and for several "
            "differ in most values",
            "run `pip install -U mlx`",
            False,
        )
    return None


def compiler_missing() -> Problem | None:
    """No C++ compiler where MLX's CPU backend needs one at run time."""
    if platform.system() != "Linux" or shutil.which("g++") or shutil.which("c++"):
        return None
    return Problem(
        "no C++ compiler is installed, which MLX's CPU backend calls at run time",
        "install one, e.g. `apt-get install g++`",
        True,
    )


def version_of(package: str) -> str | None:
    """The installed version of a package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def ask(*command: str) -> str:
    """The output of a system command, empty when there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
