"""Machine code beside PTX: how often blocks are executed, on code written down here and on code that ptxas wrote."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from emulator_support import needs_tools

from ptxemu.counters.machine_code import KernelCode, read_code
from ptxemu.errors import CoreFailure
from ptxemu.machine.anchors import Anchor, operand_bytes, ptx_lines
from ptxemu.machine.arrivals import ArrivalTime
from ptxemu.machine.cubin import CodeWord, read_sections
from ptxemu.machine.executions import Flow
from ptxemu.machine.graph import graph_of
from ptxemu.machine.instructions import Control, MachineInstruction, Opcode, decode
from ptxemu.machine.schedule import Schedule, WaitCause, WarpPath
from ptxemu.ptx.syntax import parse
from ptxemu.toolkit import CudaToolkit

WARPS = 100


def one(operation: int, line: int = 0, *, target: int | None = None, guarded: bool = False) -> MachineInstruction:
    return MachineInstruction(operation, line, guarded, target=target)


def branch(target: int, *, guarded: bool = True) -> MachineInstruction:
    return one(Opcode.BRA, target=target, guarded=guarded)


EXIT = one(Opcode.EXIT)
UNROLLED = (
    branch(7),
    *(one(Opcode.LDG, 5) for _ in range(4)),
    branch(1),
    branch(9),
    one(Opcode.LDG, 5),
    branch(7),
    one(Opcode.STG, 6),
    EXIT,
)
"""A loop with four copies of line 5, one with a single copy for what is left, and a store."""


def executions(
    code: tuple[MachineInstruction, ...], lines: Mapping[int, int], internal: frozenset[int] = frozenset()
) -> list[float]:
    """Executions of each block; every load and store is an anchor."""
    graph = graph_of(code, internal)
    copies: dict[int, dict[int, int]] = {}
    for block in graph.order:
        for instruction in code[graph.blocks[block].first : graph.blocks[block].end]:
            if instruction.line:
                groups = copies.setdefault(instruction.line, {})
                groups[graph.group_of[block]] = groups.get(graph.group_of[block], 0) + 1
    anchors = [Anchor(line, groups, frozenset()) for line, groups in copies.items()]
    functions = frozenset(k for k, block in enumerate(graph.blocks) if block.first in internal)
    return Flow(graph, anchors, functions, [{}] * graph.end).executions(lines, WARPS)


@pytest.mark.parametrize(("rounds", "main", "rest"), [(10, 2, 2), (3, 0, 3), (400, 100, 0)])
def test_unrolled_loop_takes_whole_rounds_and_leaves_the_rest(rounds: int, main: int, rest: int) -> None:
    found = executions(UNROLLED, {5: rounds * WARPS, 6: WARPS})
    blocks = graph_of(UNROLLED, ()).blocks
    by_first = {block.first: count / WARPS for block, count in zip(blocks, found, strict=True)}
    assert (by_first[1], by_first[7], by_first[9]) == (main, rest, 1)


def test_counts_spread_over_blocks_that_are_executed_equally_often() -> None:
    """The block in front of the branch and the one where its two ways meet have no line of their own."""
    code = (
        one(Opcode.LOP3),
        branch(4),
        one(Opcode.LDG, 5),
        branch(5, guarded=False),
        one(Opcode.LDG, 6),
        EXIT,
    )
    assert executions(code, {5: 30, 6: 70}) == [100, 30, 70, 100]


def test_slow_path_that_ptxas_added_is_taken_to_be_rare() -> None:
    code = (branch(3), one(Opcode.CALL, target=5), branch(4, guarded=False), one(Opcode.LOP3), EXIT, EXIT)
    found = executions(code, {}, frozenset({5}))
    assert found == [100, 0, 0, 100, 100, 0]


def test_predicated_instruction_is_executed_by_warps_that_it_does_nothing_for() -> None:
    code = (branch(2), one(Opcode.LDG, 5, guarded=True), EXIT)
    graph = graph_of(code, ())
    anchors = [Anchor(5, {graph.group_of[1]: 1}, frozenset({graph.group_of[1]}))]
    assert Flow(graph, anchors, frozenset(), [{}] * graph.end).executions({5: 40}, WARPS)[1] == 40


def test_loop_without_anchors_is_counted_by_lines_that_are_its_own() -> None:
    """Two copies of a round: line 5 makes one instruction of each, line 6 three; line 7 lies behind the loop, too."""
    body = (one(Opcode.LOP3, 5), *(one(Opcode.LOP3, 6) for _ in range(3)))
    code = (one(Opcode.LOP3, 4), *body, one(Opcode.LOP3, 7), *body, branch(1), one(Opcode.LOP3, 7), EXIT)
    graph = graph_of(code, ())
    lines = [Counter(each.line for each in code[block.first : block.end] if each.line) for block in graph.blocks]
    flow = Flow(graph, [], frozenset(), lines)
    assert flow.executions({4: WARPS, 5: 40 * WARPS, 6: 40 * WARPS, 7: 41 * WARPS}, WARPS) == [100, 2000, 100]


def test_branch_distance_is_signed() -> None:
    backwards = decode(CodeWord(0xFFFFFFFC00FC7947, 0x000FC0000383FFFF, 0), 200)
    forwards = decode(CodeWord(0x0000000800CC8947, 0x000FEA0003800000, 0), 0xF)
    assert (backwards.target, backwards.guarded) == (200, False)
    assert (forwards.target, forwards.guarded) == (0xC3, True)


def test_control_bits() -> None:
    """LDG.E R2, [R2.64] of a copy: two clocks, barrier 2 until the value is there, after barrier 0."""
    load = decode(CodeWord(0x0000000402027981, 0x001EA4000C1E1900, 0), 0)
    assert (load.operation, load.control) == (Opcode.LDG, Control(2, waits=1, result=2))


LATENCY = dict.fromkeys(WaitCause, 10.0) | {WaitCause.GLOBAL: 500.0, WaitCause.BRANCH: 1.0}


def scheduled(*parts: tuple[int, Control, int | None]) -> Schedule:
    """Code of (operation, control, target of a conditional branch)."""
    code = [
        MachineInstruction(operation, 0, target is not None, control, target) for operation, control, target in parts
    ]
    return Schedule.of(code, graph_of(code, ()))


LOAD = (Opcode.LDG, Control(2, result=0), None)
USE = (Opcode.FADD, Control(4, waits=1), None)
OTHER = (Opcode.IMAD, Control(4), None)
LEAVE = (Opcode.EXIT, Control(5), None)


def test_warp_waits_for_what_is_left_of_a_latency() -> None:
    found = scheduled(LOAD, OTHER, OTHER, USE, LEAVE).clocks([1.0], LATENCY)
    assert found[WaitCause.GLOBAL] == 500 - 2 - 4 - 4
    assert (found[WaitCause.ISSUE], found[WaitCause.WAIT]) == (5, 2 + 4 + 4 + 4 + 5 - 5)


def test_independent_loads_are_waited_for_together() -> None:
    second = (Opcode.LDG, Control(2, result=1), None)
    both = (Opcode.FADD, Control(4, waits=3), None)
    together = scheduled(LOAD, second, both, LEAVE).clocks([1.0], LATENCY)
    apart = scheduled(LOAD, USE, LOAD, USE, LEAVE).clocks([1.0], LATENCY)
    assert together[WaitCause.GLOBAL] == 500 - 2
    assert apart[WaitCause.GLOBAL] == 2 * (500 - 2)


def test_warp_waits_for_the_last_of_the_loads_that_it_awaits_together() -> None:
    """Each comes from the L2 in half of the cases, independently: one of both does in three quarters."""
    half = ArrivalTime(10.0, 290.0, 290.0, beyond=0.5)
    code = [
        MachineInstruction(Opcode.LDG, 1, False, Control(2, result=0)),
        MachineInstruction(Opcode.LDG, 2, False, Control(2, result=1)),
        MachineInstruction(Opcode.FADD, 0, False, Control(4, waits=3)),
        EXIT,
    ]
    schedule = Schedule.of(code, graph_of(code, ()))
    one, both = (
        schedule.clocks([1.0], LATENCY, loads=known)
        for known in ({1: half, 2: ArrivalTime.at(10.0)}, {1: half, 2: half})
    )
    assert one[WaitCause.GLOBAL] == pytest.approx(0.5 * (10 - 2) + 0.5 * (290 - 4))
    assert both[WaitCause.GLOBAL] == pytest.approx(0.25 * (10 - 2) + 0.75 * (290 - 2))


def test_what_a_warp_has_waited_for_is_not_waited_for_again() -> None:
    code = [
        MachineInstruction(Opcode.LDG, 1, False, Control(2, result=0)),
        MachineInstruction(Opcode.FADD, 0, False, Control(4, waits=1)),
        MachineInstruction(Opcode.FADD, 0, False, Control(4, waits=1)),
        EXIT,
    ]
    found = Schedule.of(code, graph_of(code, ())).clocks(
        [1.0], LATENCY, loads={1: ArrivalTime(10.0, 290.0, 500.0, 0.5, 0.1)}
    )
    assert found[WaitCause.GLOBAL] == pytest.approx(10 + 0.5 * 280 + 0.1 * 210 - 2)


@pytest.mark.parametrize(("left", "waited"), [(0, 500 - 1), (1, 500 - 1 - 14 * 15 - 1), (2, 0)])
def test_groups_of_copies_are_waited_for_in_their_order(left: int, waited: float) -> None:
    """Two groups are closed one after the other; so many of the latest `DEPBAR` lets be."""
    close = MachineInstruction(Opcode.LDGDEPBAR, 0, False, Control(1))
    pause = [MachineInstruction(Opcode.IMAD, 0, False, Control(15))] * 14
    wait = MachineInstruction(Opcode.DEPBAR, 0, False, Control(1), left=left)
    code = (close, *pause, close, wait, MachineInstruction(Opcode.EXIT, 0, False, Control(5)))
    assert Schedule.of(code, graph_of(code, ())).clocks([1.0], LATENCY)[WaitCause.GLOBAL] == waited


def test_depbar_says_how_many_groups_may_be_under_way() -> None:
    found = [
        decode(CodeWord(low, 0x000FC80000000000, 0), 0).left for low in (0x0000_8080_0000_791A, 0x0000_8000_0000_791A)
    ]
    assert found == [2, 0]


def test_load_of_the_round_before_is_still_under_way() -> None:
    """A loop that uses what the round before has loaded: only the body's own clocks are hidden."""
    loop = scheduled(USE, LOAD, OTHER, (Opcode.BRA, Control(5), 0), LEAVE).clocks([10.0, 1.0], LATENCY)
    assert loop[WaitCause.GLOBAL] == 10 * (500 - 2 - 4 - 5 - 1)


