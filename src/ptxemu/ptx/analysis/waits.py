"""What a warp waits for, one thing after the other: the longest chain of dependent instructions of each region.

A region is what a warp passes from top to bottom: it ends at loop heads, backward and unconditional branches,
barriers, calls and exits. Inside a region ptxas moves loads ahead of what needs them, so that instructions overlap
unless one needs the result of another, or a branch that decides whether it runs. Loads stay behind shuffles and behind
stores that may go to the same place, and nothing passes a branch or label with a store before it: it begins when that
store has what it needs. The chain that takes longest, by nominal latencies, is what a lone warp waits for; its
instructions are marked with the kind of their latency, and the core counts how often marked ones are executed. How
long each kind takes on a GPU is for the timing model to say.

Short loops that the compiler before ptxas has unrolled, which several loads show, are unrolled again by ptxas,
`UNROLLED` times, when they store nothing: the loads of as many rounds are then waited for together, unless an address
depends on what an earlier round has loaded. The rules are read off the machine code of the conformance programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ptxemu.ptx.analysis.dataflow import names
from ptxemu.ptx.tree import Label, Statement


class Wait(IntEnum):
    """Kind of a latency; the core knows the numbers, the report the names in lower case."""

    NONE = 0
    GLOBAL = 1
    SHARED = 2
    ATOMIC = 3
    SHUFFLE = 4
    SPECIAL = 5
    """Transcendental functions and conversions."""
    ARITHMETIC = 6
    DOUBLE = 7
    TENSOR = 8
    DIVISION = 9
    GLOBAL_UNROLLED = 10
    """A load in a loop that ptxas unrolls: `UNROLLED` of them are waited for together."""
    SHARED_UNROLLED = 11


UNROLLED = 4
_UNROLLED_STATEMENTS, _UNROLLED_LOADS = 45, 4
"""Most statements and fewest loads of a loop that ptxas unrolls again."""
_UNROLLED_KINDS = {Wait.GLOBAL: Wait.GLOBAL_UNROLLED, Wait.SHARED: Wait.SHARED_UNROLLED}
_NOMINAL = {
    Wait.NONE: 0,
    Wait.GLOBAL: 500,
    Wait.SHARED: 30,
    Wait.ATOMIC: 500,
    Wait.SHUFFLE: 25,
    Wait.SPECIAL: 20,
    Wait.ARITHMETIC: 5,
    Wait.DOUBLE: 8,
    Wait.TENSOR: 34,
    Wait.DIVISION: 60,
}
"""Clocks; only their order of magnitude matters here."""
_LEAVES = frozenset(["ret", "exit", "trap"])
_BARRIERS = frozenset(["bar", "barrier", "membar", "fence", "mbarrier", "call", "brx"])
_SILENT = frozenset(["mov", "cvta", "st", "sust", "red", "bra", "prefetch", "isspacep", "discard", "applypriority"])
_SPECIAL = frozenset(["ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "popc", "brev", "clz", "bfind"])
_SHARED_MATRIX = frozenset(["ldmatrix", "stmatrix", "movmatrix"])
_NO_RESULT = frozenset(["st", "sust", "red", "bra", "prefetch", "cp", "stmatrix", "discard", *_LEAVES, *_BARRIERS])


@dataclass(slots=True)
class _Step:
    """One statement of a region: when its result is there, what it waited for, and the kind of its own latency."""

    finish: int
    before: _Step | None
    index: int
    kind: Wait
    loaded: bool
    """Whether the result depends on a load of the region."""
    entered: frozenset[str]
    """Registers from before the region that the result depends on."""


@dataclass(slots=True)
class _Region:
    head: str | None = None
    """Label it begins with, when a later branch jumps there."""
    ready: dict[str, _Step] = field(default_factory=dict)
    pending: _Step | None = None
    """What the last store since a branch or label had waited for."""
    ordered: _Step | None = None
    """What everything behind the last branch or label waits for."""
    shuffled: _Step | None = None
    """What the last shuffle waited for: loads behind it begin no sooner."""
    stored: dict[Wait, _Step] = field(default_factory=dict)
    """What the last store had waited for, by the kind of loads that may not pass it."""
    copied: _Step | None = None
    """The last asynchronous copy."""
    last: _Step | None = None
    """What finishes last."""
    statements: int = 0
    stores: bool = False
    addresses: list[_Step] = field(default_factory=list)
    """Loads, whose steps say what their addresses depend on."""

    def unrolled(self, end: Statement | None) -> bool:
        """Whether ptxas unrolls the loop that this region is, and no load waits for one of an earlier round."""
        if self.head is None or end is None or self.head not in names(end.operands):
            return False
        if self.stores or self.shuffled is not None or self.statements > _UNROLLED_STATEMENTS:
            return False
        if len(self.addresses) < _UNROLLED_LOADS:
            return False
        carried = {name for name, step in self.ready.items() if step.loaded}
        return not any(load.loaded or load.entered & carried for load in self.addresses)


def waits(body: Sequence[Statement | Label]) -> dict[int, Wait]:
    """Index in the body -> kind of wait, for the statements on the longest chain of their region."""
    heads = _loop_heads(body)
    positions = {item.name: index for index, item in enumerate(body) if isinstance(item, Label)}
    marked: dict[int, Wait] = {}
    region = _Region()
    for index, item in enumerate(body):
        if isinstance(item, Label):
            if item.name in heads:
                _close(region, marked, None)
                region = _Region(head=item.name)
            _settle(region, None)
            continue
        _advance(region, item, index)
        if _ends(item, index, positions):
            _close(region, marked, item)
            region = _Region()
    _close(region, marked, None)
    return marked


def _loop_heads(body: Sequence[Statement | Label]) -> frozenset[str]:
    """Labels that a branch further down jumps to."""
    seen: set[str] = set()
    heads: set[str] = set()
    for item in body:
        if isinstance(item, Label):
            seen.add(item.name)
        elif item.parts[0] == "bra":
            heads.update(name for name in names(item.operands) if name in seen)
    return frozenset(heads)


def _ends(item: Statement, index: int, positions: dict[str, int]) -> bool:
    if item.parts[0] in _BARRIERS:
        return True
    if item.parts[0] == "bra":
        return item.guard is None or any(positions.get(name, index) < index for name in names(item.operands))
    return item.guard is None and item.parts[0] in _LEAVES


def _advance(region: _Region, item: Statement, index: int) -> None:
    """Let one statement run as soon as what it needs is there."""
    head, kind = item.parts[0], _kind(item)
    results, sources = _results_and_sources(item)
    needed = [region.ready[name] for name in sources if name in region.ready]
    entered = frozenset(name for name in sources if name not in region.ready).union(*(one.entered for one in needed))
    loaded = any(one.loaded for one in needed)
    if kind in _UNROLLED_KINDS:
        region.addresses.append(_Step(0, None, index, kind, loaded, entered))
    waited = [*needed, *_waited_for(region, item, kind)]
    before = max(waited, key=lambda step: step.finish, default=None)
    start = before.finish if before is not None else 0
    step = _Step(start + _NOMINAL[kind], before, index, kind, loaded or kind in _UNROLLED_KINDS, entered)
    for name in results:
        region.ready[name] = step
    region.statements += 1
    region.stores = region.stores or head in ("st", "red", "atom", "cp")
    issue = _Step(start, before, index, Wait.NONE, loaded, entered)
    if kind is Wait.SHUFFLE:
        region.shuffled = issue
    if head in ("st", "red"):
        shared = any(part.partition("::")[0] == "shared" for part in item.parts)
        region.pending = region.stored[Wait.SHARED if shared else Wait.GLOBAL] = issue
    if head == "bra" and item.guard is not None:
        _settle(region, step)
    if head == "cp" and kind is Wait.GLOBAL:
        region.copied = step
    elif region.last is None or step.finish > region.last.finish:
        region.last = step


def _settle(region: _Region, condition: _Step | None) -> None:
    """At a branch or label: what follows waits for the stores before it, and for the branch's condition."""
    steps = [step for step in (region.ordered, region.pending, condition) if step is not None]
    region.ordered = max(steps, key=lambda step: step.finish, default=None)
    region.pending = None


