"""Modelled time of one call of the launcher: kernels and copies one after the other on one stream.

    time = launch_us + sum of kernel durations + sum of transfer times + host work

where each duration already has the kernel's own start and drain. A kernel finds in the L2 what the kernel before it
touched, as far as both fit; the first finds it full of lines that the flush before the call has written, which it has
to push out. In profiles, like those of Nsight Compute, every kernel begins with an empty L2. Transfers on the device
run at copy bandwidth, those to and from the host at the link's, with a stop of the stream. What the host works beyond
what launching takes is added as the processor time that it took here: that is no model of a host, but keeps a program
from computing there for nothing. Allocation and overlapping streams are not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ptxemu.counters.launch import LaunchRecord
from ptxemu.counters.record import CountedRecord, HostWorkRecord, TransferKind, TransferRecord
from ptxemu.errors import CoreFailure
from ptxemu.machine.ptxas import PtxasResources
from ptxemu.model.architecture import GpuModel
from ptxemu.model.kernel import KernelEstimate, estimate
from ptxemu.model.traffic import L2_SHARE, evicted_bytes

HOST_LINK = 2.5e10
"""Bytes/s between host and GPU: PCIe 4.0 x16."""
HOST_STOP_S = 10e-6
"""The host waits for the stream, then refills it."""


@dataclass(frozen=True)
class CallEstimate:
    """One call: its kernels in launch order, and times in microseconds.

    Attributes:
        kernels: launches, as a profiler sees them.
        transfers_us: copies and fills.
        device_us: the whole call.
        host_us: of it, what the host worked beyond what launching takes; measured, not modelled.
    """

    kernels: tuple[KernelEstimate, ...]
    transfers_us: float
    device_us: float
    host_us: float = 0.0

    @property
    def executed_share(self) -> float:
        """Share of the blocks of all launches that were executed."""
        records = [kernel.record for kernel in self.kernels]
        blocks = sum(record.blocks for record in records)
        left_out = sum(one.blocks - one.executed_blocks for one in records if one.executed_blocks is not None)
        return 1 - left_out / blocks if blocks else 1.0


def estimate_call(
    records: Sequence[CountedRecord], resources: Mapping[str, PtxasResources], gpu: GpuModel
) -> CallEstimate:
    """Model a call.

    Args:
        records: its launches and transfers in order.
        resources: what ptxas reports, by the key of the kernel, which is its mangled name as a rule.
        gpu: the GPU to stand for.

    Raises:
        Unlaunchable: a GPU would refuse one of the launches.
        CoreFailure: ptxas reported nothing for a kernel that ran.
    """
    kernels: list[KernelEstimate] = []
    transfers_us = kernels_us = host_us = 0.0
    for record in records:
        if isinstance(record, TransferRecord):
            transfers_us += 1e6 * _transfer_s(record, gpu)
            continue
        if isinstance(record, HostWorkRecord):
            host_us += 1e-3 * record.host_ns
            continue
        known = resources.get(record.key)
        if known is None:
            raise CoreFailure(
                f"ptxas reported no resources for {record.kernel}", hint="build the program again with an empty cache"
            )
        before = kernels[-1].record if kernels else None
        flushed = 0.0 if kernels else evicted_bytes(record, gpu)
        warm = _warm_bytes(before, record, gpu)
        kernels.append(estimate(record, known, gpu))
        kernels_us += 1e6 * estimate(record, known, gpu, warm_bytes=warm, evicted_bytes=flushed).duration_s
    device_us = gpu.gpu.launch_us + kernels_us + transfers_us + host_us
    return CallEstimate(tuple(kernels), transfers_us, device_us, host_us)


def _warm_bytes(before: LaunchRecord | None, record: LaunchRecord, gpu: GpuModel) -> float:
    """Bytes that `record` reads and the launch before it left in the L2; nothing once the two outgrow it."""
    if before is None or before.unique_bytes + record.unique_bytes > gpu.gpu.l2_bytes * L2_SHARE:
        return 0.0
    return min(record.unique_read_bytes, before.unique_bytes)


def _transfer_s(record: TransferRecord, gpu: GpuModel) -> float:
    """Seconds of one copy or fill."""
    start = gpu.gpu.kernel_us * 1e-6
    match record.transfer:
        case TransferKind.FILL:
            return start + record.bytes / gpu.gpu.dram_copy
        case TransferKind.DEVICE_TO_DEVICE:
            return start + 2 * record.bytes / gpu.gpu.dram_copy
        case TransferKind.HOST_TO_DEVICE | TransferKind.DEVICE_TO_HOST:
            return start + HOST_STOP_S + record.bytes / HOST_LINK
