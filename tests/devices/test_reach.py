"""Which isolation reaches the GPU, with a driver library of our own in place of NVIDIA's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.cuda import gpu_access as reach
from kernelblaster.sandbox.isolation import Isolation
from kernelblaster.sandbox.process import strongest

DRIVER = """
#include <stdio.h>
int cuInit() { FILE* needed = fopen("NEEDED", "r"); return needed ? 0 : 100; }
int cuDeviceGet() { return 0; }
int cuDevicePrimaryCtxRetain() { return 0; }
int cuCtxSetCurrent() { return 0; }
int cuMemAlloc_v2() { return 0; }
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    reach.reaching_isolation.cache_clear()
    yield
    reach.reaching_isolation.cache_clear()


def install(directory: Path, needed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that initialises only where the file `needed` can be read."""
    (directory / "driver.c").write_text(DRIVER.replace("NEEDED", str(needed)))
    command = ["gcc", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"]
    subprocess.run(command, cwd=directory, check=True, timeout=60)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(directory))


def test_the_strongest_isolation_is_taken_where_the_gpu_is_reached_under_it(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, Path("/etc/passwd"), monkeypatch)
    assert reach.reaching_isolation(toolchain) is strongest().level
    assert caplog.records == []


@pytest.mark.skipif(not strongest().level.isolates, reason="needs isolation")
def test_a_fence_that_hides_the_gpu_is_not_taken_and_that_is_said(
    toolchain: Toolchain,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "needed"
    outside.touch()
    install(tmp_path, outside, monkeypatch)
    assert reach.reaching_isolation(toolchain) is Isolation.LIMITS
    (warning,) = [record.message for record in caplog.records]
    assert "NOT ISOLATED" in warning
    assert "cuInit" in warning
    assert "100" in warning


def test_a_machine_without_a_working_driver_blames_no_fence(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, tmp_path / "missing", monkeypatch)
    assert reach.reaching_isolation(toolchain) is strongest().level
    assert caplog.records == []