def _waited_for(region: _Region, item: Statement, kind: Wait) -> list[_Step]:
    """What a statement waits for beside its operands."""
    found = [region.ordered]
    if "nc" not in item.parts:
        found.append(region.stored.get(kind))
    if kind is Wait.GLOBAL:
        found.append(region.shuffled)
    if _waits_for_copies(item):
        found.append(region.copied)
    return [step for step in found if step is not None]


def _waits_for_copies(item: Statement) -> bool:
    """Whether nothing asynchronous is under way after the statement."""
    return "wait_all" in item.parts or ("wait_group" in item.parts and item.operands == ["0"])


def _close(region: _Region, marked: dict[int, Wait], end: Statement | None) -> None:
    """Mark the longest chain of a region that `end` has ended."""
    unrolled = region.unrolled(end)
    step = region.last
    while step is not None:
        if step.kind is not Wait.NONE:
            marked[step.index] = _UNROLLED_KINDS.get(step.kind, step.kind) if unrolled else step.kind
        step = step.before


def _results_and_sources(item: Statement) -> tuple[list[str], list[str]]:
    """Names that a statement writes and reads; an address is read wherever it stands."""
    operands = item.operands
    results = [] if item.parts[0] in _NO_RESULT or not operands else list(names(operands[:1]))
    sources = list(names(operands[0 if not results else 1 :]))
    if item.guard is not None:
        # A statement that may not run leaves what was there before.
        sources += [item.guard, *results]
    return results, sources


