"""Facts of a real GPU: the driver's attributes, NVML, and a table of peak rates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import pynvml

from kernelblaster.devices.cuda.driver_api import DriverDevice
from kernelblaster.devices.cuda.probe import GpuInfo
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.peaks import peak_rates

_SPECIFIC = {"sm_90": "sm_90a", "sm_100": "sm_100a"}
"""Architectures whose own instructions (wgmma, tensor copies) need the specific target."""
_WARP = 32


class _DeviceAttribute(IntEnum):
    """CUdevice_attribute of the CUDA driver API."""

    CLOCK_KHZ = 13
    SM_COUNT = 16
    L2_BYTES = 38
    THREADS_PER_SM = 39
    SHARED_PER_SM = 81
    REGISTERS_PER_SM = 82
    SHARED_PER_BLOCK = 97


def device_facts(gpu: GpuInfo) -> DeviceFacts:
    """Everything known of the GPU. Raises DeviceError when the CUDA driver does not answer."""
    attributes = dict(zip(_DeviceAttribute, DriverDevice().attributes(list(_DeviceAttribute)), strict=True))
    peaks = _peaks(gpu, attributes)
    return DeviceFacts(
        kind=DeviceKind.CUDA,
        name=gpu.name,
        arch=gpu.arch,
        compile_arch=_SPECIFIC.get(gpu.arch, gpu.arch),
        sm_count=attributes[_DeviceAttribute.SM_COUNT],
        clock_mhz=attributes[_DeviceAttribute.CLOCK_KHZ] / 1e3,
        memory_bytes=gpu.memory_bytes,
        l2_bytes=attributes[_DeviceAttribute.L2_BYTES],
        shared_per_block=attributes[_DeviceAttribute.SHARED_PER_BLOCK],
        shared_per_sm=attributes[_DeviceAttribute.SHARED_PER_SM],
        registers_per_sm=attributes[_DeviceAttribute.REGISTERS_PER_SM],
        max_warps_per_sm=attributes[_DeviceAttribute.THREADS_PER_SM] // _WARP,
        uuid=gpu.uuid,
        driver_version=gpu.driver_version,
        cuda_version=gpu.cuda_version,
        peak_bandwidth=peaks.bandwidth,
        peak_flops=peaks.flops,
        peak_source=peaks.source,
    )


@dataclass(frozen=True)
class _Peaks:
    """Bytes per second, FLOP per second by precision, and where these come from."""

    bandwidth: float
    flops: dict[str, float]
    source: str


def _peaks(gpu: GpuInfo, attributes: dict[_DeviceAttribute, int]) -> _Peaks:
    """Peak rates from the table, else upper bounds from clocks and widths."""
    known = peak_rates(gpu.name)
    if known is None:
        return _derived_peaks(gpu, attributes)
    if known.copy_bandwidth is None:
        return _Peaks(known.bandwidth, known.flops, "data sheet")
    return _Peaks(known.copy_bandwidth, known.flops, "bandwidth measured by a copy, FLOP/s data sheet")


def _derived_peaks(gpu: GpuInfo, attributes: dict[_DeviceAttribute, int]) -> _Peaks:
    """128 fp32 FMA per SM and clock, 16 times that on tensor cores: no GPU so far does more."""
    fp32 = attributes[_DeviceAttribute.SM_COUNT] * 128 * 2 * attributes[_DeviceAttribute.CLOCK_KHZ] * 1e3
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        clock_hz = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM) * 1e6
        bandwidth = 2 * clock_hz * pynvml.nvmlDeviceGetMemoryBusWidth(handle) / 8
    finally:
        pynvml.nvmlShutdown()
    flops = {"fp32": fp32, "tf32": 8 * fp32, "fp16": 16 * fp32, "bf16": 16 * fp32}
    return _Peaks(bandwidth, flops, "upper bounds from clocks and widths")
