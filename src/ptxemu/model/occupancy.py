"""Theoretical occupancy of a launch, by the rules of the CUDA occupancy calculator.

How many blocks one SM holds at once is the least of four limits: block slots, warp slots, registers, shared memory.
Pure arithmetic over public per-architecture limits (CUDA C++ Programming Guide, "Compute Capabilities", and the
`cuda_occupancy.h` rules); nothing here looks at a GPU, and what occupancy was achieved is a profiler's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ptxemu.counters.launch import WARP_THREADS
from ptxemu.errors import InvalidInput


class Limiter(StrEnum):
    """The resource that stops one more block from fitting on an SM."""

    WARPS = "warps"
    BLOCKS = "blocks"
    REGISTERS = "registers"
    SHARED_MEMORY = "shared_memory"


@dataclass(frozen=True)
class SmLimits:
    """What one SM offers. The granularities have been the same from sm_80 to sm_100.

    Attributes:
        warps: resident warps.
        blocks: resident blocks.
        shared_bytes: shared memory at its largest carve-out.
        registers: 32-bit registers.
        register_unit: registers are allocated per warp in multiples of this.
        warp_unit: warps are placed over this many sub-partitions, each with its share of the registers.
        shared_unit: shared memory is allocated per block in multiples of this many bytes.
        shared_reserved: bytes of shared memory that the driver takes from every block.
        carve_outs: bytes of the SM's memory that the driver makes shared memory, where its rule is known.
    """

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 65536
    register_unit: int = 256
    warp_unit: int = 4
    shared_unit: int = 128
    shared_reserved: int = 1024
    carve_outs: tuple[int, ...] = ()

    @property
    def shared_per_block(self) -> int:
        """Most shared memory a block may ask for, in bytes."""
        return self.shared_bytes - self.shared_reserved


_KB = 1024
_HOPPER_CARVE_OUTS = tuple(size * _KB for size in (8, 16, 32, 64, 100, 132, 164, 196, 228))
_ROOMY_CARVE_OUT = 132 * _KB
"""Up to here the driver leaves room for more blocks than fit otherwise; it leaves the L1 nearly half of the memory."""
_LIMITS = {
    "sm_80": SmLimits(warps=64, blocks=32, shared_bytes=164 * 1024),
    "sm_86": SmLimits(warps=48, blocks=16, shared_bytes=100 * 1024),
    "sm_89": SmLimits(warps=48, blocks=24, shared_bytes=100 * 1024),
    "sm_90": SmLimits(warps=64, blocks=32, shared_bytes=228 * 1024, carve_outs=_HOPPER_CARVE_OUTS),
    "sm_100": SmLimits(warps=64, blocks=32, shared_bytes=228 * 1024),
    "sm_120": SmLimits(warps=48, blocks=24, shared_bytes=100 * 1024),
}


def sm_limits(arch: str) -> SmLimits:
    """Limits of an architecture named `sm_90` or `sm_90a`. Raises InvalidInput for one that is not in the table."""
    limits = _LIMITS.get(arch.rstrip("af"))
    if limits is None:
        raise InvalidInput(f"no occupancy limits for {arch}", hint=f"known: {', '.join(_LIMITS)}")
    return limits


@dataclass(frozen=True)
class Occupancy:
    """Blocks per SM that each resource allows, and what follows."""

    by_warps: int
    by_blocks: int
    by_registers: int
    by_shared: int
    warps_per_block: int
    max_warps: int

    @property
    def blocks_per_sm(self) -> int:
        """Blocks one SM holds at once; 0 when the launch cannot run at all."""
        return min(self.by_warps, self.by_blocks, self.by_registers, self.by_shared)

    @property
    def limiter(self) -> Limiter:
        """The tightest resource; of equal ones, the one that a rewrite can hardly relax comes first."""
        limits = {
            Limiter.WARPS: self.by_warps,
            Limiter.BLOCKS: self.by_blocks,
            Limiter.REGISTERS: self.by_registers,
            Limiter.SHARED_MEMORY: self.by_shared,
        }
        return min(limits, key=limits.__getitem__)

    @property
    def warps_per_sm(self) -> int:
        """Warps one SM holds at once."""
        return self.blocks_per_sm * self.warps_per_block

    @property
    def fraction(self) -> float:
        """Resident warps against the SM's warp slots, 0 to 1."""
        return self.warps_per_sm / self.max_warps


def occupancy(limits: SmLimits, *, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Theoretical occupancy of blocks of `threads` threads.

    Args:
        limits: what one SM offers.
        threads: threads per block, at least 1.
        registers: registers per thread as ptxas reports them.
        shared_bytes: static plus dynamic shared memory per block, without the driver's reserve.
    """
    warps_per_block = -(-threads // WARP_THREADS)
    return Occupancy(
        by_warps=limits.warps // warps_per_block,
        by_blocks=limits.blocks,
        by_registers=_blocks_by_registers(limits, registers, warps_per_block),
        by_shared=_blocks_by_shared(limits, shared_bytes),
        warps_per_block=warps_per_block,
        max_warps=limits.warps,
    )


def blocks_by_carve_out(limits: SmLimits, fit: Occupancy, shared_bytes: int) -> int:
    """Blocks that the shared memory holds which the driver carves out for a launch.

    Where blocks use none, enough for four times as many as there are warps for, 32 KB at most. Else for twice as many
    as fit, the more blocks the less beyond them, and for no more of the largest blocks, as long as that is not over
    132 KB; and for those that fit in any case. Read off 423 launches on an H200 (driver 580), where it holds for each;
    of other GPUs the rule is not known, and all of the memory is taken.

    Args:
        limits: what one SM offers.
        fit: of the launch.
        shared_bytes: as for `occupancy`.
    """
    if not limits.carve_outs:
        return fit.by_shared
    size = _round_up(shared_bytes + limits.shared_reserved, limits.shared_unit)
    if shared_bytes == 0:
        wanted = min(32 * _KB, 4 * min(fit.by_warps, fit.by_blocks) * _KB)
    else:
        blocks = fit.blocks_per_sm
        roomy = min(2 * blocks, (blocks + limits.blocks) // 2) if blocks > 2 else blocks
        wanted = max(min(roomy * size, _ROOMY_CARVE_OUT), blocks * size)
    return (
        next(one for one in (*limits.carve_outs, limits.shared_bytes) if one >= min(wanted, limits.shared_bytes))
        // size
    )


def _blocks_by_registers(limits: SmLimits, registers: int, warps_per_block: int) -> int:
    per_warp = _round_up(max(registers, 1) * WARP_THREADS, limits.register_unit)
    warps = limits.registers // limits.warp_unit // per_warp * limits.warp_unit
    return warps // warps_per_block


def _blocks_by_shared(limits: SmLimits, shared_bytes: int) -> int:
    return limits.shared_bytes // _round_up(shared_bytes + limits.shared_reserved, limits.shared_unit)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