def product(*, commits: bool = False) -> MachineInstruction:
    return MachineInstruction(Opcode.HGMMA, 0, False, Control(2), commits=commits)


@pytest.mark.parametrize(("left", "waited"), [(0, 2 + 150 * 3 - 2 * 3), (1, 2 + 150 - 2 * 3), (2, 0)])
def test_products_of_a_warpgroup_take_turns_and_are_waited_for_in_groups(left: int, waited: float) -> None:
    """One product in the first group and two in the second, 150 clocks each; the wait comes six clocks later."""
    wait = MachineInstruction(Opcode.WARPGROUP, 0, False, Control(1), products_left=left)
    pause = MachineInstruction(Opcode.IMAD, 0, False, Control(2))
    code = (pause, product(commits=True), product(), product(commits=True), wait, EXIT)
    found = Schedule.of(code, graph_of(code, ())).clocks([1.0], LATENCY | {WaitCause.PRODUCT: 150.0})
    assert found[WaitCause.PRODUCT] == pytest.approx(max(0, waited - 2))


def test_operands_of_products_lie_in_shared_memory_or_the_left_one_in_registers() -> None:
    """A warp has 16 rows of 32 bytes of the left operand, and a quarter of the columns of the right one."""
    text = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k() {
    .reg .b64 %a, %b;
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    .reg .pred %p;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %a, %b, %p, 1, 1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, %b, %p, 1, 1, 0;
    ret;
}
"""
    lines = ptx_lines(parse(text))
    first, second = (line for line, one in sorted(lines.items()) if one.statement.parts[0] == "wgmma")
    code = [replace(product(), line=line) for line in (first, second)]
    assert operand_bytes(code, lines) == {first: 16 * 32 + 8 * 32 // 4, second: 8 * 32 // 4}


def test_products_and_waits_for_them_are_read_off_their_bits() -> None:
    """Of one kernel: a product, the last one of a group, and a wait that lets one group be."""
    bits = (
        (0x03E00000081879F0, 0x000FE20008700818),
        (0x03E00000081879F0, 0x000FE60008000818),
        (0x00008000000079C5, 0x000FE40000010100),
        (0x00000000000079C5, 0x000FE20000000000),
    )
    found = [decode(CodeWord(low, high, 0), 0) for low, high in bits]
    assert [one.commits for one in found] == [False, True, False, False]
    assert [one.products_left for one in found] == [None, None, 1, None]


def test_warps_that_share_a_scheduler_issue_in_turns() -> None:
    schedule = scheduled(OTHER, OTHER, LOAD, USE, LEAVE)
    alone, four, eight = (sum(schedule.clocks([1.0], LATENCY, sharing).values()) for sharing in (1.0, 4.0, 8.0))
    assert alone <= four < eight


def test_path_of_warps_that_multiply_leaves_out_what_others_do() -> None:
    """Twelve of sixteen warps go to the loop with the product, the others to a loop of their own."""
    code = (branch(5), one(Opcode.IMAD), product(commits=True), branch(2), EXIT, one(Opcode.IMAD), branch(5), EXIT)
    graph = graph_of(code, ())
    first = {block.first: number for number, block in enumerate(graph.blocks)}
    executions = [0.0] * graph.end
    for start, times in {0: 1.0, 1: 0.75, 2: 0.75 * 8, 4: 0.75, 5: 0.25 * 20, 7: 0.25}.items():
        executions[first[start]] = times
    own, warps = WarpPath(Schedule.of(code, graph), tuple(executions)).of_products(16)
    assert warps == 12
    assert [own.executions[first[start]] for start in (0, 1, 2, 4, 5, 7)] == [1.0, 1.0, 8.0, 1.0, 0.0, 0.0]


def test_fallback_of_an_atomic_that_was_done_is_not_executed() -> None:
    code = (one(Opcode.ATOM_FLOATS, 5), branch(4), one(Opcode.QSPC), one(Opcode.LDS), EXIT)
    graph = graph_of(code, ())
    anchor = Anchor(5, {graph.group_of[0]: 1}, frozenset())
    flow = Flow(graph, [anchor], frozenset(), [{}] * graph.end, frozenset((1,)))
    assert flow.executions({5: WARPS}, WARPS) == [100, 0, 100]


def test_what_nothing_tells_of_is_marked_as_guessed() -> None:
    code = (branch(3), one(Opcode.MUFU), branch(3), one(Opcode.STG, 5), EXIT)
    graph = graph_of(code, ())
    solved = Flow(graph, [Anchor(5, {graph.group_of[2]: 1}, frozenset())], frozenset(), [{}] * graph.end).solved(
        {5: WARPS}, WARPS
    )
    assert (solved.times[0], solved.times[2]) == (WARPS, WARPS)
    assert solved.guessed == {1}


SOURCE = """
extern "C" __global__ void divided(const unsigned long long* x, unsigned long long* y, int n) {
    unsigned long long sum = 0, divisor = x[0];
    for (int k = 0; k < n; ++k) sum += x[threadIdx.x] / (divisor + sum);
    y[threadIdx.x] = sum;
}
extern "C" __global__ void __launch_bounds__(1024, 2) sums(const float* x, float* y, int n) {
    float sum = 0;
    for (int k = 0; k < n; ++k) sum = x[static_cast<int>(sum)];
    y[threadIdx.x] = sum / x[0];
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with code.cubin, code.ptx and bare.cubin, which has no line table."""
    folder, tools = tmp_path_factory.mktemp("cubin"), CudaToolkit.find()
    (folder / "code.cu").write_text(SOURCE, encoding="utf-8")
    nvcc = [str(tools.nvcc), "-ccbin", str(tools.host_compiler), "-O3", "-arch=sm_90a"]
    kept = ["-lineinfo", "--keep", "--keep-dir", str(folder)]
    subprocess.run([*nvcc, *kept, "-cubin", "code.cu", "-o", "code.cubin"], cwd=folder, check=True, timeout=120)
    subprocess.run([*nvcc, "-cubin", "code.cu", "-o", "bare.cubin"], cwd=folder, check=True, timeout=120)
    return folder


@pytest.mark.nvcc
@needs_tools
class TestBuilt:
    """Code that ptxas has written now."""

    def kernel(self, built: Path) -> KernelCode:
        return read_code(built / "code.cubin", built / "code.ptx")["sums"]

    def test_rounds_of_an_unrolled_loop_add_up(self, built: Path) -> None:
        code = self.kernel(built)
        copied = Counter(one.line for one in code.instructions if one.operation == Opcode.LDG)
        line, copies = copied.most_common(1)[0]
        assert copies > 1, "ptxas unrolls this loop"
        lines = {one.line: (77 if one.total == copies else 1) * WARPS for one in code.flow.anchors}
        counts = code.flow.executions(lines, WARPS)
        loads = sum(
            count
            for block, count in zip(code.flow.graph.blocks, counts, strict=True)
            for one in code.instructions[block.first : block.end]
            if one.operation == Opcode.LDG and one.line == line
        )
        assert loads == pytest.approx(77 * WARPS)

    def test_long_divisions_are_executed_as_often_as_their_statements(self, built: Path) -> None:
        """nvcc asks whether 32 bits are enough and ptxas calls a function where they are not, which is no rare case."""
        code = read_code(built / "code.cubin", built / "code.ptx")["divided"]
        text = (built / "code.ptx").read_text(encoding="utf-8").splitlines()
        lines = [number for number, line in enumerate(text, 1) if "div.u64" in line]
        for taken in (0, 7):
            executed = {one.line: WARPS for one in code.flow.anchors} | dict.fromkeys(lines, taken * WARPS)
            times = code.flow.executions(executed, WARPS)
            (entry,) = code.flow.callers
            assert times[entry] == pytest.approx(taken * WARPS * len(lines))

    def test_line_table_is_needed(self, built: Path) -> None:
        assert read_code(built / "bare.cubin", built / "code.ptx") == {}

    def test_damaged_file_is_named_as_such(self, built: Path) -> None:
        whole = (built / "code.cubin").read_bytes()
        with pytest.raises(CoreFailure, match="machine code"):
            read_sections(whole[: len(whole) // 2])
        with pytest.raises(CoreFailure, match="machine code"):
            read_sections(b"not a cubin")
