"""Opens the GPU of this machine."""

from __future__ import annotations

from kernelblaster.devices.cuda.device import CudaDevice
from kernelblaster.devices.cuda.probe import detect_gpu
from kernelblaster.devices.registry import DeviceRequest, OpenedDevice
from kernelblaster.errors import DeviceError, UsageError


def open_cuda(request: DeviceRequest) -> OpenedDevice:
    """The first GPU. Raises DeviceError where there is none, UsageError when it is another than was asked for."""
    gpu = detect_gpu()
    if gpu is None:
        raise DeviceError("no NVIDIA GPU was found", hint="see `kernelblaster doctor`, or use --device emulated")
    if request.gpu_type is not None and request.gpu_type not in gpu.name.lower().replace(" ", ""):
        raise UsageError(
            f"GPU type {request.gpu_type} was asked for, this machine has {gpu.name} ({gpu.arch})",
            hint="unset GPU_TYPE / --gpu-type, or use --device emulated",
        )
    return OpenedDevice(CudaDevice(request.policy, limits=request.limits, jobs=request.jobs), f"{gpu.name} was found")
