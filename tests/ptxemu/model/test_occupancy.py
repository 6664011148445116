"""Occupancy against values worked out by hand with the CUDA occupancy calculator's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxemu.errors import InvalidInput
from ptxemu.model.occupancy import Limiter, blocks_by_carve_out, occupancy, sm_limits


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limiter"),
    [
        # 8 warps a block, 64 warp slots
        ("sm_90", 256, 32, 0, 8, Limiter.WARPS),
        # 40 regs x 32 = 1280 a warp; 16384 // 1280 = 12 warps a quarter, 48 an SM, 6 blocks
        ("sm_90", 256, 40, 0, 6, Limiter.REGISTERS),
        # 33 x 32 = 1056, rounded up to 1280: the same 6 blocks as with 40
        ("sm_90", 256, 33, 0, 6, Limiter.REGISTERS),
        # 255 x 32 = 8160 -> 8192; 2 warps a quarter, 8 an SM
        ("sm_90", 256, 255, 0, 1, Limiter.REGISTERS),
        # one warp a block: 32 block slots before 64 warps
        ("sm_90", 32, 16, 0, 32, Limiter.BLOCKS),
        # 48 KB + 1 KB = 49 KB of 228 KB
        ("sm_90", 128, 32, 48 * 1024, 4, Limiter.SHARED_MEMORY),
        # the opt-in maximum fits exactly once
        ("sm_90a", 128, 32, 227 * 1024, 1, Limiter.SHARED_MEMORY),
        # one byte more does not fit
        ("sm_90", 128, 32, 227 * 1024 + 1, 0, Limiter.SHARED_MEMORY),
        # 164 KB // 33 KB
        ("sm_80", 128, 32, 32 * 1024, 4, Limiter.SHARED_MEMORY),
        # 48 warp slots on Ada: 1024 threads fit once, two thirds full
        ("sm_89", 1024, 32, 0, 1, Limiter.WARPS),
        # 100 KB // (16 KB + 1 KB)
        ("sm_89", 64, 32, 16 * 1024, 5, Limiter.SHARED_MEMORY),
        # a ragged block of 33 threads takes 2 warps
        ("sm_90", 33, 16, 0, 32, Limiter.WARPS),
    ],
)
def test_blocks_per_sm(arch: str, threads: int, registers: int, shared: int, blocks: int, limiter: Limiter) -> None:
    found = occupancy(sm_limits(arch), threads=threads, registers=registers, shared_bytes=shared)
    assert found.blocks_per_sm == blocks
    assert found.limiter is limiter


def test_fraction_counts_warps() -> None:
    found = occupancy(sm_limits("sm_89"), threads=1024, registers=32, shared_bytes=0)
    assert found.fraction == pytest.approx(32 / 48)
    assert found.warps_per_sm == 32


def test_unknown_architecture_says_which_are_known() -> None:
    with pytest.raises(InvalidInput) as caught:
        sm_limits("sm_70")
    assert "sm_90" in caught.value.hint


@given(threads=st.integers(1, 1024), registers=st.integers(1, 254), shared=st.integers(0, 200_000))
def test_more_of_a_resource_never_fits_more_blocks(threads: int, registers: int, shared: int) -> None:
    limits = sm_limits("sm_90")
    here = occupancy(limits, threads=threads, registers=registers, shared_bytes=shared).blocks_per_sm
    more_registers = occupancy(limits, threads=threads, registers=registers + 1, shared_bytes=shared)
    more_shared = occupancy(limits, threads=threads, registers=registers, shared_bytes=shared + 512)
    assert more_registers.blocks_per_sm <= here
    assert more_shared.blocks_per_sm <= here


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks"),
    [
        # no shared memory: 32 KB for the driver's 1 KB of each, less for few large blocks
        (256, 32, 0, 32),
        (512, 16, 0, 16),
        (1024, 64, 0, 8),
        # twice as many as fit: 16 of 2 KB are 32 KB, 16 of 2,176 bytes are more, so it is 64
        (256, 16, 1024, 16),
        (256, 32, 1056, 30),
        # 6 by registers
        (256, 40, 4096, 12),
        # twice 8 blocks of 9 KB would be 144 KB: 132 hold all that fit
        (256, 31, 8192, 14),
        # 6 blocks of 29 KB need more than that
        (128, 80, 28672, 6),
        # two blocks of 1,024 threads get no room for more
        (1024, 16, 4096, 3),
    ],
)
def test_carve_out_is_the_drivers(threads: int, registers: int, shared: int, blocks: int) -> None:
    """What Nsight Compute gave of `launch__occupancy_limit_shared_mem` on an H200."""
    limits = sm_limits("sm_90")
    fit = occupancy(limits, threads=threads, registers=registers, shared_bytes=shared)
    assert blocks_by_carve_out(limits, fit, shared) == blocks


@given(threads=st.integers(1, 1024), registers=st.integers(1, 64), shared=st.integers(0, 200_000))
def test_carve_out_holds_the_blocks_that_fit(threads: int, registers: int, shared: int) -> None:
    limits = sm_limits("sm_90")
    fit = occupancy(limits, threads=threads, registers=registers, shared_bytes=shared)
    assert fit.blocks_per_sm <= blocks_by_carve_out(limits, fit, shared) <= max(fit.by_shared, 1)
