from __future__ import annotations

import multiprocessing
import threading
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pynvml
import pytest

from kernelblaster.devices.cuda import probe
from kernelblaster.devices.cuda.lock import gpu_lock


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
                "nvmlDeviceGetUUID": b"GPU-1",
                "nvmlSystemGetDriverVersion": "580.1",
                "nvmlDeviceGetMemoryInfo": type("Memory", (), {"total": 150 << 30}),
            }.get(name)

        return answer

    NVMLError = pynvml.NVMLError


def test_a_gpu_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "pynvml", FakeNvml())
    gpu = probe.detect_gpu()
    assert gpu is not None
    assert (gpu.name, gpu.arch, gpu.uuid, gpu.cuda_version) == ("NVIDIA H200", "sm_90", "GPU-1", "13.0")


@pytest.mark.parametrize("broken", ["nvmlInit", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName"])
def test_a_failing_library_means_no_gpu(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    monkeypatch.setattr(probe, "pynvml", FakeNvml(broken))
    assert probe.detect_gpu() is None


def test_every_lack_says_what_it_costs_and_how_to_cure_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "pynvml", FakeNvml("nvmlInit"))
    probes = probe.probe_machine()
    assert {"GPU", "hardware counters", "compute-sanitizer", "disk", "shared memory"} <= {item.name for item in probes}
    for item in probes:
        assert item.found
        if not item.ok:
            assert item.costs
            assert item.cure


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
    threading.Timer(0.3, release.set).start()
    started = time.monotonic()
    with gpu_lock("GPU-test"):
        assert time.monotonic() - started > 0.2
    other.join(10)
