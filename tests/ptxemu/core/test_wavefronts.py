"""Passes of shared-memory requests, as counted and by their definition: the busiest bank decides in each phase."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu

_TYPES = {4: "b32", 8: "v2.b32", 16: "v4.b32"}
_REGISTERS = {4: "%v0", 8: "{%v0, %v1}", 16: "{%v0, %v1, %v2, %v3}"}
_METRIC = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
_RNG = np.random.default_rng(5)


def kernel(width: int) -> str:
    """A block is a warp; each lane reads so many bytes of shared memory where the array says, or nothing."""
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry gather(.param .u64 offsets, .param .u64 sums)
{{
    .shared .align 16 .b8 memory[16384];
    .reg .pred %p; .reg .b32 %lane, %block, %offset, %at, %v<4>; .reg .b64 %from, %to;
    mov.u32 %lane, %tid.x; mov.u32 %block, %ctaid.x; mad.lo.u32 %lane, %block, 32, %lane;
    ld.param.u64 %from, [offsets]; ld.param.u64 %to, [sums];
    mad.wide.u32 %from, %lane, 4, %from; mad.wide.u32 %to, %lane, 4, %to;
    ld.global.u32 %offset, [%from]; setp.ge.s32 %p, %offset, 0;
    mov.u32 %at, memory; add.u32 %at, %at, %offset; mov.u32 %v0, 0;
    @%p ld.shared.{_TYPES[width]} {_REGISTERS[width]}, [%at];
    st.global.u32 [%to], %v0;
    ret;
}}
"""


def expected(offsets: np.ndarray, width: int) -> int:
    """Wavefronts of one request, at least one."""
    lanes = 128 // width
    total = 0
    for phase in offsets.reshape(-1, lanes):
        words = {int(at) // 4 + k for at in phase if at >= 0 for k in range(width // 4)}
        total += max(np.bincount([word % 32 for word in words])) if words else 0
    return total


def patterns(width: int) -> list[np.ndarray]:
    """Strides, near and far random places, few of them, some lanes left out."""
    most = 16384 // width
    lanes = np.arange(32)
    steps = [lanes * step % most for step in (0, 1, 2, 3, 4, 8, 16, 32, 33, 64, 96)]
    near = [_RNG.integers(0, window, 32) + 7 for window in (2, 20, 60, 95, 130) for _ in range(3)]
    far = [_RNG.integers(0, most, 32) for _ in range(4)] + [_RNG.integers(0, 8, 32) * 32 for _ in range(4)]
    places = [one * width for one in (*steps, *near, *far)]
    return [*places, *(np.where(_RNG.random(32) < 0.5, one, -1) for one in places)]


def counted(gather: ptxemu.PtxModule, requests: list[np.ndarray]) -> float:
    """The metric of one launch, with a block for each request."""
    offsets = np.concatenate(requests).astype(np.int32)
    return gather.launch("gather", len(requests), 32, [offsets, np.zeros_like(offsets)]).metrics[_METRIC]


@pytest.mark.usefixtures("toolkit")
@pytest.mark.parametrize("width", [4, 8, 16])
def test_wavefronts_are_the_busiest_banks(width: int) -> None:
    gather = ptxemu.load_ptx(kernel(width))
    cases = [one for one in patterns(width) if len(set(one[one >= 0])) > 1]
    # The metric counts passes that are not the requests': those that broadcasts take beyond one each.
    beyond = counted(gather, [np.zeros(32, int)] * len(cases)) - len(cases)
    assert counted(gather, cases) - beyond == sum(expected(one, width) for one in cases)


def sums(operand: str) -> str:
    """A block is a warp; each lane adds to a word of shared memory, whose old value nobody reads."""
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 offsets, .param .u64 sums)
{{
    .shared .align 16 .b8 memory[16384];
    .reg .b32 %lane, %block, %offset, %at, %old; .reg .b64 %from, %to;
    mov.u32 %lane, %tid.x; mov.u32 %block, %ctaid.x; mad.lo.u32 %lane, %block, 32, %lane;
    ld.param.u64 %from, [offsets]; ld.param.u64 %to, [sums];
    mad.wide.u32 %from, %lane, 4, %from; mad.wide.u32 %to, %lane, 4, %to;
    ld.global.u32 %offset, [%from];
    mov.u32 %at, memory; add.u32 %at, %at, %offset;
    atom.shared.add.u32 %old, [%at], {operand};
    bar.sync 0;
    ld.shared.u32 %old, [memory];
    st.global.u32 [%to], %old;
    ret;
}}
"""


@pytest.mark.usefixtures("toolkit")
@pytest.mark.parametrize(("operand", "merged"), [("1", True), ("%lane", False)])
def test_atomics_take_a_pass_for_each_lane_in_a_bank_unless_they_count_lanes(operand: str, merged: bool) -> None:
    add = ptxemu.load_ptx(sums(operand))
    places = [np.arange(32) // lanes * 4 for lanes in (1, 4, 32)] + [np.arange(32) % 4 * 128]

    def passes(offsets: np.ndarray) -> float:
        given = offsets.astype(np.int32)
        return add.launch("add", 1, 32, [given, np.zeros_like(given)]).metrics[_METRIC]

    alone, *found = (passes(one) for one in places)
    # Four lanes at a word, all of them, and eight at each of four words of one bank, where all take turns on an H200.
    assert [one - alone for one in found] == ([0, 0, 3] if merged else [3, 31, 31])
