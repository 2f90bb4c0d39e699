"""Facts about this machine and about model files, for reports and fingerprints."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import mlx.core as mx

from dfly_core.preflight import ask, version_of
from dfly_core.records.memory import usable

SAMPLES = 16  # places of 4 KB each that a weight file's fingerprint reads besides its header


def machine_facts() -> dict[str, Any]:
    """Chip, memory, system and versions, as benchmark reports carry them. Sizes are in GB."""
    device = mx.device_info()
    total = total_memory()
    return {
        "chip": chip(),
        "architecture": str(device.get("architecture", platform.machine())),
        "cores": available_cores(),
        "memory_gb": round(total / 2**30, 1) if total else None,
        "os": operating_system(),
        "os_build": os_build(),
        "power_mode": power_mode(),
        "backend": backend(),
        "blas": blas(),
        "python": platform.python_version(),
        "mlx": version_of("mlx"),
        "mlx_lm": version_of("mlx-lm"),
    }


# Variables that choose kernels, or the number of threads that share a sum.
SWITCHES = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "MLX_SDPA_BLOCKS",
    "OPENBLAS_CORETYPE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS",
)  # fmt: skip


def machine_fingerprint() -> str:
    """What must not change for a self-test to stay valid on this machine."""
    facts = machine_facts()
    kept = ("chip", "architecture", "cores", "os_build", "backend", "blas", "mlx", "mlx_lm")
    about = {k: facts[k] for k in kept} | {k: os.environ.get(k) for k in SWITCHES}
    return digest(json.dumps(about, sort_keys=True).encode())


def model_fingerprint(folder: Path) -> str:
    """Names a model's files: config, weight file sizes and headers, and samples of the weights.

    Reads a few hundred KB, so that it is quick on models of many GB.
    """
    hashed = hashlib.sha256()
    config = folder / "config.json"
    if config.is_file():
        hashed.update(config.read_bytes())
    for path in sorted(folder.glob("model*.safetensors")):
        size = path.stat().st_size
        hashed.update(f"{path.name} {size}".encode())
        with path.open("rb") as file:
            head = file.read(8)
            hashed.update(head + file.read(min(int.from_bytes(head, "little"), 2**22)))
            for part in range(SAMPLES):
                file.seek(max(0, size * (part + 1) // SAMPLES - 4096))
                hashed.update(file.read(4096))
    return hashed.hexdigest()[:16]


def digest(data: bytes) -> str:
    """A short name for bytes."""
    return hashlib.sha256(data).hexdigest()[:16]


def cache_folder() -> Path:
    """Where what can be made again is kept."""
    if platform.system() == "Darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dfly-tui"


def chip() -> str:
    """The processor's name."""
    if platform.system() == "Darwin":
        return ask("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor() or "unknown"
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def backend() -> str:
    """Where MLX computes: metal, gpu (CUDA) or cpu."""
    if mx.metal.is_available():
        return "metal"
    return str(mx.default_device().type).rsplit(".", 1)[-1]


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def operating_system() -> str:
    """Name and version of the system."""
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


def os_build() -> str:
    """The exact build, since a system update may bring other kernels."""
    if platform.system() == "Darwin":
        return ask("sw_vers", "-buildVersion") or platform.version()
    return platform.version()


def power_mode() -> str | None:
    """The words "low power" or "normal"; None where the system does not tell."""
    if platform.system() != "Darwin":
        return None
    lines = ask("pmset", "-g").splitlines()
    told = [line.split() for line in lines if line.strip().startswith("lowpowermode")]
    return None if not told else "low power" if told[0][-1] == "1" else "normal"


def blas() -> str:
    """BLAS libraries loaded into this process besides MLX's own; kernels differ with them."""
    if platform.system() != "Linux":
        return "built in"
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    # numpy brings one under its own names, which MLX does not see.
    found = {line.split()[-1] for line in lines if "blas" in line.lower()}
    names = sorted({Path(name).name for name in found if "numpy" not in name})
    return ", ".join(names) or "built in"


def total_memory() -> int | None:
    """The machine's memory in bytes."""
    size = mx.device_info().get("memory_size")
    if isinstance(size, int) and size > 0:
        return size
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def usable_memory() -> int | None:
    """Bytes a model may take: what the GPU may wire down on a Mac, else three quarters."""
    if platform.system() == "Darwin":
        raised = ask("sysctl", "-n", "iogpu.wired_limit_mb")
        if raised.isdigit() and int(raised) > 0:
            return int(raised) << 20
        size = mx.device_info().get("max_recommended_working_set_size")
        if isinstance(size, int) and size > 0:
            return size
    total = total_memory()
    return None if total is None else usable(total)
