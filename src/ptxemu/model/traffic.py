"""Where the bytes of a launch go: DRAM, the L2 and its two halves, the data stage of the L1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxemu.counters.launch import (
    ATOMICS,
    EXECUTED,
    GLOBAL_SPACES,
    SECTOR_BYTES,
    Access,
    LaunchRecord,
    MachineCounts,
    MemoryInstruction,
    Space,
)
from ptxemu.model.architecture import GpuModel

L2_SHARE = 0.8
"""Share of the L2 that data stays in under real replacement."""
WRITTEN_FOOTPRINT_SHARE = 0.67
"""Share of the L2 that a launch may touch before lines it has written go to DRAM while it runs."""
DIRTY_SHARE = 0.51
"""Share of the L2 that written lines may take."""
FILLED_SHARE = 0.9
"""Share of the sectors written in parts that DRAM completes before a launch ends."""
CLUSTERS = 8.0
"""Graphics processing clusters, over which the first blocks are spread."""
WRITE_BACK_NORM = 4.0
"""How sharply the write-back begins."""
LINE_BYTES = 128
DEVICE_SPACES = (Space.GLOBAL, Space.GENERIC, Space.LOCAL, Space.TEXTURE)


@dataclass(frozen=True)
class L2Sectors:
    """Sectors as `lts__t_sectors` counts them; `far_reads` of those read came from the far half."""

    reads: float
    writes: float
    far_reads: float


def l2_sectors(record: LaunchRecord, gpu: GpuModel, waves: float) -> L2Sectors:
    """Sectors through the L2, without atomics, which are counted apart; `waves` as Nsight counts them.

    In an L2 of two halves a sector passes through both when an SM asks for one that lives in the other half. Each
    write does so half the time. A read leaves a copy behind, so that of r reads of one sector the chance that one
    had to cross is 1 - 2^-r.
    """
    reads, writes = coalesced_reads(record, gpu, waves), written_sectors(record)
    if gpu.architecture.l2_partitions == 1:
        return L2Sectors(reads, writes, 0.0)
    unique = min(reads, record.unique_read_bytes / SECTOR_BYTES)
    crossing = unique * (1 - 2 ** -(reads / unique)) if unique else 0.0
    return L2Sectors(reads + crossing, 1.5 * writes, crossing)


def coalesced_reads(record: LaunchRecord, gpu: GpuModel, waves: float) -> float:
    """Sectors that SMs ask the L2 for, one for a group of them where they ask at the same time.

    Blocks of the first wave begin together and, as a rule, want the same data at a time; later ones begin when others
    end. Of r reads of a sector, each by a block somewhere among g groups, g (1 - (1 - 1/g)^r) are left; a sector is
    read once by every SM, and then again. Groups are filled one after the other in each of the GPU's clusters, of
    which a small grid leaves none without a block.
    """
    together = gpu.architecture.coalesced_sms
    sectors = record.unique_read_bytes / SECTOR_BYTES
    if together == 1 or not sectors or record.l2_read_sectors <= sectors:
        return record.l2_read_sectors
    sms = min(record.blocks, gpu.gpu.sms)
    groups = min(gpu.gpu.sms / together, max(CLUSTERS, sms / together))
    times = record.l2_read_sectors / sectors
    sweeps = max(1.0, times / sms)
    left: float = sectors * sweeps * groups * (1 - (1 - 1 / groups) ** (times / sweeps))
    first = 1 / max(1.0, waves)
    return first * min(left, record.l2_read_sectors) + (1 - first) * record.l2_read_sectors


def written_sectors(record: LaunchRecord) -> int:
    """Sectors that stores send to the L2."""
    return max(0, record.l2_write_sectors - atomic_sectors(record))


def atomic_sectors(record: LaunchRecord) -> int:
    """Sectors that atomics and reductions touch in the L2."""
    return sum(one.sectors for one in record.accesses(GLOBAL_SPACES, ATOMICS))


def atomic_passes(record: LaunchRecord) -> int:
    """How often they do: lanes of a request that go to one address are sent one after the other."""
    return sum(one.wavefronts for one in record.accesses(GLOBAL_SPACES, ATOMICS))


def bulk_read_sectors(record: LaunchRecord) -> int:
    """Sectors of the L2 that no load instruction asked for: those of bulk copies to shared memory."""
    return max(0, record.l2_read_sectors - sum(one.sectors - one.l1_hit_sectors for one in loads(record)))


def bulk_written_sectors(record: LaunchRecord) -> int:
    """Sectors that no store or atomic instruction wrote: those of bulk copies from shared memory. How much a launch
    with local memory writes of that is not counted: none is known then."""
    if any(one.requests for one in record.accesses((Space.LOCAL,), (Access.STORE,))):
        return 0
    stored = record.accesses(GLOBAL_SPACES, (Access.STORE, *ATOMICS))
    return max(0, record.l2_write_sectors - sum(one.sectors for one in stored))


def sweeps(record: LaunchRecord, waves: float) -> float:
    """How often a mean sector is read, with blocks that run at the same time counted once.

    They find it in the L2 while it is fresh. A block that reads it again does so later, and so do blocks of a later
    wave, of which there may be as many as waves.
    """
    read, sectors = record.l2_read_sectors, record.unique_read_bytes / SECTOR_BYTES
    first = read - min(record.repeated_read_sectors, read - min(read, sectors))
    if not sectors or not first:
        return 1.0
    return max(1.0, read / first * min(first / sectors, max(1.0, waves)))


def dram_bytes(record: LaunchRecord, gpu: GpuModel, warm_bytes: float, waves: float) -> tuple[float, float]:
    """DRAM bytes read and written: what is touched at least once, plus re-reads that outgrow the L2.

    Re-use is lost by how far the footprint exceeds the L2: twice (1 - L2 / footprint), since of a sweep that comes
    again all is lost, and of random reads this share. Only sweeps count that come later (`sweeps`). A lone sector read
    again costs the 64 bytes that DRAM moves at least, in proportion to how sparse the loads are. Writes to one sector
    are taken to meet in the L2; what is missing of sectors that are written in parts is read. Of what is written, the
    L2 keeps what fits its share, (1 + (footprint / share)^p)^(-1/p), at most the lines that may be dirty.
    """
    kept = gpu.gpu.l2_bytes * L2_SHARE
    lost = min(1.0, max(0.0, 2 * (1 - kept / record.unique_bytes))) if record.unique_bytes else 0.0
    again = min(record.l2_read_sectors * SECTOR_BYTES, sweeps(record, waves) * record.unique_read_bytes)
    read_again = max(0.0, again - record.unique_read_bytes)
    first_read = max(0.0, record.unique_read_bytes - warm_bytes)
    written = record.unique_write_bytes - _kept_dirty(record, gpu)
    return first_read + lost * read_again * _granule_waste(record) + filled_bytes(record), written


def filled_bytes(record: LaunchRecord) -> float:
    """Bytes that DRAM brings for sectors of which stores wrote parts only.

    How many those are is not counted: if what was stored falls short of the sectors written by a share, at least that
    share of the sectors is incomplete, and with half of every sector missing all of them. What no store instruction
    wrote came in bulk, whole.
    """
    if not record.unique_write_bytes:
        return 0.0
    stored = list(record.accesses(GLOBAL_SPACES, (Access.STORE, *ATOMICS)))
    written = bulk_written_sectors(record) * SECTOR_BYTES + sum(one.lanes * one.bytes_per_lane for one in stored)
    missing = max(0.0, 1 - written / record.unique_write_bytes)
    return FILLED_SHARE * min(1.0, 2 * missing) * record.unique_write_bytes


def sparse_lines(record: LaunchRecord) -> float:
    """Sectors of the lines that stores write to, against those they write: 1 to 4."""
    sectors = sum(one.sectors for one in stores(record))
    lines = sum(one.wavefronts for one in stores(record))
    return min(4.0, max(1.0, 4 * lines / sectors)) if sectors else 1.0


def _kept_dirty(record: LaunchRecord, gpu: GpuModel) -> float:
    """Bytes that the launch has written and leaves in the L2."""
    room, dirty = (gpu.gpu.l2_bytes * share for share in (WRITTEN_FOOTPRINT_SHARE, DIRTY_SHARE))
    kept = record.unique_write_bytes * _smooth_room(record.unique_bytes / room)
    return kept * _smooth_room(kept / dirty)


def _smooth_room(filled: float) -> float:
    """min(1, 1 / filled) with the corner rounded."""
    room: float = (1 + filled**WRITE_BACK_NORM) ** (-1 / WRITE_BACK_NORM)
    return room


def _granule_waste(record: LaunchRecord) -> float:
    loads = list(record.accesses(DEVICE_SPACES, (Access.LOAD,)))
    sectors = sum(one.sectors for one in loads)
    ideal = sum(min(one.ideal_sectors, one.sectors) for one in loads)
    return 2 - ideal / sectors if sectors else 1.0


def evicted_bytes(record: LaunchRecord, gpu: GpuModel) -> float:
    """Bytes of another buffer's written lines that the reads of a launch push out of an L2 that was full of them.

    Writes take the place of other written lines: on an H200 a fill is hardly slower in such an L2, a copy less so than
    a reduction.
    """
    return DIRTY_SHARE * min(gpu.gpu.l2_bytes, record.unique_read_bytes + filled_bytes(record))


def l2_bytes(record: LaunchRecord, gpu: GpuModel) -> float:
    """Bytes that take the L2 as long as everything the launch asks of it, at `l2_bandwidth`.

    Sectors that DRAM has to bring, lines that are looked up for loads, sectors written and the lines they lie in, each
    with its weight.
    """
    timing = gpu.architecture.timing
    missed = min(record.l2_read_sectors, record.unique_read_bytes / SECTOR_BYTES)
    sectors = (
        timing.l2_miss_weight * missed
        + timing.l2_line_weight * sum(_missed_lines(one) for one in loads(record))
        + timing.l2_write_weight * written_sectors(record)
        + timing.l2_written_line_weight * sum(one.wavefronts for one in stores(record))
    )
    return SECTOR_BYTES * sectors


def l2_lookup_bytes(record: LaunchRecord, gpu: GpuModel) -> float:
    """The same of the lines alone that are looked up: what `gpu__compute_memory_throughput` knows of an L2."""
    timing = gpu.architecture.timing
    written = sum(one.wavefronts for one in stores(record))
    read = sum(_missed_lines(one) for one in loads(record))
    weight = timing.l2_write_weight + timing.l2_written_line_weight
    return SECTOR_BYTES * (timing.l2_line_weight * read + weight * written)


def _missed_lines(one: MemoryInstruction) -> float:
    return one.wavefronts * (1 - one.l1_hit_sectors / one.sectors) if one.sectors else 0.0


def data_stage_clocks(record: LaunchRecord, machine: MachineCounts, gpu: GpuModel) -> float:
    """Clocks of the L1's data stage, all SMs together: passes of shared and device memory, or stores.

    A device request takes one pass for each 128 bytes and shares of one for further lines it touches and for sectors
    that the L2 brings; a store takes clocks for each sector and each line. Tensor cores read operands there, too.
    """
    timing = gpu.architecture.timing
    device = sum(
        least_passes(one) + timing.passes_per_line * (0.0 if one.op in ATOMICS else further_lines(one))
        for one in record.accesses(DEVICE_SPACES, EXECUTED)
    )
    filled = timing.passes_per_fill * sum(one.sectors - one.l1_hit_sectors for one in loads(record))
    stored = sum(
        timing.store_sector_clocks * one.sectors + timing.store_line_clocks * one.wavefronts for one in stores(record)
    )
    return max(machine.shared_passes + device + filled + operand_clocks(record, machine), stored)


def operand_clocks(record: LaunchRecord, machine: MachineCounts) -> float:
    """Clocks of shared memory, all SMs together, for operands of products by warpgroups and the tiles that bulk copies
    bring for them: 128 bytes each, whoever asks (32 banks of 4 bytes: CUDA C++ Programming Guide)."""
    if not machine.operand_bytes:
        return 0.0
    return (machine.operand_bytes + bulk_read_sectors(record) * SECTOR_BYTES) / LINE_BYTES


def least_passes(one: MemoryInstruction) -> float:
    """Passes, or lines, that the bytes of the requests fill."""
    return max(one.requests, one.lanes * one.bytes_per_lane / LINE_BYTES)


def further_lines(one: MemoryInstruction) -> float:
    """Lines that the requests touch beyond those."""
    return max(0.0, one.wavefronts - least_passes(one))


def lookup_clocks(record: LaunchRecord, gpu: GpuModel) -> float:
    """Clocks for which the L1, all SMs together, looks up the lines of loads."""
    return sum(one.wavefronts for one in loads(record)) / gpu.architecture.timing.lines_per_clk


def loads(record: LaunchRecord) -> Iterator[MemoryInstruction]:
    """Loads from device memory."""
    return record.accesses(DEVICE_SPACES, (Access.LOAD,))


def stores(record: LaunchRecord) -> Iterator[MemoryInstruction]:
    """Stores to device memory."""
    return record.accesses(DEVICE_SPACES, (Access.STORE,))
