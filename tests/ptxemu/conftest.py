"""What all tests of the emulator share: its cache, and whether this machine has nvcc and g++."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptxemu.errors import ToolkitMissing
from ptxemu.toolkit import CudaToolkit

# One build of the core serves the tests of the device, too.
_SHARED_CACHE = os.environ.get("KERNELBLASTER_CACHE") or str(Path.home() / ".cache" / "kernelblaster")
os.environ.setdefault("PTXEMU_CACHE", _SHARED_CACHE)


@pytest.fixture(scope="session")
def toolkit() -> CudaToolkit:
    """nvcc and g++, without which the test is skipped."""
    try:
        return CudaToolkit.find()
    except ToolkitMissing as error:
        pytest.skip(f"needs a toolkit: {error.message}")
