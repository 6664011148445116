"""Chains of dependent instructions: what a warp waits for, read off small pieces of PTX."""

from __future__ import annotations

from collections import Counter

import pytest

from ptxemu.ptx.analysis.waits import Wait, waits
from ptxemu.ptx.syntax import parse

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 a)
{
    .reg .pred %p<9>;
    .reg .f32 %f<99>;
    .reg .b32 %r<99>;
    .reg .b64 %rd<99>;
    ld.param.u64 %rd1, [a];
"""


def marked(body: str) -> Counter[Wait]:
    """How many statements of each kind of wait are on a chain."""
    function = parse(HEAD + body + "\n    ret;\n}\n").functions[0]
    return Counter(waits(function.body).values())


def test_independent_loads_are_waited_for_once() -> None:
    loads = "\n".join(f"ld.global.f32 %f{k}, [%rd1+{4 * k}];" for k in range(8))
    found = marked(loads + "\nadd.f32 %f20, %f0, %f1;\nadd.f32 %f21, %f20, %f7;\nst.global.f32 [%rd1], %f21;")
    assert found[Wait.GLOBAL] == 1
    assert found[Wait.ARITHMETIC] == 2


def test_load_of_a_loaded_address_waits_again() -> None:
    found = marked("ld.global.u64 %rd2, [%rd1];\nld.global.u64 %rd3, [%rd2];\nld.global.u64 %rd4, [%rd3];")
    assert found[Wait.GLOBAL] == 3


def test_barrier_separates_what_is_waited_for() -> None:
    assert marked("ld.global.f32 %f1, [%rd1];\nbar.sync 0;\nld.global.f32 %f2, [%rd1+4];")[Wait.GLOBAL] == 2


def test_branch_on_a_loaded_value_delays_the_loads_behind_it() -> None:
    code = "ld.global.f32 %f1, [%rd1];\n{}\n@%p1 bra $end;\nld.global.f32 %f2, [%rd1+4];\n$end:"
    assert marked(code.format("setp.gt.f32 %p1, %f1, 0f00000000;"))[Wait.GLOBAL] == 2
    assert marked(code.format("setp.gt.s32 %p1, %r1, 0;"))[Wait.GLOBAL] == 1


def test_guarded_copies_to_shared_memory_wait_one_after_the_other() -> None:
    copy = "@%p{0} bra $skip{0};\nld.global.f32 %f{0}, [%rd1+{0}];\nst.shared.f32 [%r1+{0}], %f{0};\n$skip{0}:\n"
    assert marked("".join(copy.format(k) for k in (4, 5, 6)))[Wait.GLOBAL] == 3
    loads = "@%p{0} bra $skip{0};\nld.global.f32 %f{0}, [%rd1+{0}];\n$skip{0}:\n"
    assert marked("".join(loads.format(k) for k in (4, 5, 6)))[Wait.GLOBAL] == 1


def test_loads_stay_behind_stores_that_may_alias() -> None:
    code = "ld.global.f32 %f1, [%rd1];\nst.global.f32 [%rd2], %f1;\nld.global{}.f32 %f2, [%rd1+4];"
    assert marked(code.format(""))[Wait.GLOBAL] == 2
    assert marked(code.format(".nc"))[Wait.GLOBAL] == 1


def test_loads_stay_behind_shuffles() -> None:
    code = "ld.global.f32 %f1, [%rd1];\n{}\nld.global.f32 %f2, [%rd1+4];\nadd.f32 %f3, %f1, %f2;"
    assert marked(code.format("shfl.sync.bfly.b32 %r2|%p1, %f1, 1, 31, -1;"))[Wait.GLOBAL] == 2
    assert marked(code.format("mul.f32 %f9, %f1, %f1;"))[Wait.GLOBAL] == 1


LOOP = """
$loop:
    {}
    add.s64 %rd1, %rd1, 4;
    add.s32 %r1, %r1, -1;
    setp.ne.s32 %p1, %r1, 0;
    @%p1 bra $loop;
"""


SUM = "\n".join(f"ld.global.f32 %f{k}, [%rd1+{4 * k}];\nadd.f32 %f9, %f9, %f{k};" for k in range(4))


def test_unrolled_loop_is_unrolled_again() -> None:
    found = marked(LOOP.format(SUM))
    assert (found[Wait.GLOBAL_UNROLLED], found[Wait.GLOBAL]) == (1, 0)


@pytest.mark.parametrize(
    "body",
    [
        SUM + "\nst.global.f32 [%rd1], %f1;",
        SUM + 40 * "\nadd.f32 %f9, %f9, %f9;",
        "ld.global.f32 %f1, [%rd1];\nadd.f32 %f2, %f2, %f1;",
    ],
    ids=["stores", "long", "one load"],
)
def test_other_loops_are_not(body: str) -> None:
    found = marked(LOOP.format(body))
    assert (found[Wait.GLOBAL_UNROLLED], found[Wait.GLOBAL]) == (0, 1)


def test_pointer_chase_waits_in_each_round() -> None:
    found = marked(LOOP.format(4 * "ld.global.u64 %rd5, [%rd5];\n"))
    assert (found[Wait.GLOBAL_UNROLLED], found[Wait.GLOBAL]) == (0, 4)


def test_asynchronous_copy_counts_where_it_is_waited_for() -> None:
    copy = "cp.async.ca.shared.global [%r1], [%rd1], 16;\ncp.async.commit_group;\ncp.async.wait_group {};"
    assert marked(copy.format(0))[Wait.GLOBAL] == 1
    assert marked(copy.format(1))[Wait.GLOBAL] == 0


def test_each_kind_of_latency_is_told_apart() -> None:
    chain = """
    ld.shared.f32 %f1, [%r1];
    ex2.approx.ftz.f32 %f2, %f1;
    div.rn.f32 %f3, %f2, %f1;
    cvt.rzi.s32.f32 %r2, %f3;
    atom.global.add.u32 %r3, [%rd1], %r2;
    """
    kinds = (Wait.SHARED, Wait.SPECIAL, Wait.DIVISION, Wait.ATOMIC)
    assert [marked(chain)[kind] for kind in kinds] == [1, 2, 1, 1]
