"""Blocks that wait for bulk copies: how long they take where few can be under way.

A copy lands in shared memory. Where this holds so many tiles (bytes of one phase of an mbarrier), the next one is asked
for when the first of them has been used up, so that a block goes through its tiles no faster than these come in turn.
"""

from __future__ import annotations

from ptxemu.counters.launch import SECTOR_BYTES, LaunchRecord
from ptxemu.model.architecture import GpuModel
from ptxemu.model.traffic import bulk_read_sectors

_TELLS_BYTES = "mbarrier_arrive_expect_tx"
"""Operation that says what a phase waits for: once for each tile."""


def clocks_with_copies(record: LaunchRecord, clocks: float, dram_read_bytes: float, gpu: GpuModel) -> float:
    """Clocks of a block whose warps take so many when no tile is waited for.

    A tile comes after the latency of the L2 or of DRAM, at an SM's share of the L2's bandwidth. With one tile the block
    waits for each; with several, for as many together.
    """
    tiles = record.operations.get(_TELLS_BYTES, 0) / record.blocks
    copied = bulk_read_sectors(record) * SECTOR_BYTES
    if tiles == 0 or copied == 0:
        return clocks
    tile = copied / record.blocks / tiles
    held = max(1, int((record.static_shared + record.dynamic_shared) // tile))
    latency, from_dram = gpu.architecture.latency, min(1.0, dram_read_bytes / copied)
    per_clock = gpu.gpu.l2_bandwidth / gpu.gpu.sms / gpu.clock_hz
    comes = latency.l2 + from_dram * (latency.dram - latency.l2) + tile / per_clock
    return max(clocks, (clocks + tiles * comes) / held)
