"""Control flow of machine code: basic blocks, loops, and groups of blocks that are executed equally often.

Dominators by the algorithm of Cooper, Harvey and Kennedy (A Simple, Fast Dominance Algorithm, 2001). Two blocks are
control equivalent when one dominates the other, the other post-dominates the one, and they lie in the same loops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ptxemu.machine.instructions import MachineInstruction, Opcode

_ENDS = (Opcode.BRA, Opcode.BRX, Opcode.EXIT, Opcode.RET, Opcode.CALL)


@dataclass(frozen=True)
class Block:
    """Instructions `first` up to but not with `end`.

    Attributes:
        successors: blocks that may come next; the number of blocks stands for the end of the kernel or function.
        calls: position of the function that it ends by calling.
        if_diverged: the successor that only warps take whose threads have parted.
    """

    first: int
    end: int
    successors: tuple[int, ...]
    calls: int | None = None
    if_diverged: int | None = None


@dataclass(frozen=True)
class Graph:
    """Control flow of a kernel and the functions it calls. Block 0 is the kernel's first.

    Attributes:
        blocks: all, in the order of the code.
        entries: first blocks of the kernel and of its functions.
    """

    blocks: tuple[Block, ...]
    entries: tuple[int, ...]

    @property
    def end(self) -> int:
        """Stands for the end of the kernel or of a function."""
        return len(self.blocks)

    @cached_property
    def order(self) -> list[int]:
        """Blocks that can be reached, each before those it dominates."""
        return [block for block in self._forward.order if block < self.end]

    @cached_property
    def above(self) -> dict[int, int | None]:
        """Immediate dominator of each block that can be reached; None for entries."""
        found = self._forward.parent
        return {block: parent if (parent := found[block]) < self.end else None for block in self.order}

    @cached_property
    def predecessors(self) -> dict[int, list[int]]:
        """Blocks from which one may come, without calls."""
        found: dict[int, list[int]] = defaultdict(list)
        for block in self.order:
            for successor in self.blocks[block].successors:
                found[successor].append(block)
        return found

    @cached_property
    def loops(self) -> dict[int, frozenset[int]]:
        """First block of each loop -> all its blocks; natural loops with the same head are one."""
        found: dict[int, set[int]] = {}
        for block in self.order:
            for head in self.blocks[block].successors:
                if head < self.end and self._forward.over(head, block):
                    body = found.setdefault(head, {head})
                    waiting = [block]
                    while waiting:
                        one = waiting.pop()
                        if one not in body:
                            body.add(one)
                            waiting += self.predecessors[one]
        return {head: frozenset(body) for head, body in found.items()}

    @cached_property
    def loop_of(self) -> dict[int, int | None]:
        """Head of the innermost loop around each block."""
        by_size = sorted(self.loops, key=lambda head: -len(self.loops[head]))
        found: dict[int, int | None] = dict.fromkeys(self.order)
        for head in by_size:
            found.update(dict.fromkeys(self.loops[head], head))
        return found

    @cached_property
    def group_of(self) -> dict[int, int]:
        """First block of the group of control equivalent blocks that each block belongs to."""
        found: dict[int, int] = {}
        for block in self.order:
            found.setdefault(block, block)
            after = self._backward.parent.get(block)
            while after is not None and after < self.end:
                if self.loop_of.get(after) == self.loop_of[block] and self._forward.over(block, after):
                    found[after] = found[block]
                    break
                after = self._backward.parent.get(after)
        return found

    @cached_property
    def _forward(self) -> _Dominators:
        root = self.end + 1
        following = {root: list(self.entries), **{k: list(one.successors) for k, one in enumerate(self.blocks)}}
        return _Dominators(root, lambda block: following.get(block, ()))

    @cached_property
    def _backward(self) -> _Dominators:
        return _Dominators(self.end, lambda block: self.predecessors.get(block, ()))


class _Dominators:
    """Dominator tree of what can be reached from a root.

    Attributes:
        order: nodes, each before those it dominates.
        parent: immediate dominator of each node but the root, which is its own.
    """

    def __init__(self, root: int, following: Callable[[int], Iterable[int]]) -> None:
        self.order = _reverse_postorder(root, following)
        self._place = {node: place for place, node in enumerate(self.order)}
        self.parent = {root: root}
        before: dict[int, list[int]] = defaultdict(list)
        for node in self.order:
            for successor in following(node):
                before[successor].append(node)
        changed = True
        while changed:
            changed = False
            for node in self.order[1:]:
                known = [one for one in before[node] if one in self.parent]
                parent = known[0]
                for other in known[1:]:
                    parent = self._common(parent, other)
                changed = changed or self.parent.get(node) != parent
                self.parent[node] = parent

    def over(self, node: int, other: int) -> bool:
        """Whether `node` dominates `other`; each dominates itself."""
        while self._place[other] > self._place[node]:
            other = self.parent[other]
        return other == node

    def _common(self, one: int, other: int) -> int:
        while one != other:
            while self._place[one] > self._place[other]:
                one = self.parent[one]
            while self._place[other] > self._place[one]:
                other = self.parent[other]
        return one


def _reverse_postorder(root: int, following: Callable[[int], Iterable[int]]) -> list[int]:
    seen, finished = {root}, []
    stack = [(root, iter(following(root)))]
    while stack:
        node, rest = stack[-1]
        step = next((one for one in rest if one not in seen), None)
        if step is None:
            finished.append(node)
            stack.pop()
        else:
            seen.add(step)
            stack.append((step, iter(following(step))))
    return finished[::-1]


def graph_of(code: Sequence[MachineInstruction], functions: Iterable[int]) -> Graph:
    """Control flow of a section, whose first instruction is the kernel's and whose functions begin at `functions`.

    A jump through a table may lead to every block that nothing else leads to.
    """
    starts = {0, *(start for start in functions if 0 < start < len(code))}
    entries = sorted(starts)
    for position, one in enumerate(code):
        if one.target is not None and 0 <= one.target < len(code):
            starts.add(one.target)
        if one.operation in _ENDS and position + 1 < len(code):
            starts.add(position + 1)
    order = sorted(starts)
    number = {start: k for k, start in enumerate(order)}
    bounds = list(zip(order, [*order[1:], len(code)], strict=True))
    direct = {k: _direct_successors(code, end, number) for k, (_, end) in enumerate(bounds)}
    led_to = {one for found in direct.values() for one in found} | {number[start] for start in entries}
    tabled = tuple(k for k in range(len(bounds)) if k not in led_to)
    blocks = []
    for k, (first, end) in enumerate(bounds):
        last = code[end - 1]
        calls = last.target if last.operation == Opcode.CALL else None
        diverged = direct[k][0] if last.if_diverged else None
        successors = tabled if last.operation == Opcode.BRX else direct[k]
        blocks.append(Block(first, end, successors, calls, diverged))
    return Graph(tuple(blocks), tuple(number[start] for start in entries))


def _direct_successors(code: Sequence[MachineInstruction], end: int, number: dict[int, int]) -> tuple[int, ...]:
    """Blocks that the block which ends before `end` leads to, a jump's target first."""
    last, leave = code[end - 1], len(number)
    behind = (number[end],) if end < len(code) else (leave,)
    if last.operation == Opcode.BRA and last.target in number:
        return tuple(dict.fromkeys((number[last.target], *(behind if last.guarded else ()))))
    if last.operation in (Opcode.EXIT, Opcode.RET):
        return (leave, *(behind if last.guarded else ()))
    return () if last.operation == Opcode.BRX else behind
