"""Which operation an arithmetic or data-movement instruction becomes; the modules beside this one have the others.

Most PTX names are the core's names with dots for underscores. Where types of one width do not differ in result the
core has one operation (`add_b32`), so a short list of spellings is tried; a name that none matches is not emulatable.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.ptx.lowering import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, FunctionLowering
from ptxemu.ptx.operations import PREDICATE, width_of
from ptxemu.ptx.selection.asynchronous import is_asynchronous, store_or_reduce
from ptxemu.ptx.selection.barrier import BARRIER, arrive_after_copies
from ptxemu.ptx.selection.bulk import bulk_copy
from ptxemu.ptx.selection.comparisons import COMPARISONS
from ptxemu.ptx.selection.control import CONTROL
from ptxemu.ptx.selection.convert import convert
from ptxemu.ptx.selection.memory import MEMORY, copy_async
from ptxemu.ptx.selection.names import instruction_class, known_name
from ptxemu.ptx.selection.tensor import TENSOR
from ptxemu.ptx.selection.texture import TEXTURE
from ptxemu.ptx.selection.video import VIDEO
from ptxemu.ptx.selection.wgmma import WGMMA
from ptxemu.ptx.selection.wide import WIDE, is_wide
from ptxemu.ptx.tree import Group, Operand, Statement

_DIRECTED, _FINISHED = frozenset(("rz", "rm", "rp")), frozenset(("ftz", "sat"))
_ONE = "0f3F800000"
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW, "global": 0, "const": 0}


def lower_statement(low: FunctionLowering, statement: Statement) -> None:
    """Append the operations of one instruction. Raises NotEmulatable."""
    name = statement.parts[0]
    if is_wide(statement) and name in WIDE:
        WIDE[name](low, statement)
    elif is_asynchronous(statement) and name in ("st", "red"):
        store_or_reduce(low, statement)
    else:
        _HANDLERS.get(name, arithmetic)(low, statement)


def arithmetic(low: FunctionLowering, statement: Statement) -> None:
    """An operation of its own: one result, sources in order."""
    parts = statement.parts
    if parts[0] == "mad" and parts[-1] in ("f32", "f64"):
        parts = ("fma", *parts[1:])
    if parts[-1] == "f32" and _DIRECTED & set(parts) and _FINISHED & set(parts):
        _directed(low, parts, statement.operands[0], statement.operands[1:])
        return
    name = known_name(low, parts)
    destination, *sources = statement.operands
    fused = low.contraction
    if fused is None:
        low.emit_lane(name, destination, sources, instruction_class(parts))
        return
    # Counted as what is written: `model/expansion.py` has how many machine instructions a pair of them makes.
    whole = known_name(low, (*fused.stem.split("_"), *parts[1:]))
    low.emit_lane(whole, destination, [fused.a, fused.b, fused.c], instruction_class(parts)).counted = name


def _directed(low: FunctionLowering, parts: tuple[str, ...], destination: Operand, sources: Sequence[Operand]) -> None:
    """Rounded up, down or towards zero, with flushed or saturated results: step by step."""
    kind, flush = instruction_class(parts), "ftz" in parts
    plain = known_name(low, tuple(part for part in parts if part not in _FINISHED))
    read: list[Operand] = []
    for source in sources:
        # x * 1 is x, and flushes.
        read.append(low.temporary(32) if flush else source)
        if flush:
            low.emit_lane("mul_ftz_f32", read[-1], [source, _ONE], "mov")
    result = low.temporary(32)
    low.emit_lane(plain, result, read, kind)
    if flush:
        low.emit_lane("mul_ftz_f32", result, [result, _ONE], "mov")
    low.emit_lane("saturate_f32" if "sat" in parts else "mov_b32", destination, [result], "mov")


def move(low: FunctionLowering, statement: Statement) -> None:
    """`mov`: between registers, from special registers, packing and unpacking."""
    destination, source = statement.operands
    kind = statement.parts[-1]
    width = width_of(kind)
    if isinstance(source, Group):
        _pack(low, destination, source, width)
    elif isinstance(destination, Group):
        _unpack(low, destination, source, width)
    elif source in ("%clock", "%clock64", "%globaltimer", "%clock_hi", "%globaltimer_lo"):
        low.emit(f"clock_b{width}", [low.destination(destination, width)], "mov")
    elif source == "%is_explicit_cluster":
        low.emit_lane("setp_ne_u32", destination, [source, "0"], "mov")
    else:
        name = "mov_pred" if width == PREDICATE else f"mov_b{width}"
        low.emit_lane(name, destination, [source], "mov")


def _pack(low: FunctionLowering, destination: object, source: Group, width: int) -> None:
    items = list(source.items)
    if len(items) == 4:
        halves = [low.temporary(width // 2), low.temporary(width // 2)]
        for half, pair in zip(halves, (items[:2], items[2:]), strict=True):
            low.emit_lane(f"pack_b{width // 2}", half, pair, "alu")
        items = list(halves)
    if len(items) != 2 or width not in (16, 32, 64):
        raise low.unsupported("packing of this shape")
    low.emit_lane(f"pack_b{width}", destination, items, "mov")  # type: ignore[arg-type]


def _unpack(low: FunctionLowering, destination: Group, source: object, width: int) -> None:
    items = list(destination.items)
    if len(items) == 4:
        halves = [low.temporary(width // 2), low.temporary(width // 2)]
        _unpack(low, Group(tuple(halves)), source, width)
        _unpack(low, Group(tuple(items[:2])), halves[0], width // 2)
        _unpack(low, Group(tuple(items[2:])), halves[1], width // 2)
        return
    if len(items) != 2 or width not in (16, 32, 64):
        raise low.unsupported("unpacking of this shape")
    if width == 16:  # bytes live in 16-bit registers: the source may be a destination
        kept = low.temporary(16)
        low.emit_lane("mov_b16", kept, [source], "mov")  # type: ignore[list-item]
        source = kept
    for item, which in zip(items, ("lo", "hi"), strict=True):
        if item != "_":
            low.emit_lane(f"unpack_{which}_b{width}", item, [source], "mov")  # type: ignore[list-item]


def permute(low: FunctionLowering, statement: Statement) -> None:
    """`prmt.b32{.mode}`"""
    mode = statement.parts[2:]
    name = "_".join(("prmt", *mode, "b32"))
    low.emit_lane(name, statement.operands[0], statement.operands[1:], "alu")


def carry_chain(low: FunctionLowering, statement: Statement) -> None:
    """`add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`: the carry is a hidden register.

    PTX has one flag for both directions, and leaves open what a subtraction writes for an addition to read. GPUs add
    the complement, so that the flag after a subtraction is set where nothing was borrowed.
    """
    base, kind = statement.parts[0], statement.parts[-1]
    width = width_of(kind)
    destination, left, right = statement.operands[0], statement.operands[1], statement.operands[2]
    if base in ("mad", "madc"):
        product = low.temporary(width)
        half = statement.parts[1]
        low.emit_lane(known_name(low, ("mul", half, kind)), product, [left, right], "imad")
        left, right = product, statement.operands[3]
    subtracts = base.startswith("sub")
    takes_carry = base.endswith("c") and base != "sub"
    sources = [left, right, _carry_register(low)] if takes_carry else [left, right]
    stem = ("sub" if subtracts else "add") + ("c" if takes_carry else "")
    carry = low.temporary(32)
    if "cc" in statement.parts:
        low.emit_lane(f"carry_{stem}_b{width}", carry, sources, "mov")
    low.emit_lane(f"{stem}_b{width}", destination, sources, "int")
    if "cc" in statement.parts:
        low.emit_lane("mov_b32", _carry_register(low), [carry], "mov")


def _carry_register(low: FunctionLowering) -> str:
    low.declare_register("%kb_carry", 32)
    return "%kb_carry"


def add_or_multiply(low: FunctionLowering, statement: Statement) -> None:
    """Plain arithmetic unless a carry is produced."""
    (carry_chain if "cc" in statement.parts else arithmetic)(low, statement)


def change_address(low: FunctionLowering, statement: Statement) -> None:
    """`cvta`: between a window's own addresses and generic ones."""
    if statement.parts[-1] != "u64":
        raise low.unsupported("32-bit generic addresses")
    to_window = statement.parts[1] == "to"
    space = statement.parts[2 if to_window else 1].partition("::")[0]
    destination, source = statement.operands
    if _WINDOWS[space] == 0:
        low.emit_lane("mov_b64", destination, [source], "mov")
        return
    operands = [low.read(source, 64), low.constant(_WINDOWS[space], 64)]
    low.emit("sub_b64" if to_window else "add_b64", [low.destination(destination, 64), *operands], "mov")


