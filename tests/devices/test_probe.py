from __future__ import annotations

import ctypes
import multiprocessing
import subprocess
import threading
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

import pynvml
import pytest

from kernelblaster.devices.cuda import driver_api, probe
from kernelblaster.devices.cuda.lock import gpu_lock, gpu_shared
from kernelblaster.errors import DeviceError
from kernelblaster.sandbox.isolation import Isolation
from kernelblaster.sandbox.process import ISOLATION_HINT, IsolationSupport


class FakeNvml:
    """Just enough of NVML for one GPU; `broken` names the call that fails."""

    def __init__(self, broken: str | None = None) -> None:
        self.broken = broken
        self.shut_down = False

    def __getattr__(self, name: str):
        def answer(*_: object) -> object:
            if name == self.broken:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
            if name == "nvmlShutdown":
                self.shut_down = True
            return {
                "nvmlDeviceGetCudaComputeCapability": (9, 0),
                "nvmlSystemGetCudaDriverVersion": 13000,
                "nvmlDeviceGetName": "NVIDIA H200",
                "nvmlSystemGetDriverVersion": "580.1",
                "nvmlDeviceGetMemoryInfo": type("Memory", (), {"total": 150 << 30}),
            }.get(name)

        return answer

    NVMLError = pynvml.NVMLError


LIBCUDA = """
#include <cstring>
extern "C" int cuInit(unsigned) { return RESULT; }
extern "C" int cuDeviceGet(int* device, int) { *device = 7; return 0; }
extern "C" int cuDeviceGetUuid(void* uuid, int device) { std::memset(uuid, 0, 16); *(char*)uuid = device; return 0; }
extern "C" int cuDeviceGetAttribute(int* value, int attribute, int) { *value = 2 * attribute; return attribute == 99; }
"""


@pytest.fixture
def libcuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Puts a stand-in in the driver's place, whose cuInit answers the given status."""

    def install(status: int) -> None:
        source, library = tmp_path / "cuda.cpp", tmp_path / f"libcuda{status}.so"
        source.write_text(LIBCUDA.replace("RESULT", str(status)))
        subprocess.run(["g++", "-shared", "-fPIC", source, "-o", library], check=True)
        monkeypatch.setattr(driver_api.ctypes, "CDLL", lambda _, load=ctypes.CDLL: load(str(library)))

    return install


def test_the_gpu_is_the_one_that_cuda_programs_get(libcuda: Callable[[int], None]) -> None:
    libcuda(0)
    device = driver_api.DriverDevice()
    assert device.uuid() == "GPU-07000000-0000-0000-0000-000000000000"
    assert device.attributes([16, 38]) == [32, 76]
    with pytest.raises(DeviceError, match="attribute 99"):
        device.attributes([99])


def test_a_driver_that_does_not_initialise_shows_no_gpu(libcuda: Callable[[int], None]) -> None:
    libcuda(100)
    with pytest.raises(DeviceError, match="no GPU"):
        driver_api.DriverDevice()
    assert probe.detect_gpu() is None


def test_a_gpu_is_described(monkeypatch: pytest.MonkeyPatch, libcuda: Callable[[int], None]) -> None:
    libcuda(0)
    monkeypatch.setattr(probe, "pynvml", FakeNvml())
    gpu = probe.detect_gpu()
    assert gpu is not None
    assert (gpu.name, gpu.arch, gpu.uuid, gpu.cuda_version) == (
        "NVIDIA H200", "sm_90", "GPU-07000000-0000-0000-0000-000000000000", "13.0",
    )  # fmt: skip


