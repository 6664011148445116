"""The machine code of a program's kernels, and what a launch of one executes of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from statistics import mean

from ptxemu.counters.launch import ATOMICS, EXECUTED, Access, LaunchRecord, MachineCounts, MemoryInstruction, Space
from ptxemu.counters.polling import PollingLoop, polling_loops, with_one_look, without_looks
from ptxemu.counters.record import CountedRecord
from ptxemu.counters.retries import exchange_rounds, exchanging, spinning_rounds
from ptxemu.machine.anchors import PtxLine, anchors, operand_bytes, ptx_lines, with_lines_of_products
from ptxemu.machine.cubin import CodeSection, read_sections
from ptxemu.machine.executions import Flow
from ptxemu.machine.graph import Graph, graph_of
from ptxemu.machine.instructions import PRODUCTS, MachineInstruction, Opcode, Pipe, decode
from ptxemu.machine.schedule import Schedule, WarpPath
from ptxemu.ptx.syntax import parse
from ptxemu.ptx.text import read_ptx

_SHARED = (Opcode.LDS, Opcode.STS, Opcode.LDSM, Opcode.STSM, Opcode.ATOMS, Opcode.ATOMS_CAS)
_EXCHANGES = (Opcode.ATOM_CAS, Opcode.ATOMG_CAS)
_INTERNAL = "__internal_"
"""In the names of functions that ptxas adds."""
_DIVISIONS = ("_div_u64", "_div_s64", "_rem_u64", "_rem_s64")
"""At the end of those that are no rare cases: each statement that divides by 64 bits calls one."""


@dataclass(frozen=True)
class KernelCode:
    """One kernel.

    Attributes:
        instructions: its code, the functions that it calls included.
        flow: from which the executions of each block follow.
        schedule: what one warp waits for.
        polling: loops that wait for other blocks.
        operands: by the line of a product by a warpgroup, bytes of shared memory that one of its warps has read.
        spinning: lines of sums in shared memory for which ptxas makes loops that compare and exchange.
    """

    instructions: tuple[MachineInstruction, ...]
    flow: Flow
    schedule: Schedule
    polling: tuple[PollingLoop, ...] = ()
    operands: Mapping[int, int] = field(default_factory=dict)
    spinning: frozenset[int] = frozenset()

    def counted(self, record: LaunchRecord) -> LaunchRecord:
        """A launch with what its machine code executed, and one look for each wait for other blocks."""
        solved = self.flow.solved(record.ptx_lines, record.warps)
        record = _with_turns(without_looks(record, solved.times, self.polling), self._merging(), self._exchanging())
        times = with_one_look(solved.times, self.polling)
        return replace(record, machine=self._counts(record, times, solved.guessed))

    def _counts(self, record: LaunchRecord, times: list[float], guessed: Collection[int]) -> MachineCounts:
        executed: defaultdict[MachineInstruction, float] = defaultdict(float)
        times = self._with_retries(times, record)
        for block, count in zip(self.flow.graph.blocks, times, strict=True):
            for one in self.instructions[block.first : block.end]:
                executed[one] += count
        pipes: defaultdict[Pipe | None, float] = defaultdict(float)
        operations: defaultdict[int, float] = defaultdict(float)
        for one, count in executed.items():
            pipes[one.pipe] += count
            operations[one.operation] += count
        local = {op: sum(one.requests for one in record.accesses((Space.LOCAL,), (op,))) for op in Access}
        return MachineCounts(
            instructions=sum(executed.values()),
            alu=pipes[Pipe.ALU],
            fma=pipes[Pipe.FMA],
            fma_heavy=sum(count * one.fma_heavy_passes for one, count in executed.items()),
            halves=sum(count for one, count in executed.items() if one.half_precision),
            xu=pipes[Pipe.XU],
            lsu=pipes[Pipe.LSU],
            adu=pipes[Pipe.ADU],
            tensor_halves=operations[Opcode.HFMA2_MMA],
            shared_passes=_shared_passes(record, executed, self.spinning) + operations[Opcode.SHFL],
            spill_loads=max(0.0, operations[Opcode.LDL] - local[Access.LOAD]),
            spill_stores=max(0.0, operations[Opcode.STL] - local[Access.STORE]),
            operand_bytes=sum(
                count * self.operands.get(one.line, self._usual_operands)
                for one, count in executed.items()
                if one.operation in PRODUCTS
            ),
            guessed=sum(times[block] * self._length(block) for block in guessed),
            path=WarpPath(self.schedule, tuple(count / record.warps for count in times)),
        )

    @property
    def _usual_operands(self) -> float:
        """Of a product of which the line table does not say which it is."""
        return mean(self.operands.values()) if self.operands else 0.0

    def _merging(self) -> set[int]:
        """Lines of atomics in shared memory for which lanes at one word are one."""
        return {one.line for one in self.instructions if one.merges_lanes}

    def _exchanging(self) -> set[int]:
        """Lines of atomics in shared memory that compare and exchange."""
        return {one.line for one in self.instructions if one.operation == Opcode.ATOMS_CAS}

    def _length(self, block: int) -> int:
        return self.flow.graph.blocks[block].end - self.flow.graph.blocks[block].first

    def _with_retries(self, times: list[float], record: LaunchRecord) -> list[float]:
        """Executions of blocks, with loops that exchange a word as often as that takes until all lanes have won."""
        rounds = {one.ptx_line: exchange_rounds(record, one) for one in exchanging(record)}
        spins = {one.ptx_line: spinning_rounds(record, one) / one.requests for one in _spinning(record, self.spinning)}
        if not rounds and not spins:
            return times
        found = []
        for count, block in zip(times, self.flow.graph.blocks, strict=True):
            code = self.instructions[block.first : block.end]
            often = [rounds[one.line] for one in code if one.operation in _EXCHANGES and one.line in rounds]
            spun = [spins[one.line] for one in code if one.operation == Opcode.ATOMS_CAS and one.line in spins]
            found.append(max([count, *often]) * max([1.0, *spun]))
        return found


def _with_turns(record: LaunchRecord, merging: Collection[int], exchanging: Collection[int]) -> LaunchRecord:
    """The launch with a pass of shared memory for each lane in the same bank, and two where it compares and exchanges,
    which takes two operands; but for atomics that merge lanes at one word."""

    def turned(one: MemoryInstruction) -> MemoryInstruction:
        if one.space is not Space.SHARED or one.op not in ATOMICS or one.ptx_line in merging:
            return one
        operands = 2 if one.ptx_line in exchanging else 1
        return replace(one, wavefronts=max(one.wavefronts, operands * one.bank_turns))

    return replace(record, memory=tuple(turned(one) for one in record.memory))


def _spinning(record: LaunchRecord, lines: Collection[int]) -> list[MemoryInstruction]:
    """Sums in shared memory that are such loops."""
    return [one for one in record.accesses((Space.SHARED,), ATOMICS) if one.ptx_line in lines and one.requests]


def _shared_passes(
    record: LaunchRecord, executed: Mapping[MachineInstruction, float], spinning: Collection[int]
) -> float:
    """Passes through shared memory, and those of thread indices.

    The core has counted those of each PTX line. A load of 16 bytes a lane takes two at least, wherever lanes read, and
    an instruction whose lanes are all switched off one. A loop that compares and exchanges loads in one and exchanges
    in two, or twice as many for 8 bytes a lane.
    """
    machine: defaultdict[int | None, float] = defaultdict(float)
    wide: defaultdict[int | None, float] = defaultdict(float)
    indices = 0.0
    for one, count in executed.items():
        if one.operation in _SHARED:
            machine[one.line] += count
        wide[one.line] += count * one.wide
        indices += count * one.thread_index
    passes = indices + sum(machine.values())
    for access in record.accesses((Space.SHARED,), EXECUTED):
        line = access.ptx_line or 0
        if access.op in ATOMICS and line in spinning:
            passes += (3 * max(1, access.bytes_per_lane // 4) - 2) * machine[line] / 2
        elif access.op is not Access.LOAD or machine[line]:
            passes += max(access.wavefronts, 2 * wide[line]) - access.requests
    return passes


@lru_cache(maxsize=64)
def read_code(cubin: Path, ptx: Path) -> Mapping[str, KernelCode]:
    """Kernels of a program by mangled name; those without a line table, of which nothing can be counted, are left out.

    Raises CoreFailure when the cubin does not read.
    """
    sections = [one for one in read_sections(cubin.read_bytes()) if any(word.line for word in one.words)]
    lines = ptx_lines(parse(read_ptx(ptx))) if sections else {}
    return {one.kernel: _kernel(one, lines) for one in sections}


def with_machine_counts(records: Sequence[CountedRecord], code: Mapping[str, KernelCode]) -> list[CountedRecord]:
    """Records whose launches know what their machine code executed, where it is at hand by the key of the kernel."""
    return [_counted(one, code.get(one.key)) if isinstance(one, LaunchRecord) else one for one in records]


def _counted(record: LaunchRecord, code: KernelCode | None) -> LaunchRecord:
    return _with_turns(record, (), ()) if code is None else code.counted(record)


def _fallbacks(code: Sequence[MachineInstruction], graph: Graph) -> frozenset[int]:
    """Blocks that ask where an address lies, behind an atomic that has told whether it was done."""
    found = set()
    for number, block in enumerate(graph.blocks):
        if code[block.first].operation == Opcode.QSPC and block.first > 0 and code[block.first - 1].guarded:
            before = set(graph.predecessors.get(number, ()))
            ends = (code[graph.blocks[one].first : graph.blocks[one].end] for one in before)
            if before and all(any(one.operation == Opcode.ATOM_FLOATS for one in code) for code in ends):
                found.add(number)
    return frozenset(found)


def _kernel(section: CodeSection, lines: Mapping[int, PtxLine]) -> KernelCode:
    decoded = [decode(word, position) for position, word in enumerate(section.words)]
    instructions = with_lines_of_products(decoded, lines)
    graph = graph_of(instructions, section.functions)
    internal = {
        position for position, name in section.functions.items() if _INTERNAL in name and not name.endswith(_DIVISIONS)
    }
    entries = frozenset(entry for entry in graph.entries if graph.blocks[entry].first in internal)
    per_block = [
        Counter(one.line for one in instructions[block.first : block.end] if one.line in lines)
        for block in graph.blocks
    ]
    flow = Flow(graph, anchors(instructions, graph, lines), entries, per_block, _fallbacks(instructions, graph))
    return KernelCode(
        instructions,
        flow,
        Schedule.of(instructions, graph),
        polling_loops(instructions, section.words, graph, lines),
        operand_bytes(instructions, lines),
        frozenset(
            one.line
            for one in instructions
            if one.operation == Opcode.ATOMS_CAS and one.line in lines and "cas" not in lines[one.line].statement.parts
        ),
    )
