"""How often each block of machine code is executed, from how often the lines of the PTX are.

The problem is that of profile-guided compilers, which know samples of source lines and want counts of blocks (Chen, Li,
Moseley: AutoFDO, 2016), and so is the way: counts spread from anchors to groups of control-equivalent blocks, and along
edges by conservation of flow. ptxas also copies statements when it unrolls loops. Copies share the count of their line;
where several groups hold copies, loops with the most copies take as many whole rounds as there are, and what is left
goes to the next, as ptxas arranges them.

Loops of whose head no anchor, edge or copy tells anything (those of 64-bit integers, of which every instruction is one
that ptxas makes up, too) are estimated from all lines of the PTX that have instructions there and nowhere else: a line
is executed as often as the loop times its copies, of which it has no more than instructions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ptxemu.machine.anchors import Anchor
from ptxemu.machine.graph import Graph

_ROUNDING = 1e-9
_UNKNOWN_SHARE = 0.5
"""Of what leads to a block of which nothing is known."""


@dataclass(frozen=True)
class Executions:
    """How often warps execute each block.

    Attributes:
        times: of each block.
        guessed: blocks of which nothing tells, and those that follow from them alone.
    """

    times: list[float]
    guessed: frozenset[int]


@dataclass(frozen=True)
class Flow:
    """What is known of a kernel's code before it runs.

    Attributes:
        graph: its control flow.
        anchors: PTX lines whose counts are counts of instructions.
        internal: first blocks of functions that ptxas has added, such as the slow path of a division.
        lines: of every block: line of the PTX -> instructions that stem from it.
    """

    graph: Graph
    anchors: Sequence[Anchor]
    internal: frozenset[int]
    lines: Sequence[Mapping[int, int]]
    fallbacks: frozenset[int] = frozenset()
    """Blocks that ptxas has added for atomics at generic addresses that turn out not to lie in device memory."""

    @cached_property
    def total(self) -> Counter[int]:
        """Instructions of each line in all blocks."""
        return sum((Counter(one) for one in self.lines), Counter())

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """Blocks of each group, the dominating one first."""
        found: dict[int, list[int]] = defaultdict(list)
        for block in self.graph.order:
            found[self.graph.group_of[block]].append(block)
        return dict(found)

    @cached_property
    def callers(self) -> dict[int, list[int]]:
        """First block of each function that is called by name -> the blocks that call it."""
        first = {block.first: k for k, block in enumerate(self.graph.blocks)}
        found: dict[int, list[int]] = defaultdict(list)
        for block in self.graph.order:
            target = self.graph.blocks[block].calls
            if target is not None and target in first:
                found[first[target]].append(block)
        return dict(found)

    def solved(self, executed: Mapping[int, int], warps: int) -> Executions:
        """How often warps execute each block.

        Args:
            executed: line of the PTX -> warp instructions; lines that are not in it are not executed.
            warps: of the launch.
        """
        solver = _Solver(self, executed, warps)
        times = [solver.count(block) or 0.0 for block in range(self.graph.end)]
        return Executions(times, frozenset(block for block in self.graph.order if solver.was_guessed(block)))

    def executions(self, executed: Mapping[int, int], warps: int) -> list[float]:
        """The times alone."""
        return self.solved(executed, warps).times


class _Solver:
    """Counts of groups and edges, as far as they are known."""

    def __init__(self, flow: Flow, executed: Mapping[int, int], warps: int) -> None:
        self._flow = flow
        self._graph = flow.graph
        self._executed = executed
        self._groups: dict[int, float] = {flow.graph.group_of[0]: float(warps)}
        self._edges: dict[tuple[int, int], float] = {}
        self._guessed: set[int] = set()
        self._leave_out_what_is_rare()
        while self._follow_anchors() or self._follow_edges() or self._share_copies() or self._guess():
            pass

    def count(self, block: int) -> float | None:
        """Executions of a block; None while not known, and for the end."""
        group = self._graph.group_of.get(block)
        return None if group is None else self._groups.get(group)

    def was_guessed(self, block: int) -> bool:
        """Whether nothing but a guess tells how often it is executed."""
        return self._graph.group_of[block] in self._guessed

    def _leave_out_what_is_rare(self) -> None:
        """Slow paths, and copies of code for warps whose threads have parted."""
        rare = [*self._flow.fallbacks]
        rare += [block for entry in self._flow.internal for block in self._flow.callers.get(entry, ())]
        for block in self._graph.order:
            diverged = self._graph.blocks[block].if_diverged
            if diverged is not None and diverged < self._graph.end:
                self._edges[block, diverged] = 0.0
                rare.append(diverged)
        for block in rare:
            above = self._graph.above[block]
            if above is not None and self._graph.group_of[above] != self._graph.group_of[block]:
                self._groups.setdefault(self._graph.group_of[block], 0.0)

    def _follow_anchors(self) -> bool:
        """Groups that hold all copies of a line that are not yet accounted for."""
        sure: dict[int, list[float]] = defaultdict(list)
        least: dict[int, list[float]] = defaultdict(list)
        for anchor in self._flow.anchors:
            unknown = [group for group in anchor.copies if group not in self._groups]
            if len(unknown) == 1:
                group = unknown[0]
                (least if group in anchor.guarded else sure)[group].append(self._left(anchor) / anchor.copies[group])
        for group, counts in least.items():
            self._groups[group] = max(counts)
        for group, counts in sure.items():
            self._groups[group] = sorted(counts)[(len(counts) - 1) // 2]
        return bool(sure or least)

    def _left(self, anchor: Anchor) -> float:
        """Executions of a line beyond those of groups that are known."""
        known = sum(self._groups[group] * copies for group, copies in anchor.copies.items() if group in self._groups)
        return max(0.0, self._executed.get(anchor.line, 0) - known)

    def _follow_edges(self) -> bool:
        """What comes into a block goes out of it: the last unknown count of a side follows from the others."""
        before = (len(self._groups), len(self._edges))
        for block in self._graph.order:
            for side in self._sides(block):
                unknown = [edge for edge in side if edge not in self._edges]
                count = self.count(block)
                if count is None and not unknown:
                    group = self._graph.group_of[block]
                    self._groups[group] = sum(self._edges[edge] for edge in side)
                    if self._guessed:
                        self._guessed.add(group)
                elif count is not None and len(unknown) == 1:
                    known = sum(self._edges[edge] for edge in side if edge in self._edges)
                    self._edges[unknown[0]] = max(0.0, count - known)
        return before != (len(self._groups), len(self._edges))

    def _sides(self, block: int) -> Iterator[list[tuple[int, int]]]:
        """Edges into a block and out of it. Calls are edges into a function, which return and so leave no block."""
        callers = self._flow.callers.get(block, [])
        for caller in callers:
            count = self.count(caller)
            if count is not None:
                self._edges[caller, block] = count
        into = [(one, block) for one in (*self._graph.predecessors.get(block, ()), *callers)]
        if block not in self._graph.entries or callers:
            yield into
        yield [(block, one) for one in self._graph.blocks[block].successors]

    def _share_copies(self) -> bool:
        """Give one of the groups that share the copies of a line its part: loops first, the most copies first."""
        best: tuple[bool, int, int] | None = None
        line: Anchor | None = None
        for anchor in self._flow.anchors:
            unknown = [group for group in anchor.copies if group not in self._groups]
            for group in unknown if len(unknown) > 1 else ():
                rank = (self._graph.loop_of[group] is not None, anchor.copies[group], -group)
                if best is None or rank > best:
                    best, line = rank, anchor
        if best is None or line is None:
            return False
        group = -best[2]
        times, repeated = self._times_reached(group, line)
        counts = sorted(
            self._whole_rounds(self._left(anchor), times, anchor.copies[group], repeated)
            for anchor in self._flow.anchors
            if group in anchor.copies
        )
        self._groups[group] = counts[(len(counts) - 1) // 2]
        return True

    @staticmethod
    def _whole_rounds(left: float, times: float, copies: int, repeated: bool) -> float:
        """Executions of a group with `copies` of a line that is executed `left` times more."""
        if times == 0:
            return 0.0
        rounds = int(left / times / copies + _ROUNDING)
        return times * (rounds if repeated else min(rounds, 1))

    def _times_reached(self, group: int, line: Anchor) -> tuple[float, bool]:
        """How often control comes to a group from outside its own loop, and whether it has one.

        A loop that also holds the other copies of the line is not its own.
        """
        head = self._graph.loop_of[group]
        if head is not None:
            body = self._graph.loops[head]
            if not all(self._flow.members[other][0] in body for other in line.copies):
                return self._count_above(head), True
        return self._count_above(group), False

    def _count_above(self, block: int) -> float:
        """Executions of the nearest dominating block that is known."""
        above = self._graph.above[block]
        while above is not None:
            count = self.count(above)
            if count is not None:
                return count
            above = self._graph.above[above]
        return 0.0

    def _guess(self) -> bool:
        """A block is executed when one that it dominates is; where nothing is known, half the time."""
        unknown = [group for group in self._flow.members if group not in self._groups]
        if not unknown:
            return False
        most = self._most_below()
        if any(self._estimate(group) for group in unknown):
            return True
        for group in reversed(unknown):
            below = [most[block] for block in self._flow.members[group] if block in most]
            if below:
                self._groups[group] = min(self._count_above(group), max(below))
                self._guessed.add(group)
                return True
        self._groups[unknown[0]] = _UNKNOWN_SHARE * self._count_above(unknown[0])
        self._guessed.add(unknown[0])
        return True

    def _estimate(self, group: int) -> bool:
        """Count the head of a loop by the lines of the PTX that it stems from."""
        head = self._graph.loop_of[group]
        if head is None or self._graph.group_of[head] != group:
            return False
        own: Counter[int] = Counter()
        for block in self._flow.members[group]:
            own.update(self._flow.lines[block])
        counts = [self._executed.get(line, 0) / own[line] for line in own if own[line] == self._flow.total[line]]
        if counts:
            self._groups[group] = max(self._count_above(head), *counts)
        return bool(counts)

    def _most_below(self) -> dict[int, float]:
        """The most executions of the known blocks that a block dominates, for blocks that dominate one."""
        most: dict[int, float] = {}
        for block in reversed(self._graph.order):
            own = self.count(block)
            known = [value for value in (own, most.get(block)) if value is not None]
            above = self._graph.above[block]
            if known and above is not None:
                most[above] = max(most.get(above, 0.0), *known)
        return most
