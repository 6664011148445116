"""Which machine instructions stand for one PTX statement each, so that counts of PTX lines are counts of theirs.

A load is a load before and after ptxas; so are stores, barriers, shuffles, floating-point operations. ptxas may copy
such a statement (it unrolls loops), merge it with another, or move it out of a loop. Comparisons and integer
arithmetic it also makes up itself: they count only where nothing better does.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_high

from ptxemu.machine.graph import Graph
from ptxemu.machine.instructions import PRODUCTS, MachineInstruction, Opcode
from ptxemu.ptx.tree import Group, Label, Program, Statement

_O = Opcode
_LOADS = {"global": (_O.LDG, _O.LD), "shared": (_O.LDS, _O.LD), "local": (_O.LDL,), "": (_O.LD, _O.LDG, _O.LDS, _O.LDL)}
_STORES = {
    "global": (_O.STG, _O.ST),
    "shared": (_O.STS, _O.ST),
    "local": (_O.STL,),
    "": (_O.ST, _O.STG, _O.STS, _O.STL),
}
_ATOMS = (
    _O.ATOM,
    _O.ATOM_CAS,
    _O.ATOM_FLOATS,
    _O.ATOMG_FLOATS,
    _O.ATOMS,
    _O.ATOMS_CAS,
    _O.ATOMG,
    _O.ATOMG_CAS,
    _O.RED,
    _O.REDG,
)
_FLOATS = {
    "f32": (_O.FFMA, _O.FADD, _O.FMUL),
    "f64": (_O.DFMA, _O.DADD, _O.DMUL),
    "f16": (_O.HFMA2, _O.HFMA2_MMA, _O.HADD2, _O.HMUL2),
}
_FLOATS |= dict.fromkeys(("f16x2", "bf16", "bf16x2"), _FLOATS["f16"])
_SIMPLE = {
    "bar": (_O.BAR,),
    "barrier": (_O.BAR,),
    "shfl": (_O.SHFL,),
    "mma": (_O.HMMA, _O.IMMA, _O.DMMA),
    "ldmatrix": (_O.LDSM,),
    "stmatrix": (_O.STSM,),
    "atom": _ATOMS,
    "red": _ATOMS,
}
_OPERAND_ROWS, _OPERAND_BYTES, WARPGROUP_WARPS = 16, 32, 4
_NEAR = 60
"""Lines by which a product by a warpgroup may be away from its statement."""
_SPECIAL = frozenset(["ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp"])
_LOGIC = frozenset(["and", "or", "xor", "not", "lop3"])
_SHIFTS = frozenset(["shl", "shr", "shf"])
_WORDS = frozenset(["b32", "u32", "s32"])
_ENDS = frozenset(["bra", "brx", "ret", "exit", "call", "trap"])


@dataclass(frozen=True)
class PtxLine:
    """A line of the PTX with one statement; `block` numbers the basic blocks of the text."""

    statement: Statement
    block: int


@dataclass(frozen=True)
class Anchor:
    """A PTX line with instructions that stand for it.

    Attributes:
        line: of the PTX.
        copies: group of blocks -> instructions in it.
        guarded: groups where a predicate may switch one of them off, which is executed all the same.
    """

    line: int
    copies: Mapping[int, int]
    guarded: frozenset[int]

    @property
    def total(self) -> int:
        """Copies in all groups."""
        return sum(self.copies.values())


def ptx_lines(program: Program) -> dict[int, PtxLine]:
    """Lines with one statement, of all functions."""
    found: dict[int, PtxLine] = {}
    crowded: set[int] = set()
    block = 0
    for function in program.functions:
        block += 1
        for item in function.body:
            if isinstance(item, Label):
                block += 1
                continue
            if item.line in found:
                crowded.add(item.line)
            found[item.line] = PtxLine(item, block)
            block += item.parts[0] in _ENDS
    return {line: one for line, one in found.items() if line not in crowded}


def with_lines_of_products(
    code: Sequence[MachineInstruction], lines: Mapping[int, PtxLine]
) -> tuple[MachineInstruction, ...]:
    """The code with its products by warpgroups on the lines of the PTX that they stand for.

    The line table gives them those of statements near by. They are taken to come in the order of the PTX, each
    statement as often as the others, which leaves one that is not so where it is.
    """
    places = sorted((one.line, at) for at, one in enumerate(code) if one.operation in PRODUCTS)
    if not places:
        return tuple(code)
    near = range(places[0][0] - _NEAR, places[-1][0] + _NEAR)
    own = [line for line in sorted(lines) if line in near and lines[line].statement.parts[:2] == ("wgmma", "mma_async")]
    if not own or len(places) % len(own):
        return tuple(code)
    copies, found = len(places) // len(own), list(code)
    for number, (_, at) in enumerate(places):
        found[at] = replace(found[at], line=own[number // copies])
    return tuple(found)


def operand_bytes(code: Sequence[MachineInstruction], lines: Mapping[int, PtxLine]) -> dict[int, int]:
    """By the line of a product by a warpgroup, the bytes of shared memory that are read for one of its four warps.

    Each has 16 rows of the left operand, unless they are in registers; the right one is read once for all four (the
    PTX ISA has the shapes: rows of 32 bytes, whatever the type).
    """
    found = {}
    for line in {one.line for one in code if one.operation in PRODUCTS}:
        parts, operands = (lines[line].statement.parts, lines[line].statement.operands) if line in lines else ((), ())
        shape = next(filter(None, (re.fullmatch(r"m64n(\d+)k\d+", part) for part in parts)), None)
        if shape is not None and len(operands) > 1:
            left = 0 if isinstance(operands[1], Group) else _OPERAND_ROWS * _OPERAND_BYTES
            found[line] = left + int(shape[1]) * _OPERAND_BYTES // WARPGROUP_WARPS
    return found


def anchors(code: Sequence[MachineInstruction], graph: Graph, lines: Mapping[int, PtxLine]) -> list[Anchor]:
    """Anchors of a kernel and its functions; where reliable ones are, the others are left out."""
    copies: dict[int, Counter[int]] = defaultdict(Counter)
    guarded: dict[int, set[int]] = defaultdict(set)
    reliable = set()
    for block in graph.order:
        group = graph.group_of[block]
        for one in code[graph.blocks[block].first : graph.blocks[block].end]:
            known = lines.get(one.line)
            if known is None:
                continue
            sure, possible = _operations(known.statement)
            if one.operation not in (*sure, *possible):
                continue
            copies[one.line][group] += 1
            if one.guarded:
                guarded[one.line].add(group)
            if one.operation in sure and known.statement.guard is None:
                reliable.add(one.line)
    found = [Anchor(line, dict(count), frozenset(guarded[line])) for line, count in copies.items()]
    return _chosen(found, reliable - _gathered(found, lines), lines)


def _gathered(found: Sequence[Anchor], lines: Mapping[int, PtxLine]) -> set[int]:
    """Lines of which the line table gives several instructions that stand for their neighbours, too.

    ptxas packs two half-precision operations into one instruction and names one line for all that it packs. Then there
    are fewer instructions than statements of that kind in the block of the PTX, which no copying makes.
    """
    statements = Counter((one.block, _operations(one.statement)[0]) for one in lines.values())
    instructions: Counter[tuple[int, Sequence[int]]] = Counter()
    kind = {one.line: (lines[one.line].block, _operations(lines[one.line].statement)[0]) for one in found}
    for one in found:
        instructions[kind[one.line]] += one.total
    few = {one for one, count in instructions.items() if one[1] == _FLOATS["f16"] and count < statements[one]}
    return {one.line for one in found if one.total > 1 and kind[one.line] in few}


def _chosen(found: Sequence[Anchor], reliable: set[int], lines: Mapping[int, PtxLine]) -> list[Anchor]:
    """Reliable anchors, and the others where no reliable one is and as many copies are as of their neighbours."""
    by_block: dict[int, list[Anchor]] = defaultdict(list)
    for one in found:
        by_block[lines[one.line].block].append(one)
    covered = {group for one in found if one.line in reliable for group in one.copies}
    chosen = []
    for together in by_block.values():
        usual = _usual_copies([one for one in together if one.line in reliable], together)
        for one in together:
            if one.line in reliable or (one.total == usual and covered.isdisjoint(one.copies)):
                chosen.append(one)
    return chosen


def _usual_copies(reliable: Sequence[Anchor], together: Sequence[Anchor]) -> int:
    """How often ptxas has copied a basic block of the PTX."""
    if reliable:
        return median_high(one.total for one in reliable)
    count = Counter(one.total for one in together)
    return min(total for total, times in count.items() if times == max(count.values()))


def _operations(statement: Statement) -> tuple[Sequence[int], Sequence[int]]:
    """Operations of which one stands for the statement: surely, and possibly."""
    head, parts = statement.parts[0], statement.parts
    kind = parts[-1]
    if head in ("ld", "ldu", "st"):
        return _transfer(head, parts), ()
    if head in _SIMPLE:
        return _SIMPLE[head], ()
    if head == "cp":
        return _copies(parts), ()
    if head == "wgmma":
        return (tuple(PRODUCTS) if "mma_async" in parts else ()), ()
    if head in ("fma", "add", "sub", "mul") and kind in _FLOATS:
        return _FLOATS[kind], ()
    if head in ("div", "rem") and kind in ("u64", "s64"):
        return (_O.CALL,), ()
    if head in _SPECIAL and "approx" in parts and kind == "f32":
        return (_O.MUFU,), ()
    return (), _integers(head, parts)


def _copies(parts: Sequence[str]) -> Sequence[int]:
    """Of asynchronous copies."""
    if "bulk" not in parts:
        return (_O.LDGSTS,) if "shared" in parts and "global" in parts else ()
    if "tensor" in parts and "prefetch" not in parts and "reduce" not in parts:
        return (_O.UTMASTG,) if "bulk_group" in parts else (_O.UTMALDG,)
    return (_O.UBLKCP,) if "mbarrier::complete_tx::bytes" in parts else ()


def _transfer(head: str, parts: Sequence[str]) -> Sequence[int]:
    spaces = {part.partition("::")[0] for part in parts}
    if spaces & {"param", "const"}:
        return ()
    space = next((one for one in ("global", "shared", "local") if one in spaces), "")
    return _STORES[space] if head == "st" else _LOADS[space]


def _integers(head: str, parts: Sequence[str]) -> Sequence[int]:
    kind = parts[-1]
    if head == "setp":
        return (_O.FSETP,) if kind == "f32" else (_O.ISETP,) if kind in _WORDS else ()
    if kind not in _WORDS:
        return ()
    if head == "mad" and "lo" in parts:
        return (_O.IMAD,)
    if head in _LOGIC:
        return (_O.LOP3,)
    return (_O.SHF, _O.IMAD) if head in _SHIFTS else ()
