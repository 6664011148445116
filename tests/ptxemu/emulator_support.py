"""What tests that run programs share: whether nvcc and g++ are here, and how long a program may take."""

from __future__ import annotations

import pytest

from ptxemu.errors import ToolkitMissing
from ptxemu.toolkit import CudaToolkit

TIMEOUT_S = 120


def _has_tools() -> bool:
    try:
        CudaToolkit.find()
    except ToolkitMissing:
        return False
    return True


needs_tools = pytest.mark.skipif(not _has_tools(), reason="needs nvcc and g++")
