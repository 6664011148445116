"""PTX programs with the values that the PTX ISA gives them: what an operand means, not what an operation computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ptx_machine import HEAD, Launch, run

from ptxemu.core.build import ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.ptx.assembler import assemble

ALL = 0xFFFFFFFF
LANE = np.arange(32, dtype=np.uint32)
EVEN = 0x55555555
ILLEGAL_INSTRUCTION = 715

Expected = list[int | np.ndarray]

VECTORS: dict[str, tuple[str, Expected]] = {
    # A constant predicate is the same for every lane, whatever its number.
    "ballot_of_a_literal": ("vote.sync.ballot.b32 %r0, 1, -1; vote.sync.ballot.b32 %r1, 0, -1;", [ALL, 0]),
    "ballot_of_an_odd_literal": (
        "vote.sync.ballot.b32 %r0, 4, -1; mov.u32 %r1, 0;"
        "@%even vote.sync.ballot.b32 %r1, 1, 0x55555555; vote.sync.ballot.b32 %r2, !%even, -1;",
        [ALL, np.where(LANE % 2, 0, EVEN), 0xAAAAAAAA],
    ),
    "votes_of_literals": (
        "vote.sync.all.pred %p0, 1, -1; selp.u32 %r0, 1, 0, %p0;"
        "vote.sync.any.pred %p0, 0, -1; selp.u32 %r1, 1, 0, %p0;"
        "vote.sync.uni.pred %p0, 1, -1; selp.u32 %r2, 1, 0, %p0;",
        [1, 0, 1],
    ),
    "a_literal_moved_to_a_predicate_guards_every_lane": (
        "mov.pred %p0, 1; mov.u32 %r0, 3; @%p0 mov.u32 %r0, 5; mov.pred %p0, 0; @%p0 mov.u32 %r0, 7;"
        "selp.u32 %r1, 11, 12, 1; and.pred %p0, %even, 1; selp.u32 %r2, 1, 0, %p0;",
        [5, 11, 1 - LANE % 2],
    ),
    "comparisons_combined_with_literals": (
        "setp.lt.and.u32 %p0|%p1, %lane, 8, 1; selp.u32 %r0, 1, 0, %p0; selp.u32 %r1, 1, 0, %p1;"
        "set.lt.or.u32.u32 %r2, %lane, 8, 1;",
        [LANE < 8, LANE >= 8, ALL],
    ),
    "barrier_reductions_of_literals": (
        "barrier.sync.aligned 0; barrier.red.popc.aligned.u32 %r0, 0, 1; barrier.red.and.aligned.pred %p0, 0, 1;"
        "selp.u32 %r1, 1, 0, %p0; barrier.red.or.aligned.pred %p0, 0, 0; selp.u32 %r2, 1, 0, %p0;",
        [32, 1, 0],
    ),
    "other_warp_operations_on_literals": (
        "shfl.sync.idx.b32 %r0, 9, 3, 31, -1; match.any.sync.b32 %r1, 5, -1; redux.sync.add.u32 %r2, 3, -1;"
        "match.all.sync.b64 %r3|%p0, 5, -1; selp.u32 %r4, 1, 0, %p0;",
        [9, ALL, 96, ALL, 1],
    ),
    "special_registers_in_other_widths": (
        "mov.u16 %h0, %tid.x; cvt.u32.u16 %r0, %h0; add.u64 %l0, 0x100000000, 0; cvt.u64.u32 %l1, %laneid;"
        "add.u64 %l0, %l0, %l1; mov.b64 {%r1, %r2}, %l0;",
        [LANE, LANE, 1],
    ),
    # The flag after a subtraction is set where nothing was borrowed; what reads it adds it.
    "add_with_carry": (
        "add.cc.u32 %r3, %lane, 0xfffffff0; addc.u32 %r0, 0, 0; addc.cc.u32 %r1, %r0, 0xffffffff; addc.u32 %r2, 7, 0;",
        [LANE >= 16, ALL + (LANE >= 16) * 2, 7 + (LANE >= 16)],
    ),
    "subtract_with_borrow": (
        "sub.cc.u32 %r0, %lane, 16; subc.cc.u32 %r1, 0, 0; subc.u32 %r2, 5, 1;",
        [LANE - np.uint32(16), np.where(LANE < 16, ALL, 0), np.where(LANE < 16, 3, 4)],
    ),
    "add_with_the_flag_of_a_subtraction": (
        "sub.cc.u32 %r3, %lane, 16; addc.u32 %r0, 0, 0; add.cc.u32 %r3, %lane, 0xfffffff0; subc.u32 %r1, 9, 4;",
        [LANE >= 16, np.where(LANE >= 16, 5, 4)],
    ),
    "the_same_in_64_bits": (
        "cvt.u64.u32 %l0, %lane; sub.cc.u64 %l1, %l0, 16; addc.u64 %l2, 0, 0; cvt.u32.u64 %r0, %l2;"
        "sub.cc.u64 %l1, %l0, 16; subc.cc.u64 %l2, 0, 0; addc.u64 %l3, 0, 0;"
        "cvt.u32.u64 %r1, %l2; cvt.u32.u64 %r2, %l3;"
        "add.cc.u64 %l1, %l0, 0xfffffffffffffff0; addc.u64 %l2, 3, 0; cvt.u32.u64 %r3, %l2;",
        [LANE >= 16, np.where(LANE < 16, ALL, 0), LANE >= 16, 3 + (LANE >= 16)],
    ),
    "multiply_and_add_with_carry": (
        "mad.lo.cc.u32 %r0, %lane, 0x10000000, 0xf0000000; madc.hi.u32 %r1, %lane, 0x10000000, 0;"
        "mad.hi.cc.u32 %r3, %lane, 0xffffffff, 0xfffffff8; madc.lo.cc.u32 %r4, 1, 0, 0xffffffff; addc.u32 %r2, 0, 0;",
        [
            LANE * np.uint32(0x10000000) + np.uint32(0xF0000000),
            (LANE.astype(np.uint64) * 0x10000000 + 0xF0000000 >> np.uint64(32)),
            (LANE.astype(np.uint64) * ALL >> np.uint64(32)) + 0xFFFFFFF8 > ALL,
        ],
    ),
    "a_destination_that_is_also_a_source": (
        "mov.u32 %r0, %lane; add.cc.u32 %r0, %r0, 0xfffffff0; addc.u32 %r1, 0, 0;"
        "mov.u32 %r2, %lane; sub.cc.u32 %r2, %r2, %r2; subc.u32 %r3, 0, 0;",
        [LANE + np.uint32(0xFFFFFFF0), LANE >= 16, 0, 0],
    ),
    "a_chain_under_a_guard": (
        "add.cc.u32 %r3, 1, 0xffffffff; @%even add.cc.u32 %r3, 1, 1; addc.u32 %r0, 0, 0;",
        [LANE % 2],
    ),
    "comparisons_of_two_halves_combined_with_a_predicate": (
        "mov.b32 %r0, 0x40004000; cvt.u16.u32 %h0, %lane; mov.b32 %r1, {%h0, 0x3c00};"
        "setp.lt.and.bf16x2 %p0|%p1, %r1, %r0, %even; selp.u32 %r0, 1, 0, %p0; selp.u32 %r1, 1, 0, %p1;",
        [1 - LANE % 2, 1 - LANE % 2],
    ),
    "logic_of_three_with_a_predicate": (
        "lop3.or.b32 %r0|%p0, %lane, 24, 0xffffffff, 0x80, %even; selp.u32 %r1, 1, 0, %p0;"
        "lop3.and.b32 %r2|%p0, %lane, 24, 0, 0x3c, %even; selp.u32 %r3, 1, 0, %p0;",
        [LANE & 24, (LANE & 24 != 0) | (LANE % 2 == 0), LANE ^ 24, ((LANE ^ 24) != 0) & (LANE % 2 == 0)],
    ),
    "values_of_128_bits": (
        "{.reg .b128 %q<3>; .shared .align 16 .b8 word[512]; cvt.u64.u32 %l0, %lane; add.u64 %l1, %l0, 100;"
        "mov.b128 %q0, {%l0, %l1}; mov.b128 %q1, %q0; mov.u64 %l2, word; shl.b64 %l3, %l0, 4; add.u64 %l2, %l2, %l3;"
        "st.shared.b128 [%l2], %q1; ld.shared.b128 %q2, [%l2]; mov.b128 {%l4, %l5}, %q2;"
        "cvt.u32.u64 %r0, %l4; cvt.u32.u64 %r1, %l5;}",
        [LANE, LANE + 100],
    ),
    "exchanges_of_128_bits": (
        "{.reg .b128 %q<5>; .shared .align 16 .b8 pair[16]; mov.u64 %l2, pair; mov.u64 %l0, 7; mov.u64 %l1, 9;"
        "mov.b128 %q0, {%l0, %l1}; st.shared.b128 [%l2], %q0; bar.warp.sync -1; cvt.u64.u32 %l3, %lane;"
        "mov.b128 %q1, {%l3, %l3}; atom.shared.cas.b128 %q2, [%l2], %q0, %q1; mov.b128 {%l4, %l5}, %q2;"
        "cvt.u32.u64 %r0, %l5; atom.shared.exch.b128 %q3, [%l2], %q1; mov.b128 {%l4, %l5}, %q3;"
        "cvt.u32.u64 %r1, %l4;}",
        # The first lane's exchange leaves zeros, which no other lane's comparison finds to be 7 and 9.
        [np.where(LANE == 0, 9, 0), np.maximum(LANE.astype(np.int64) - 1, 0)],
    ),
    "atomics_on_vectors_with_the_operation_behind": (
        "ld.param.u64 %l0, [out]; mad.wide.u32 %l0, %lane, 16, %l0; mov.b32 %r4, 0x3f800000; mov.b32 %r5, 0x40000000;"
        "st.global.v2.b32 [%l0+8], {%r4, %r4}; atom.global.v2.f32.add {%r0, %r1}, [%l0+8], {%r4, %r5};"
        "ld.global.v2.b32 {%r2, %r3}, [%l0+8];",
        [0x3F800000, 0x3F800000, 0x40000000, 0x40400000],
    ),
    # Each block stores in the other one; both store the same results.
    "stores_that_a_barrier_counts": (
        "{.shared .align 8 .b8 gate[8]; .shared .align 8 .b8 place[256]; .reg .b32 %x<6>; mov.u32 %x0, gate;"
        "mov.u32 %x1, place; setp.eq.u32 %p0, %lane, 0; @%p0 mbarrier.init.shared.b64 [%x0], 1;"
        "@%p0 fence.mbarrier_init.release.cluster; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%x0], 256;"
        "bar.warp.sync -1; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
        "mov.u32 %x3, %cluster_ctarank; xor.b32 %x3, %x3, 1; mapa.shared::cluster.u32 %x4, %x0, %x3;"
        "mapa.shared::cluster.u32 %x5, %x1, %x3; mad.lo.u32 %x2, %lane, 8, %x5;"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%x2], {%lane, %bit}, [%x4];"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%x0], 0; @!%p1 bra WAIT;"
        "xor.b32 %r2, %lane, 31; mad.lo.u32 %x2, %r2, 8, %x1; ld.shared.v2.u32 {%r0, %r1}, [%x2];}",
        [31 - LANE, 1 - LANE % 2],
    ),
}

CLUSTERS = {"stores_that_a_barrier_counts": 2}
"""Vectors of more than one block, which are one cluster."""
STORE_OF_ONE_BLOCK = (
    "{.shared .align 8 .b8 gate[8]; .shared .align 8 .b8 place[256]; .reg .b32 %x<4>; mov.u32 %x0, gate;"
    "mov.u32 %x1, place; setp.eq.u32 %p0, %lane, 0; @%p0 mbarrier.init.shared.b64 [%x0], 1;"
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%x0], 256; bar.warp.sync -1; mad.lo.u32 %x2, %lane, 8, %x1;"
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%x2], {%lane, %bit}, [%x0]; mov.u32 %r0, 0;}"
)
"""What PTX defines in clusters of several blocks alone."""


def wanted(name: str) -> np.ndarray:
    """What each lane of a vector stores."""
    return np.stack([np.broadcast_to(np.asarray(one).astype(np.uint64), 32) & ALL for one in VECTORS[name][1]], axis=1)


def kernel_of(name: str, body: str, results: int) -> str:
    """The vector as a kernel of one warp, which stores the first registers of each lane."""
    return "\n".join(
        [
            f".visible .entry {name}(.param .u64 out)",
            f".explicitcluster .reqnctapercluster {CLUSTERS[name]}, 1, 1 {{" if name in CLUSTERS else "{",
            ".reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %l<8>; .reg .b64 %place; .reg .b32 %bit; .reg .b32 %lane;",
            ".reg .pred %p<4>; .reg .pred %even;",
            "mov.u32 %lane, %tid.x; and.b32 %bit, %lane, 1; setp.eq.u32 %even, %bit, 0;",
            body,
            f"ld.param.u64 %place, [out]; mad.wide.u32 %place, %lane, {4 * results}, %place;",
            *(f"st.global.u32 [%place+{4 * k}], %r{k};" for k in range(results)),
            "ret; }",
        ]
    )


def launch_of(name: str) -> Launch:
    """The launch of a vector, into zeros."""
    return Launch(name, [np.zeros((32, len(VECTORS[name][1])), np.uint32)], grid=(CLUSTERS.get(name, 1), 1, 1))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, toolkit: object) -> Callable[[str], np.ndarray]:
    """The (32, results) values of a vector; all of them run in one process."""
    module = Path(tmp_path_factory.mktemp("vectors"), "module")
    kernels = [kernel_of(name, body, len(expected)) for name, (body, expected) in VECTORS.items()]
    assemble(HEAD + "\n".join(kernels)).write(module)
    done = run(ensure_core(default_cache_dir()).library, module, [launch_of(name) for name in VECTORS])
    assert done.error == 0, done.stderr
    return dict(zip(VECTORS, (arrays[0] for arrays in done.arrays), strict=True)).__getitem__


@pytest.mark.nvcc
@pytest.mark.parametrize("name", VECTORS)
def test_vector(outcomes: Callable[[str], np.ndarray], name: str) -> None:
    np.testing.assert_array_equal(outcomes(name), wanted(name))


@pytest.mark.nvcc
def test_asynchronous_stores_need_a_cluster_of_several_blocks(tmp_path: Path, toolkit: object) -> None:
    assemble(HEAD + kernel_of("alone", STORE_OF_ONE_BLOCK, 1)).write(tmp_path / "module")
    done = run(
        ensure_core(default_cache_dir()).library, tmp_path / "module", [Launch("alone", [np.zeros((32, 1), np.uint32)])]
    )
    assert done.error == ILLEGAL_INSTRUCTION
    assert "cluster of one block" in done.stderr
