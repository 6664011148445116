"""Opens the emulated GPU, whose core is compiled once on a machine."""

from __future__ import annotations

from kernelblaster.devices.emulated.device import EmulatedDevice
from kernelblaster.devices.emulated.emulator import built_core, core_is_built
from kernelblaster.devices.registry import DeviceRequest, OpenedDevice
from kernelblaster.paths import cache_dir
from ptxemu.model.architecture import DEFAULT_GPU


def open_emulated(request: DeviceRequest) -> OpenedDevice:
    """A GPU of the type asked for. Raises UsageError for an unknown type, DeviceError where nothing can be built."""
    device = EmulatedDevice.create(
        request.gpu_type or DEFAULT_GPU, policy=request.policy, limits=request.limits, jobs=request.jobs
    )
    if not core_is_built(cache_dir()):
        request.tell("building the emulated GPU: once on this machine, a minute of an idle processor")
    built_core(cache_dir())
    return OpenedDevice(device, f"{request.why}, so its PTX runs on the CPU; times are modelled, not measured")