def _kind(item: Statement) -> Wait:
    head, parts = item.parts[0], item.parts
    if head in ("ld", "ldu", "wmma", "mma", "atom", "cp", "tex", "tld4", "suld"):
        return _kind_of_transfer(head, parts)
    if head in _SILENT or head in _LEAVES or head in _BARRIERS:
        return Wait.NONE
    if head in ("shfl", "vote", "match", "redux", "activemask"):
        return Wait.SHUFFLE
    if head in _SHARED_MATRIX:
        return Wait.SHARED
    if head in ("div", "rem") or (head in ("rcp", "sqrt") and "approx" not in parts):
        return Wait.DIVISION if "approx" not in parts else Wait.SPECIAL
    if head in _SPECIAL or head in ("rcp", "sqrt") or (head == "cvt" and _through_special_unit(parts)):
        return Wait.SPECIAL
    return Wait.DOUBLE if parts[-1] == "f64" else Wait.ARITHMETIC


def _kind_of_transfer(head: str, parts: Sequence[str]) -> Wait:
    """Kind of a load, an atomic, an asynchronous copy, or a matrix operation."""
    if head == "mma" or (head == "wmma" and "mma" in parts):
        return Wait.TENSOR
    if head == "wmma" and "store" in parts:
        return Wait.NONE
    if any(part.partition("::")[0] == "shared" for part in parts) and head != "cp":
        return Wait.SHARED
    if head == "atom":
        return Wait.ATOMIC
    if head == "cp":
        copies = "async" in parts and not {"commit_group", "wait_group", "wait_all"} & set(parts)
        return Wait.GLOBAL if copies else Wait.NONE
    return Wait.NONE if {"param", "const"} & set(parts) else Wait.GLOBAL


def _through_special_unit(parts: Sequence[str]) -> bool:
    """Conversions between integers and floats, and of doubles."""
    kinds = [part for part in parts if part[:1] in "sufb" and part[1:].isdigit()]
    return "f64" in kinds or len({part[0] == "f" for part in kinds}) == 2