def test_window(low: FunctionLowering, statement: Statement) -> None:
    """`isspacep`"""
    space, _, part = statement.parts[1].partition("::")
    if space not in _WINDOWS or space == "const":
        raise low.unsupported()
    operands = [low.destination(statement.operands[0], PREDICATE), low.read(statement.operands[1], 64)]
    low.emit(f"isspacep_{space}_cluster" if part == "cluster" else f"isspacep_{space}", operands, "alu")


def map_to_rank(low: FunctionLowering, statement: Statement) -> None:
    """`mapa`: where a block of the cluster has what this block has at an address."""
    width = width_of(statement.parts[-1])
    destination, address, rank = statement.operands
    operands = [low.destination(destination, width), low.read(address, width), low.read(rank, 32)]
    low.emit(f"mapa_b{width}", operands, "alu")


def rank_of_address(low: FunctionLowering, statement: Statement) -> None:
    """`getctarank`"""
    width = width_of(statement.parts[-1])
    destination, address = statement.operands
    low.emit(f"getctarank_b{width}", [low.destination(destination, 32), low.read(address, width)], "alu")


def copy(low: FunctionLowering, statement: Statement) -> None:
    """`cp`: the asynchronous copies, and reductions by them."""
    if "bulk" in statement.parts:
        bulk_copy(low, statement)
    elif statement.parts[1:2] != ("async",) or len(statement.parts) < 3:
        raise low.unsupported("copies of this form")
    elif statement.parts[2] == "mbarrier":
        arrive_after_copies(low, statement)
    else:
        copy_async(low, statement)


_HANDLERS = {
    "cp": copy,
    "mov": move,
    "cvt": convert,
    "prmt": permute,
    "add": add_or_multiply,
    "sub": add_or_multiply,
    "mad": add_or_multiply,
    "addc": carry_chain,
    "subc": carry_chain,
    "madc": carry_chain,
    "cvta": change_address,
    "isspacep": test_window,
    "mapa": map_to_rank,
    "getctarank": rank_of_address,
    **COMPARISONS,
    **CONTROL,
    **BARRIER,
    **MEMORY,
    **TENSOR,
    **WGMMA,
    **TEXTURE,
    **VIDEO,
}
