"""Where shipped data and caches lie. The only module that knows."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_dir() -> Path:
    """Shipped problems, knowledge base and recordings: inside the wheel, or `data/` of a clone."""
    packaged = _PACKAGE / "data"
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / "data"


def harness_include_dir() -> Path:
    """Header-only C++ harness that drivers and kernels include as `<kernelblaster/...>`."""
    return _PACKAGE / "devices" / "harness" / "include"


def guards_source() -> Path:
    """Stand-ins for functions of the CUDA runtime, compiled into programs whose candidates call those."""
    return _PACKAGE / "devices" / "harness" / "guards" / "guards.cpp"


def cache_dir() -> Path:
    """Compiled drivers, candidates and the emulator's core; safe to delete. `KERNELBLASTER_CACHE` moves it."""
    chosen = os.environ.get("KERNELBLASTER_CACHE")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kernelblaster"
    base.mkdir(parents=True, exist_ok=True)
    return base