@pytest.mark.parametrize("broken", ["nvmlInit", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetName"])
def test_a_failing_library_means_no_gpu(
    monkeypatch: pytest.MonkeyPatch, libcuda: Callable[[int], None], broken: str
) -> None:
    libcuda(0)
    monkeypatch.setattr(probe, "pynvml", FakeNvml(broken))
    assert probe.detect_gpu() is None


def test_every_lack_says_what_it_costs_and_how_to_hint_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "pynvml", FakeNvml("nvmlInit"))
    probes = probe.probe_machine()
    assert {"GPU", "hardware counters", "compute-sanitizer", "disk", "shared memory"} <= {item.name for item in probes}
    for item in probes:
        assert item.found
        if not item.ok:
            assert item.costs
            assert item.hint


def test_restricted_counters_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parameters = tmp_path / "params"
    parameters.write_text("RmProfilingAdminOnly: 1\n")
    monkeypatch.setattr(probe, "_DRIVER_PARAMETERS", parameters)
    monkeypatch.setattr(probe, "_has_capability", lambda: False)
    assert probe._counters_restricted()
    monkeypatch.setattr(probe, "_has_capability", lambda: True)
    assert not probe._counters_restricted()
    parameters.write_text("RmProfilingAdminOnly: 0\n")
    monkeypatch.setattr(probe, "_has_capability", lambda: False)
    assert not probe._counters_restricted()


def _hold(uuid: str, held: Event, release: Event) -> None:
    with gpu_lock(uuid):
        held.set()
        release.wait(10)


def test_the_gpu_lock_excludes_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    context = multiprocessing.get_context("fork")
    held, release = context.Event(), context.Event()
    other = context.Process(target=_hold, args=("GPU-test", held, release))
    other.start()
    assert held.wait(10)
    started = time.monotonic()
    threading.Timer(0.3, release.set).start()
    with gpu_lock("GPU-test"):
        assert time.monotonic() - started > 0.2
    other.join(10)


def _share(uuid: str, begun: Event, release: Event) -> None:
    with gpu_shared(uuid):
        begun.set()
        release.wait(10)


def test_those_who_want_the_gpu_alone_go_first_until_one_who_shares_it_lost_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("kernelblaster.devices.cuda.lock.PATIENCE_S", 0.5)
    order: list[str] = []
    stop = threading.Event()

    def hold(name: str) -> None:
        while not stop.is_set():
            with gpu_lock("GPU-test"):
                order.append(name)
                time.sleep(0.05)

    def share() -> None:
        with gpu_shared("GPU-test"):
            order.append("shared")

    holders = [threading.Thread(target=hold, args=(name,)) for name in ("a", "b", "c")]
    for thread in holders:
        thread.start()
    time.sleep(0.1)
    sharing = threading.Thread(target=share)
    sharing.start()
    sharing.join(10)
    stop.set()
    for thread in holders:
        thread.join(10)
    assert "shared" in order
    assert order.index("shared") >= 5


def test_several_share_the_gpu_and_nobody_overtakes_who_waits_to_hold_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    context = multiprocessing.get_context("fork")
    sharing, release = [context.Event() for _ in range(3)], context.Event()
    others = [context.Process(target=_share, args=("GPU-test", begun, release)) for begun in sharing]
    for process in others[:2]:
        process.start()
    assert all(begun.wait(10) for begun in sharing[:2])
    with gpu_lock("GPU-test", wait=False) as held:
        assert not held
    order: list[str] = []

    def hold() -> None:
        with gpu_lock("GPU-test"):
            order.append("held")
            assert not sharing[2].is_set()

    waiting = threading.Thread(target=hold)
    waiting.start()
    time.sleep(0.1)
    others[2].start()
    time.sleep(0.1)
    assert not sharing[2].is_set()
    assert order == []
    release.set()
    waiting.join(10)
    assert order == ["held"]
    assert sharing[2].wait(10)
    for process in others:
        process.join(10)


def test_doctor_says_how_candidates_are_isolated_and_what_its_lack_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    def isolation(support: IsolationSupport) -> probe.Probe:
        monkeypatch.setattr(probe, "strongest", lambda: support)
        monkeypatch.setattr(probe, "detect_gpu", lambda: None)
        return next(found for found in probe.probe_machine() if found.name == "isolation")

    isolated = isolation(IsolationSupport(Isolation.BUBBLEWRAP, True, {}))
    assert (isolated.ok, isolated.found) == (True, "candidates run under bubblewrap, without network")
    weaker = isolation(IsolationSupport(Isolation.LANDLOCK, False, {Isolation.NAMESPACES: "forbidden"}))
    assert not weaker.ok
    assert "namespaces: forbidden" in weaker.found
    assert weaker.costs == "a candidate could reach the network"
    bare = isolation(IsolationSupport(Isolation.LIMITS, True, {}))
    assert bare.costs == "a candidate could read every file that you can read"
    assert bare.hint == ISOLATION_HINT
