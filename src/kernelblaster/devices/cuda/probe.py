"""What this machine has for real GPUs, what each lack costs, and how to hint it."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pynvml
from pydantic import BaseModel

from kernelblaster.devices.build.toolchain import SearchPath, Toolchain, find_ncu
from kernelblaster.devices.cuda.driver_api import DriverDevice
from kernelblaster.devices.cuda.gpu_access import reaching_isolation
from kernelblaster.devices.cuda.ncu import PERMISSION_HINT
from kernelblaster.errors import DeviceError
from kernelblaster.sandbox.isolation import Isolation
from kernelblaster.sandbox.process import ISOLATION_HINT, strongest

_DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
_SHARED_MEMORY = Path("/dev/shm")
_LEAST_DISK_GB = 5.0
_LEAST_SHARED_GB = 1.0


class Probe(BaseModel):
    """One thing looked at. `costs` is empty when it is there, `hint` when there is nothing to advise."""

    name: str
    ok: bool
    checked: bool = True
    """False for what settings claim and nobody has tried: whether a key is right, only its endpoint can say."""
    found: str
    costs: str = ""
    hint: str = ""


@dataclass(frozen=True)
class GpuInfo:
    """The GPU that CUDA programs get."""

    name: str
    arch: str
    """`sm_90`"""
    uuid: str
    memory_bytes: int
    driver_version: str
    cuda_version: str
    """Newest CUDA the driver supports, e.g. `13.0`."""


def detect_gpu() -> GpuInfo | None:
    """The GPU, or None where there is no driver or no GPU that CUDA programs may use."""
    try:
        uuid = DriverDevice().uuid()
        pynvml.nvmlInit()
    except (DeviceError, pynvml.NVMLError):
        return None
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        version = pynvml.nvmlSystemGetCudaDriverVersion()
        return GpuInfo(
            name=_text(pynvml.nvmlDeviceGetName(handle)),
            arch=f"sm_{major}{minor}",
            uuid=uuid,
            memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
            driver_version=_text(pynvml.nvmlSystemGetDriverVersion()),
            cuda_version=f"{version // 1000}.{version % 1000 // 10}",
        )
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    """Older bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else value


def probe_machine() -> list[Probe]:
    """Everything but the emulated device and the model."""
    gpu = detect_gpu()
    return [
        *_probe_toolchain(),
        _probe_gpu(gpu),
        _probe_counters(gpu),
        _probe_sanitizer(),
        _probe_isolation(gpu),
        _probe_space("disk", Path(tempfile.gettempdir()), _LEAST_DISK_GB),
        _probe_space("shared memory", _SHARED_MEMORY, _LEAST_SHARED_GB),
    ]


def _probe_toolchain() -> list[Probe]:
    try:
        tools = Toolchain.find()
    except DeviceError as error:
        return [Probe(name="nvcc", ok=False, found=error.message, costs="nothing can be built", hint=error.hint)]
    return [
        Probe(name="nvcc", ok=True, found=f"{tools.nvcc} {tools.version_text}"),
        Probe(name="host compiler", ok=True, found=str(tools.host_compiler)),
    ]


def _probe_gpu(gpu: GpuInfo | None) -> Probe:
    if gpu is None:
        return Probe(
            name="GPU",
            ok=False,
            found="none",
            costs="times are modelled by the emulated device instead of measured",
            hint="install an NVIDIA driver, or give the container a GPU (--gpus all)",
        )
    memory = gpu.memory_bytes / 1e9
    found = f"{gpu.name} ({gpu.arch}), {memory:.0f} GB, driver {gpu.driver_version}, CUDA up to {gpu.cuda_version}"
    return Probe(name="GPU", ok=True, found=found)


def _probe_counters(gpu: GpuInfo | None) -> Probe:
    costs = "profiles hold times and compile-time facts only; bottlenecks are named with less confidence"
    ncu = find_ncu(SearchPath.current())
    if ncu is None:
        hint = "install Nsight Compute (package cuda-nsight-compute-13-0)"
        return Probe(name="hardware counters", ok=False, found="no ncu", costs=costs, hint=hint)
    if gpu is None:
        return Probe(name="hardware counters", ok=False, found=f"{ncu}, but no GPU", costs=costs, hint="see GPU")
    if _counters_restricted():
        found = f"{ncu}, restricted to administrators (ERR_NVGPUCTRPERM)"
        return Probe(name="hardware counters", ok=False, found=found, costs=costs, hint=PERMISSION_HINT)
    return Probe(name="hardware counters", ok=True, found=str(ncu))


def _counters_restricted() -> bool:
    """Whether the driver keeps counters from users and this process lacks the capability they need then."""
    try:
        parameters = _DRIVER_PARAMETERS.read_text()
    except OSError:
        return False  # unknown: a profile will tell
    return "RmProfilingAdminOnly: 1" in parameters and not _has_capability()


def _has_capability() -> bool:
    """CAP_SYS_ADMIN (21) or CAP_PERFMON (38) in the effective set."""
    status = Path("/proc/self/status").read_text()
    effective = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), 16)
    return bool(effective >> 21 & 1 or effective >> 38 & 1)


def _probe_sanitizer() -> Probe:
    try:
        sanitizer = Toolchain.find().sanitizer
    except DeviceError:
        sanitizer = None
    if sanitizer is None:
        return Probe(
            name="compute-sanitizer",
            ok=False,
            found="none",
            costs="finalists on a GPU are not checked for races and out-of-bounds accesses",
            hint="install the CUDA toolkit's compute-sanitizer",
        )
    return Probe(name="compute-sanitizer", ok=True, found=str(sanitizer))


def _probe_isolation(gpu: GpuInfo | None) -> Probe:
    support = strongest()
    level = support.level if gpu is None else _level_with_gpu(support.level)
    network = "without network" if support.network else "with network"
    found = f"candidates run under {level}, {network}"
    if support.unavailable:
        found += f" (stronger ones do not work: {support.missing()})"
    elif level is not support.level:
        found += f" (under {support.level} no program reaches the GPU)"
    dangers = [
        *([] if level.isolates else ["read every file that you can read"]),
        *([] if support.network else ["reach the network"]),
    ]
    if not dangers:
        return Probe(name="isolation", ok=True, found=found)
    costs = f"a candidate could {' and '.join(dangers)}"
    return Probe(name="isolation", ok=False, found=found, costs=costs, hint=ISOLATION_HINT)


def _level_with_gpu(level: Isolation) -> Isolation:
    """The strongest isolation under which a program reaches the GPU, as far as a compiler is there to find out."""
    try:
        return reaching_isolation(Toolchain.find())
    except DeviceError:
        return level


def _probe_space(name: str, path: Path, least_gb: float) -> Probe:
    try:
        free = shutil.disk_usage(path).free / 1e9
    except OSError as error:
        hint = f"make {path} available"
        return Probe(name=name, ok=False, found=f"{path}: {error.strerror}", costs="tensors go to disk", hint=hint)
    if free < least_gb:
        return Probe(
            name=name,
            ok=False,
            found=f"{free:.1f} GB free at {path}",
            costs="large problems do not fit",
            hint=f"free at least {least_gb:.0f} GB (docker: --shm-size)",
        )
    return Probe(name=name, ok=True, found=f"{free:.0f} GB free at {path}")
