"""Modelled time of one call of the launcher: its kernels one after the other on one stream.

    time = launch_us + sum of kernel durations

where each duration already has the kernel's own start and drain. A kernel finds in the L2 what the kernel before it
touched, as far as both fit; the first finds it cold. Host work, allocation and overlapping streams are not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelblaster.devices.base import KernelResources
from kernelblaster.devices.emulated.architecture import GpuModel
from kernelblaster.devices.emulated.model import L2_SHARE, KernelEstimate, estimate
from kernelblaster.devices.emulated.record import LaunchRecord
from kernelblaster.errors import DeviceError


@dataclass(frozen=True)
class CallEstimate:
    """One call: its kernels in launch order and its whole time in microseconds."""

    kernels: tuple[KernelEstimate, ...]
    device_us: float


def estimate_call(
    records: Sequence[LaunchRecord], resources: Mapping[str, KernelResources], gpu: GpuModel
) -> CallEstimate:
    """Model a call.

    Args:
        records: its launches in order.
        resources: what ptxas reports, by mangled name.
        gpu: the GPU to stand for.

    Raises:
        Unlaunchable: a GPU would refuse one of the launches.
        DeviceError: ptxas reported nothing for a kernel that ran.
    """
    kernels = []
    before: LaunchRecord | None = None
    for record in records:
        known = resources.get(record.kernel)
        if known is None:
            raise DeviceError(
                f"ptxas reported no resources for {record.kernel}", cure="build the candidate again with an empty cache"
            )
        kernels.append(estimate(record, known, gpu, warm_bytes=_warm_bytes(before, record, gpu)))
        before = record
    duration_us = sum(kernel.duration_s for kernel in kernels) * 1e6
    return CallEstimate(kernels=tuple(kernels), device_us=gpu.gpu.launch_us + duration_us)


def _warm_bytes(before: LaunchRecord | None, record: LaunchRecord, gpu: GpuModel) -> float:
    """Bytes that `record` reads and the launch before it left in the L2; nothing once the two outgrow it."""
    if before is None or before.unique_bytes + record.unique_bytes > gpu.gpu.l2_bytes * L2_SHARE:
        return 0.0
    return min(record.unique_read_bytes, before.unique_bytes)
