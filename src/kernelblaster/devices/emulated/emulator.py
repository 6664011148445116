"""The emulator on this machine: which GPUs it stands for, and whether its core is built."""

from __future__ import annotations

from pathlib import Path

from kernelblaster.devices.emulated.translation import translated_errors
from kernelblaster.errors import UsageError
from ptxemu.core.build import BuiltCore, ensure_core, locate_core
from ptxemu.model.architecture import DEFAULT_GPU, GpuModel, gpu_model, gpu_names

__all__ = ["DEFAULT_GPU", "built_core", "core_is_built", "gpu_named", "gpu_names"]


def gpu_named(name: str) -> GpuModel:
    """The figures of a GPU. Raises UsageError for one that the emulator does not know."""
    if name.lower() not in gpu_names():
        raise UsageError(f"no model of a GPU called {name}", hint=f"GPU_TYPE is one of: {', '.join(gpu_names())}")
    return gpu_model(name)


def core_is_built(cache_root: Path) -> bool:
    """Whether `built_core` would return at once. Raises DeviceError without g++."""
    with translated_errors():
        return locate_core(cache_root).library.exists()


def built_core(cache_root: Path) -> BuiltCore:
    """The emulator's core, compiled first where the cache lacks it. Raises DeviceError."""
    with translated_errors():
        return ensure_core(cache_root)
