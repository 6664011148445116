"""Facts of a real GPU: the driver's attributes, NVML, and a table of peak rates."""

from __future__ import annotations

import ctypes
import json
from enum import IntEnum
from importlib.resources import files

import pynvml

from kernelblaster.devices.base import DeviceFacts, DeviceKind
from kernelblaster.devices.cuda.probe import GpuInfo
from kernelblaster.errors import DeviceError

_SPECIFIC = {"sm_90": "sm_90a", "sm_100": "sm_100a"}
"""Architectures whose own instructions (wgmma, tensor copies) need the specific target."""
_WARP = 32


class _Attribute(IntEnum):
    """CUdevice_attribute of the CUDA driver API."""

    CLOCK_KHZ = 13
    SM_COUNT = 16
    L2_BYTES = 38
    THREADS_PER_SM = 39
    SHARED_PER_SM = 81
    REGISTERS_PER_SM = 82
    SHARED_PER_BLOCK = 97


def device_facts(gpu: GpuInfo, index: int = 0) -> DeviceFacts:
    """Everything known of the GPU. Raises DeviceError when the CUDA driver does not answer."""
    attributes = _attributes(index)
    peaks = _peaks(gpu, attributes, index)
    return DeviceFacts(
        kind=DeviceKind.CUDA,
        name=gpu.name,
        arch=gpu.arch,
        compile_arch=_SPECIFIC.get(gpu.arch, gpu.arch),
        sm_count=attributes[_Attribute.SM_COUNT],
        clock_mhz=attributes[_Attribute.CLOCK_KHZ] / 1e3,
        memory_bytes=gpu.memory_bytes,
        l2_bytes=attributes[_Attribute.L2_BYTES],
        shared_per_block=attributes[_Attribute.SHARED_PER_BLOCK],
        shared_per_sm=attributes[_Attribute.SHARED_PER_SM],
        registers_per_sm=attributes[_Attribute.REGISTERS_PER_SM],
        max_warps_per_sm=attributes[_Attribute.THREADS_PER_SM] // _WARP,
        uuid=gpu.uuid,
        driver_version=gpu.driver_version,
        cuda_version=gpu.cuda_version,
        **peaks,
    )


def _attributes(index: int) -> dict[_Attribute, int]:
    """Attributes through the driver API, which needs no context and so takes no memory of the GPU."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError("libcuda.so.1 cannot be loaded", cure="install the NVIDIA driver") from error
    device, value = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGet(ctypes.byref(device), index) != 0:
        raise DeviceError("the CUDA driver does not initialise", cure="see `nvidia-smi`; reload the driver")
    found = {}
    for attribute in _Attribute:
        if cuda.cuDeviceGetAttribute(ctypes.byref(value), int(attribute), device) != 0:
            raise DeviceError(f"the CUDA driver does not state {attribute.name}", cure="update the NVIDIA driver")
        found[attribute] = value.value
    return found


def _peaks(gpu: GpuInfo, attributes: dict[_Attribute, int], index: int) -> dict[str, object]:
    """Peak rates from the table, else upper bounds from clocks and widths."""
    table = json.loads(files("kernelblaster.devices.cuda").joinpath("peaks.json").read_text())
    for entry in table["gpus"]:
        if entry["key"].lower() in gpu.name.lower():
            copied = "copy_bandwidth" in entry
            return {
                "peak_bandwidth": entry.get("copy_bandwidth", entry["bandwidth"]),
                "peak_flops": entry["flops"],
                "peak_source": "bandwidth measured by a copy, FLOP/s data sheet" if copied else "data sheet",
            }
    return _derived_peaks(attributes, index)


def _derived_peaks(attributes: dict[_Attribute, int], index: int) -> dict[str, object]:
    """128 fp32 FMA per SM and clock, 16 times that on tensor cores: no GPU so far does more."""
    fp32 = attributes[_Attribute.SM_COUNT] * 128 * 2 * attributes[_Attribute.CLOCK_KHZ] * 1e3
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        clock_hz = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM) * 1e6
        bandwidth = 2 * clock_hz * pynvml.nvmlDeviceGetMemoryBusWidth(handle) / 8
    finally:
        pynvml.nvmlShutdown()
    flops = {"fp32": fp32, "tf32": 8 * fp32, "fp16": 16 * fp32, "bf16": 16 * fp32}
    return {"peak_bandwidth": bandwidth, "peak_flops": flops, "peak_source": "upper bounds from clocks and widths"}
