"""How long one warp takes for its machine code when it has the GPU to itself.

ptxas writes into each instruction after how many clocks the next one may follow, which covers every latency that it
knows. For the others, loads above all, an instruction raises one of six scoreboard barriers, and those that need its
result name the barriers to wait for (Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking,
2018, describe these bits). So the time of a block follows from the code, given the latencies that vary: when each
barrier comes down, and what is still to come when the block ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ptxemu.machine.arrivals import ArrivalTime
from ptxemu.machine.graph import Graph
from ptxemu.machine.instructions import PRODUCTS, MachineInstruction, Opcode

_ROUNDS = 2
"""The second time round a loop finds what the first has left under way."""
_MOST_GROUPS = 8
"""Groups of asynchronous copies that are told apart, and of products by warpgroups."""
_QUEUE = 16
"""Stands for the last product by a warpgroup that was issued, and further numbers for the groups committed, the latest
first, where scoreboard barriers have numbers below."""
WARPGROUP_WARPS = 4
_FREQUENT = 0.3
"""Share of the most frequent way into a block from which on another one counts, too."""
_O = Opcode


class WaitCause(StrEnum):
    """What a warp spends clocks on."""

    ISSUE = "issue"
    """One clock an instruction."""
    WAIT = "wait"
    """Clocks beyond it that ptxas has fixed."""
    BRANCH = "branch"
    BARRIER = "barrier"
    GLOBAL = "global"
    LOCAL = "local"
    SHARED = "shared"
    ATOMIC = "atomic"
    SHUFFLE = "shuffle"
    SPECIAL = "special"
    """Transcendental functions, conversions, and what is not listed."""
    DOUBLE = "double"
    TENSOR = "tensor"
    PRODUCT = "product"
    """Products by a warpgroup, which the tensor cores take up one after the other."""
    CONSTANT = "constant"
    """Constants at addresses that are computed."""
    REGISTER = "register"
    """Special registers: indices of threads and blocks."""
    OPERANDS = "operands"
    """Stores that have yet to read the registers they store."""


_CAUSES: dict[int, WaitCause] = {
    **dict.fromkeys((_O.LD, _O.LDG), WaitCause.GLOBAL),
    _O.LDL: WaitCause.LOCAL,
    **dict.fromkeys((_O.LDS, _O.LDSM, _O.ATOMS, _O.ATOMS_CAS), WaitCause.SHARED),
    **dict.fromkeys((_O.ATOM, _O.ATOM_CAS, _O.ATOM_FLOATS, _O.ATOMG_FLOATS, _O.ATOMG, _O.ATOMG_CAS), WaitCause.ATOMIC),
    **dict.fromkeys((_O.SHFL, _O.REDUX), WaitCause.SHUFFLE),
    **dict.fromkeys((_O.DMUL, _O.DADD, _O.DSETP, _O.DFMA), WaitCause.DOUBLE),
    **dict.fromkeys((_O.HMMA, _O.IMMA, _O.DMMA), WaitCause.TENSOR),
    _O.LDC: WaitCause.CONSTANT,
    **dict.fromkeys((_O.S2R, _O.S2UR), WaitCause.REGISTER),
    **dict.fromkeys((_O.ST, _O.STG, _O.STS, _O.STL, _O.RED, _O.REDG, _O.LDGSTS), WaitCause.OPERANDS),
}
_COSTS: dict[int, WaitCause] = {_O.BAR: WaitCause.BARRIER, _O.BRA: WaitCause.BRANCH}


@dataclass(frozen=True, slots=True)
class ScheduledInstruction:
    """An instruction at which something happens beside the passing of clocks.

    Attributes:
        clocks: from the step before, or the beginning of the block, to its issue.
        waits: barriers that must be down, a bit each.
        raises: barriers that come down some latency later, with its cause.
        costs: what it spends its own latency on, for block barriers and branches.
        closes: whether it closes a group of asynchronous copies.
        left: how many such groups may stay under way behind it; None when it does not wait for any.
        instructions: issued since the step before, it included.
        product: whether it is a product by a warpgroup, which goes on while the warp does.
        commits: whether it closes a group of those.
        products_left: as `left`, of such groups.
        line: of the PTX.
    """

    clocks: int
    waits: int
    raises: tuple[tuple[int, WaitCause], ...]
    costs: WaitCause | None
    closes: bool = False
    left: int | None = None
    instructions: int = 1
    product: bool = False
    commits: bool = False
    products_left: int | None = None
    line: int = 0

    @property
    def may_wait(self) -> bool:
        """Whether it waits for anything."""
        return bool(self.waits) or self.left is not None or self.products_left is not None

    def awaits(self, barrier: int) -> bool:
        """Whether it waits for a barrier, a group of copies, which negative numbers stand for: -1 is the latest, or one
        of products (`_QUEUE`)."""
        if barrier >= _QUEUE:
            return self.products_left is not None and barrier > _QUEUE + self.products_left
        return bool(self.waits >> barrier & 1) if barrier >= 0 else self.left is not None and barrier < -self.left


@dataclass(frozen=True, slots=True)
class ScheduledBlock:
    """A block: its steps, the clocks behind the last one, and its instructions."""

    steps: tuple[ScheduledInstruction, ...]
    rest: int
    instructions: int

    @property
    def products(self) -> int:
        """Products by warpgroups in it."""
        return sum(step.product for step in self.steps)

    @property
    def clocks(self) -> int:
        """Clocks without any wait."""
        return sum(step.clocks for step in self.steps) + self.rest


Clocks = defaultdict[WaitCause, float]
"""Clocks of a warp by cause; zero for those that are missing."""
_Raised = tuple[ArrivalTime, WaitCause]
_UnderWay = dict[int, _Raised]
"""Barrier, or group of copies as in `ScheduledInstruction.awaits` -> when it comes down, and what for."""


@dataclass(frozen=True)
class Schedule:
    """The code of a kernel as ptxas has scheduled it.

    Attributes:
        blocks: as in the graph.
        order: those that can be reached, each before those it dominates.
        before: blocks from which one comes to each.
        above: immediate dominator of each; None for those that code begins with.
    """

    blocks: tuple[ScheduledBlock, ...]
    order: tuple[int, ...]
    before: Mapping[int, Sequence[int]]
    above: Mapping[int, int | None]

    @classmethod
    def of(cls, code: Sequence[MachineInstruction], graph: Graph) -> Schedule:
        """The schedule of a kernel and the functions that it calls."""
        blocks = tuple(_scheduled(code[one.first : one.end]) for one in graph.blocks)
        before = {block: tuple(graph.predecessors.get(block, ())) for block in graph.order}
        return cls(blocks, tuple(graph.order), before, dict(graph.above))

    def clocks(
        self,
        executions: Sequence[float],
        latency: Mapping[WaitCause, float],
        sharing: float = 1.0,
        loads: Mapping[int, ArrivalTime] | None = None,
    ) -> Clocks:
        """Clocks that one warp takes, by cause.

        Args:
            executions: of each block, by one warp.
            latency: of every cause but `ISSUE` and `WAIT`.
            sharing: warps that issue the same code through one scheduler at the same time.
            loads: by line of the PTX, when what a load from device memory has asked for comes; others take the latency.
        """
        known = _Latencies(latency, loads or {})
        left: dict[int, _UnderWay] = {}
        spent: dict[int, Clocks] = {}
        for _ in range(_ROUNDS):
            for block in self.order:
                if executions[block]:
                    spent[block], left[block] = _run(
                        self.blocks[block], self._entering(block, executions, left), known, sharing
                    )
        total = Clocks(float)
        for block, found in spent.items():
            for cause, clocks in found.items():
                total[cause] += clocks * executions[block]
        return total

    def _entering(self, block: int, executions: Sequence[float], left: Mapping[int, _UnderWay]) -> _UnderWay:
        """What is under way when a block begins: the latest of the frequent ways into it."""
        ways = {one: min(executions[one], executions[block]) for one in self.before[block] if one in left}
        most = max(ways.values(), default=0.0)
        found: _UnderWay = {}
        for one, times in ways.items():
            if times >= _FREQUENT * most:
                for barrier, (down, cause) in left[one].items():
                    if barrier not in found or found[barrier][0].expected(0.0) < down.expected(0.0):
                        found[barrier] = (down, cause)
        return found


@dataclass(frozen=True)
class WarpPath:
    """What a mean warp of a launch executes: `executions` of each block of the schedule."""

    schedule: Schedule
    executions: tuple[float, ...]

    def clocks(
        self,
        latency: Mapping[WaitCause, float],
        sharing: float = 1.0,
        loads: Mapping[int, ArrivalTime] | None = None,
    ) -> Clocks:
        """Clocks by cause, given the latency of each but `ISSUE` and `WAIT`; the others as for `Schedule.clocks`."""
        return self.schedule.clocks(self.executions, latency, sharing, loads)

    @property
    def products(self) -> float:
        """Products by warpgroups that a mean warp takes part in."""
        return sum(
            times * block.products for times, block in zip(self.executions, self.schedule.blocks, strict=True) if times
        )

    def of_products(self, warps: int) -> tuple[WarpPath, int]:
        """The path of a mean warp among those of a block that multiply by warpgroups, and how many of its warps these
        are.

        Where warps have roles, a branch sends those that copy and those that multiply to code of their own: of the
        blocks on the way to the products, that with the fewest executions tells how many warps go there.
        """
        blocks = self.schedule.blocks
        main = max(self.schedule.order, key=lambda one: self.executions[one] * blocks[one].products)
        way = self._way_to(main)
        share, start = self._fewest(way)
        multiplying = WARPGROUP_WARPS * max(1, round(min(1.0, share) * warps / WARPGROUP_WARPS))
        share = min(1.0, multiplying / warps)
        own = self._dominated(start)
        reached = self._reached(start)
        executions = tuple(
            times / share if block in own else times if block in way or block in reached else 0.0
            for block, times in enumerate(self.executions)
        )
        return WarpPath(self.schedule, executions), multiplying

    def _way_to(self, block: int) -> list[int]:
        """A block and those that dominate it, upwards."""
        way = [block]
        while (parent := self.schedule.above.get(way[-1])) is not None:
            way.append(parent)
        return way

    def _fewest(self, way: Sequence[int]) -> tuple[float, int]:
        """The fewest executions on a way upwards, and the outermost block that has them."""
        fewest, place = min((self.executions[one], -place) for place, one in enumerate(way))
        return fewest, way[-place]

    def _dominated(self, start: int) -> set[int]:
        found = {start}
        for block in self.schedule.order:
            if self.schedule.above.get(block) in found:
                found.add(block)
        return found

    def _reached(self, start: int) -> set[int]:
        """Blocks that may come after one."""
        found = {start}
        size = 0
        while len(found) != size:
            size = len(found)
            found |= {block for block in self.schedule.order if not found.isdisjoint(self.schedule.before[block])}
        return found


@dataclass(frozen=True)
class _Latencies:
    """Latency of each cause, and of each line with a load from device memory when that comes."""

    clocks: Mapping[WaitCause, float]
    loads: Mapping[int, ArrivalTime]

    def of(self, cause: WaitCause, line: int) -> ArrivalTime:
        """In clocks from its issue."""
        known = self.loads.get(line) if cause is WaitCause.GLOBAL else None
        return known or ArrivalTime.at(self.clocks[cause])


def _run(block: ScheduledBlock, under_way: _UnderWay, latency: _Latencies, sharing: float) -> tuple[Clocks, _UnderWay]:
    """Clocks by cause of one execution, and what is under way at its end, in clocks from there."""
    now, spent = 0.0, Clocks(float)
    spent |= {WaitCause.ISSUE: block.instructions, WaitCause.WAIT: block.clocks - block.instructions}
    for step in block.steps:
        taken = max(step.clocks, sharing * (step.instructions - 1))
        spent[WaitCause.ISSUE] += taken - step.clocks
        now += taken
        if step.may_wait and (awaited := [barrier for barrier in under_way if step.awaits(barrier)]):
            _, cause = max((under_way[one] for one in awaited), key=lambda found: found[0].expected(now))
            until = ArrivalTime.last([under_way.pop(one)[0] for one in awaited]).expected(now)
            spent[cause] += until - now
            now = until
        for barrier, cause in step.raises:
            raised = (latency.of(cause, step.line).after(now), cause)
            under_way[barrier] = _both(under_way[barrier], raised, now) if barrier in under_way else raised
        if step.closes:
            groups = {one - 1: found for one, found in under_way.items() if -_MOST_GROUPS < one < 0}
            under_way = {one: found for one, found in under_way.items() if one >= 0} | groups
            under_way[-1] = (ArrivalTime.at(now + latency.clocks[WaitCause.GLOBAL]), WaitCause.GLOBAL)
        if step.product:
            begins = max(now, under_way[_QUEUE][0].near if _QUEUE in under_way else now)
            under_way[_QUEUE] = (ArrivalTime.at(begins + latency.clocks[WaitCause.PRODUCT]), WaitCause.PRODUCT)
        if step.commits:
            later = {one + 1: found for one, found in under_way.items() if _QUEUE < one < _QUEUE + _MOST_GROUPS}
            under_way = {one: found for one, found in under_way.items() if one <= _QUEUE} | later
            under_way[_QUEUE + 1] = under_way[_QUEUE]
        if step.costs is not None:
            spent[step.costs] += latency.clocks[step.costs]
            now += latency.clocks[step.costs]
    issued = block.instructions - sum(step.instructions for step in block.steps) + bool(block.steps)
    rest = max(block.rest, sharing * issued)
    spent[WaitCause.ISSUE] += rest - block.rest
    end = now + rest
    left = {barrier: (down.after(-end), cause) for barrier, (down, cause) in under_way.items()}
    return spent, {barrier: found for barrier, found in left.items() if found[0].expected(0.0) > 0}


def _both(
    one: tuple[ArrivalTime, WaitCause], other: tuple[ArrivalTime, WaitCause], now: float
) -> tuple[ArrivalTime, WaitCause]:
    """What a barrier stands for that has been raised twice: the later of both, with the cause of that which takes
    longer."""
    cause = max(one, other, key=lambda found: found[0].expected(now))[1]
    return ArrivalTime.last([one[0], other[0]]), cause


def _scheduled(code: Sequence[MachineInstruction]) -> ScheduledBlock:
    steps, clocks, instructions, counted = [], 0, 0, 0
    for one in code:
        if one.operation == Opcode.NOP:
            continue
        cause = _CAUSES.get(one.operation, WaitCause.SPECIAL)
        raises = tuple(
            (barrier, why)
            for barrier, why in ((one.control.result, cause), (one.control.operands, WaitCause.OPERANDS))
            if barrier is not None and one.operation != Opcode.LDGDEPBAR
        )
        instructions += 1
        step = ScheduledInstruction(
            clocks, one.control.waits, raises, _COSTS.get(one.operation), one.operation == Opcode.LDGDEPBAR, one.left,
            instructions - counted, one.operation in PRODUCTS, one.commits, one.products_left, one.line,
        )  # fmt: skip
        if step.may_wait or raises or step.costs or step.closes or step.product:
            steps.append(step)
            clocks, counted = 0, instructions
        clocks += one.control.clocks
    return ScheduledBlock(tuple(steps), clocks, instructions)
