"""One kernel launch as the emulator's core has counted it: exact counts without times.

Counts are of PTX instructions (ptxas may merge or expand some), per warp unless the name says thread. Nothing is
derived here beyond sums over the listed memory instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from ptxemu.machine.schedule import WarpPath

SECTOR_BYTES = 32
WARP_THREADS = 32


class Space(StrEnum):
    """Where a memory instruction goes."""

    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    CONST = "const"
    PARAM = "param"
    GENERIC = "generic"
    TEXTURE = "texture"
    """Through a texture or surface."""


class Access(StrEnum):
    """What a memory instruction does; a reduction is an atomic whose result nobody reads."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    REDUCTION = "reduction"
    MERGED_LOAD = "merged_load"
    """A load that the machine code executes as part of another, see `ptx/analysis/merges.py`."""


EXECUTED = (Access.LOAD, Access.STORE, Access.ATOMIC, Access.REDUCTION)
"""Everything but what is part of another access."""
GLOBAL_SPACES = (Space.GLOBAL, Space.GENERIC)
ATOMICS = (Access.ATOMIC, Access.REDUCTION)


@dataclass(frozen=True)
class MemoryInstruction:
    """Traffic of one memory instruction of the PTX over the whole launch."""

    space: Space
    op: Access
    bytes_per_lane: int
    requests: int
    """Warp instructions executed."""
    lanes: int
    """Threads that took part, summed over requests."""
    sectors: int
    """32-byte sectors touched, summed over requests (global and local)."""
    ideal_sectors: int
    """Sectors that the same bytes would need when contiguous and aligned."""
    l1_hit_sectors: int
    l1_shared_sectors: int
    """Of these, those on lines that another warp had touched last: on a GPU it may have asked for them just before."""
    missed_requests: int
    """Requests of which the L1 lacked a sector at least: lanes that walk through rows of their own need another sector
    each at a time of its own, so that nearly all requests wait for one though most of their sectors are there."""
    shared_requests: int
    """Of the others, those with sectors on lines that another warp had touched last."""
    wavefronts: int
    """Passes through the L1 / shared-memory data stage; above the least possible, they are conflicts. Of device memory:
    lines, and of its atomics passes in the L2."""
    ptx_line: int | None = None
    source_file: str | None = None
    source_line: int | None = None
    rounds: int = 0
    """Of atomics of two bytes in device memory: times that the lanes of a request go round to take turns at words of
    four bytes. Of atomics in shared memory: the lanes at the address with most, summed over requests."""
    bank_turns: int = 0
    """Of atomics in shared memory: the lanes in the bank with most, summed over requests."""

    @property
    def conflicts(self) -> int:
        """Shared-memory passes beyond the least that the requested bytes need, 128 a pass and one a request."""
        least = max(self.requests, -(-self.lanes * self.bytes_per_lane // 128))
        return max(0, self.wavefronts - least)


@dataclass(frozen=True)
class LineCounts:
    """Warp instructions executed for one source line (known with `-lineinfo`)."""

    source_file: str
    source_line: int
    warp_instructions: int


@dataclass(frozen=True)
class MachineCounts:
    """Warp instructions of a launch as machine code, by what executes them; see `machine/executions.py`."""

    instructions: float
    alu: float
    fma: float
    fma_heavy: float
    """Passes of those of the FMA pipe that only its heavy half executes."""
    halves: float
    """Those of the FMA pipe that take both of its halves: half precision."""
    xu: float
    lsu: float
    adu: float
    tensor_halves: float
    """Half-precision arithmetic on the tensor cores, with which ptxas also writes constants."""
    shared_passes: float
    """Passes of shared memory; shuffles and the reading of thread indices take one each."""
    spill_loads: float
    """Loads from local memory that the PTX knows nothing of."""
    spill_stores: float
    operand_bytes: float = 0.0
    """What tensor cores read of shared memory for products by warpgroups."""
    guessed: float = 0.0
    """Of the instructions: those in blocks of which nothing tells how often they are executed."""
    path: WarpPath | None = None
    """What one warp executes and waits for; not known where the code is not at hand."""


def _spill(op: Access, requests: int) -> MemoryInstruction:
    """Registers of a whole warp to or from local memory."""
    sectors = requests * WARP_THREADS * 4 // SECTOR_BYTES
    return MemoryInstruction(
        space=Space.LOCAL,
        op=op,
        bytes_per_lane=4,
        requests=requests,
        lanes=requests * WARP_THREADS,
        sectors=sectors,
        ideal_sectors=sectors,
        l1_hit_sectors=sectors if op is Access.LOAD else 0,
        l1_shared_sectors=0,
        missed_requests=0,
        shared_requests=0,
        wavefronts=requests,
    )


@dataclass(frozen=True)
class LaunchRecord:
    """One counted kernel launch."""

    kernel: str
    """Mangled name."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_shared: int
    dynamic_shared: int
    local_bytes: int
    blocks: int
    warps: int
    warp_instructions: int
    thread_instructions: int
    classes: dict[str, int]
    """Instruction class -> warp instructions."""
    thread_classes: dict[str, int]
    """Instruction class -> threads that executed one, without those that a predicate switched off."""
    tensor_fma: int
    """Multiply-adds of the tensor cores, each in those of fp16 that take as long (tf32: 2, 8 bits: 1/2, fp64: 16)."""
    operations: dict[str, int]
    """Operation of the core -> warp instructions; finer than the classes, which are what pipes they need."""
    waits: dict[str, int]
    """Kind of latency -> warp instructions on the longest chain of dependent ones, see `ptx/analysis/waits.py`."""
    ptx_lines: dict[int, int]
    """Line of the PTX -> warp instructions; of several that one line becomes, the most."""
    longest_warp_instructions: int
    """Warp instructions of the warp that executed most."""
    hottest_atomic_passes: int
    """Passes of global atomics at the 512 bytes with most: a request takes one for each sector, and one more whenever
    another of its lanes goes to the same address."""
    memory: tuple[MemoryInstruction, ...]
    l2_read_sectors: int
    l2_write_sectors: int
    unique_read_bytes: int
    """32-byte granules read at least once, in bytes."""
    unique_write_bytes: int
    branches: int
    divergent_branches: int
    barriers: int
    lines: tuple[LineCounts, ...] = ()
    executed_blocks: int | None = None
    """Blocks that were executed, when the launch was sampled: all counts are then scaled from theirs to all blocks."""
    warpgroup_fma: int = 0
    """Those of `wgmma`, which keeps the tensor cores busier than `mma` does; not among `tensor_fma`."""
    machine: MachineCounts | None = None
    """What its machine code executed, where that is at hand; not of the core, see `machine_code.py`."""
    hottest_line_passes: int = 0
    """As `hottest_atomic_passes`, at the 128-byte line with most."""
    hottest_word_lanes: int = 0
    """Lanes that went to the same word of four bytes with atomics of two, at the word with most."""
    resident_warps: int = 0
    """Warps that are on the GPU at once; of launches with such atomics."""
    repeated_read_sectors: int = 0
    """Of `l2_read_sectors`: asked for by a block that had asked for them before. From one line in 64, and without those
    of local memory."""
    module: str | None = None
    """File of the module that the program has loaded it from; None for its own kernels."""

    @property
    def key(self) -> str:
        """What tells its kernel from those of all modules of the program."""
        return self.kernel if self.module is None else f"{self.module}:{self.kernel}"

    @property
    def threads_per_block(self) -> int:
        """Threads of one block."""
        x, y, z = self.block
        return x * y * z

    @property
    def l2_bytes(self) -> int:
        """Bytes between the SMs and the L2, both ways."""
        return (self.l2_read_sectors + self.l2_write_sectors) * SECTOR_BYTES

    @property
    def unique_bytes(self) -> int:
        """Bytes touched at least once: the least DRAM traffic with a cold L2."""
        return self.unique_read_bytes + self.unique_write_bytes

    def count(self, *classes: str) -> int:
        """Warp instructions of the named classes together; a class the kernel never executed counts nothing."""
        return sum(self.classes.get(name, 0) for name in classes)

    def with_spills(self, machine: MachineCounts) -> Self:
        """The same launch with its spills as accesses to local memory: loads hit the L1, stores go on to the L2."""
        added = []
        for op, requests in ((Access.LOAD, machine.spill_loads), (Access.STORE, machine.spill_stores)):
            count = round(requests)
            if count:
                added.append(_spill(op, count))
        if not added:
            return self
        stored = sum(one.sectors for one in added if one.op is Access.STORE)
        return replace(self, memory=(*self.memory, *added), l2_write_sectors=self.l2_write_sectors + stored)

    def without_local_memory(self) -> Self:
        """The same launch with its local arrays in registers, where ptxas has found room for them."""
        local = [one for one in self.memory if one.space is Space.LOCAL]
        if not local:
            return self
        loads = sum(one.sectors - one.l1_hit_sectors for one in local if one.op is Access.LOAD)
        stores = sum(one.sectors for one in local if one.op is Access.STORE)
        return replace(
            self,
            memory=tuple(one for one in self.memory if one.space is not Space.LOCAL),
            l2_read_sectors=max(0, self.l2_read_sectors - loads),
            l2_write_sectors=max(0, self.l2_write_sectors - stores),
        )

    def accesses(self, spaces: Iterable[Space], ops: Iterable[Access]) -> Iterator[MemoryInstruction]:
        """Memory instructions of these spaces and operations."""
        wanted_spaces, wanted_ops = frozenset(spaces), frozenset(ops)
        return (one for one in self.memory if one.space in wanted_spaces and one.op in wanted_ops)
