"""Loops in which a warp looks at a word of memory until another block has written it.

How often it looks here depends on the order in which blocks are executed, on a GPU on how long the others take, and
each look waits for the L2. So looks are no measure of anything: a launch counts as if each wait were one look. What the
others do meanwhile is counted where they do it. How long a wait lasts beyond that look is not known; adding what a word
takes from one SM to another at each was tried and told times of kernels with grid-wide barriers no better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ptxemu.counters.launch import LaunchRecord, MemoryInstruction
from ptxemu.machine.anchors import PtxLine
from ptxemu.machine.cubin import CodeWord
from ptxemu.machine.graph import Graph
from ptxemu.machine.instructions import MEMORY, MachineInstruction, Opcode

_STRONG = frozenset(("volatile", "acquire", "relaxed"))
_LEAVES = (Opcode.CALL, Opcode.BAR)
_NO_RESULT = (Opcode.ISETP, Opcode.FSETP, Opcode.BRA, Opcode.NOP, Opcode.NANOSLEEP, Opcode.CCTL)
_RESULT, _ADDRESS, _REGISTER = 16, 24, 0xFF
"""Where an instruction names the registers of its result and, of a load, of the address: this one and the next."""


@dataclass(frozen=True)
class PollingLoop:
    """A loop that does nothing but look.

    Attributes:
        head: its first block.
        blocks: all of its blocks.
        before: blocks outside from which one comes to it.
        lines: of the PTX, of its loads.
    """

    head: int
    blocks: frozenset[int]
    before: tuple[int, ...]
    lines: frozenset[int]

    def kept(self, times: Sequence[float]) -> float:
        """Share of its rounds that are first ones, given the executions of all blocks."""
        looked = times[self.head]
        return min(1.0, sum(times[one] for one in self.before) / looked) if looked else 1.0


def polling_loops(
    code: Sequence[MachineInstruction], words: Sequence[CodeWord], graph: Graph, lines: Mapping[int, PtxLine]
) -> tuple[PollingLoop, ...]:
    """Loops of a kernel whose only accesses to memory are loads, always of the same address, that find what other
    threads have stored. `words` are the encoded instructions."""
    found = []
    for head, blocks in graph.loops.items():
        spans = [range(graph.blocks[block].first, graph.blocks[block].end) for block in blocks]
        inside = [code[at] for span in spans for at in span]
        touching = [one for one in inside if one.operation in MEMORY]
        written = {
            words[at].low >> _RESULT & _REGISTER
            for span in spans
            for at in span
            if code[at].operation not in _NO_RESULT
        }
        addresses = {
            words[at].low >> _ADDRESS & _REGISTER for span in spans for at in span if code[at].operation in MEMORY
        }
        if not written.isdisjoint({*addresses, *(one + 1 for one in addresses)}):
            continue
        if not touching or not all(_looks(one, lines) for one in touching):
            continue
        if not any(one.operation in _LEAVES for one in inside):
            before = tuple(one for one in graph.predecessors[head] if one not in blocks)
            found.append(PollingLoop(head, blocks, before, frozenset(one.line for one in touching)))
    return tuple(found)


def _looks(one: MachineInstruction, lines: Mapping[int, PtxLine]) -> bool:
    known = lines.get(one.line)
    return (
        one.operation in (Opcode.LD, Opcode.LDG)
        and known is not None
        and known.statement.parts[0] == "ld"
        and not _STRONG.isdisjoint(known.statement.parts)
    )


def with_one_look(times: Sequence[float], loops: Iterable[PollingLoop]) -> list[float]:
    """Executions of blocks with one round of each loop for each time that control comes to it."""
    left = list(times)
    for loop in loops:
        kept = loop.kept(times)
        for block in loop.blocks:
            left[block] *= kept
    return left


def without_looks(record: LaunchRecord, times: Sequence[float], loops: Iterable[PollingLoop]) -> LaunchRecord:
    """A launch with one look for each wait, given the executions of all blocks as they were counted.

    Of the warp that executed most nothing is known but that it looked as well: it is taken to have done so as often, in
    proportion, as all.
    """
    share = {line: loop.kept(times) for loop in loops for line in loop.lines}
    if all(kept == 1.0 for kept in share.values()):
        return record
    memory = tuple(_scaled(one, share[one.ptx_line]) if one.ptx_line in share else one for one in record.memory)
    fewer = sum(one.sectors - one.l1_hit_sectors for one in record.memory) - sum(
        one.sectors - one.l1_hit_sectors for one in memory
    )
    looks = sum(round((1 - kept) * record.ptx_lines.get(line, 0)) for line, kept in share.items())
    executed = sum(record.ptx_lines.values())
    left = max(0.0, 1 - _LOOP_LINES * looks / executed) if executed else 1.0
    return replace(
        record,
        memory=memory,
        l2_read_sectors=max(0, record.l2_read_sectors - fewer),
        repeated_read_sectors=max(0, record.repeated_read_sectors - fewer),
        warp_instructions=round(left * record.warp_instructions),
        longest_warp_instructions=round(left * record.longest_warp_instructions),
    )


_LOOP_LINES = 3
"""PTX instructions of a look: the load, a comparison, a branch."""


def _scaled(one: MemoryInstruction, share: float) -> MemoryInstruction:
    sectors = ("sectors", "ideal_sectors", "l1_hit_sectors", "l1_shared_sectors")
    names = ("requests", "lanes", *sectors, "missed_requests", "shared_requests", "wavefronts")
    return replace(one, **{name: round(share * getattr(one, name)) for name in names})
