"""Which operation an arithmetic or data-movement instruction becomes; the modules beside this one have the others.

Most PTX names are the core's names with dots for underscores. Where types of one width do not differ in result the
core has one operation (`add_b32`), so a short list of spellings is tried; a name that none matches is not emulatable.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxemu.ptx.lowering import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, FunctionLowering
from ptxemu.ptx.operations import PREDICATE, signatures, width_of
from ptxemu.ptx.selection.barrier import BARRIER, arrive_after_copies
from ptxemu.ptx.selection.bulk import bulk_copy
from ptxemu.ptx.selection.control import CONTROL
from ptxemu.ptx.selection.convert import convert
from ptxemu.ptx.selection.memory import MEMORY, copy_async
from ptxemu.ptx.selection.tensor import TENSOR
from ptxemu.ptx.selection.texture import TEXTURE
from ptxemu.ptx.selection.wgmma import WGMMA
from ptxemu.ptx.tree import TYPE_BYTES, Group, Statement, literal

_TRANSCENDENTAL = frozenset(["ex2", "lg2", "sin", "cos", "rsqrt", "tanh"])
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW, "global": 0, "const": 0}
_UNSIGNED_COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}

_LEFT_OUT = {
    **dict.fromkeys(("txq", "suq"), "questions about textures and surfaces are not emulated"),
    "sured": "reductions on surfaces are not emulated",
    "tensormap": "tensor maps that kernels change are not emulated",
    "multimem": "memory of several GPUs is not emulated",
    "tcgen05": "tensor memory (tcgen05) is not emulated",
}
"""Why whole families of instructions are missing, where the name alone would not say."""


def lower_statement(low: FunctionLowering, statement: Statement) -> None:
    """Append the operations of one instruction. Raises NotEmulatable."""
    handler = _HANDLERS.get(statement.parts[0], arithmetic)
    handler(low, statement)


def instruction_class(parts: tuple[str, ...]) -> str:
    """The class under which the report counts an arithmetic instruction."""
    base, kind = parts[0], parts[-1]
    if kind == "f64":
        return "fp64"
    if "f16" in kind and base not in _TRANSCENDENTAL:
        return "fp16"
    if base in _TRANSCENDENTAL:
        return "xu"
    if base in ("div", "sqrt", "rcp"):
        if kind != "f32":
            return "idiv"
        return "xu" if "approx" in parts or "full" in parts else "fdiv"
    if base == "rem":
        return "idiv"
    if kind == "f32" and base in ("fma", "mad"):
        return "ffma"
    if kind == "f32" and base in ("add", "sub", "mul"):
        return "fp32"
    if base in ("mul", "mad", "mul24", "dp4a", "dp2a", "madc"):
        return "imad"
    return "int" if base in ("add", "sub", "addc", "subc") else "alu"


def spellings(parts: tuple[str, ...]) -> Iterator[str]:
    """Names under which the core may know an instruction, the exact one first."""
    kept = [part.lower() for part in parts]
    if kept[0] in ("add", "sub", "mul") and "rn" in kept:
        kept.remove("rn")
    if kept[-1] == "relu":  # written behind the type
        kept.insert(1, kept.pop())
    yield "_".join(kept)
    if kept[-1] == "f32" and "ftz" in kept:
        yield "_".join((*(part for part in kept[:-1] if part != "ftz"), "ftz", "f32"))  # `.ftz.sat` in PTX
    kind = kept[-1]
    if kind in ("u16x2", "s16x2"):
        yield "_".join((*kept[:-1], "b16x2"))
    if "." + kind in TYPE_BYTES and kind not in ("f16x2", "bf16x2", "pred", "bf16"):
        stem, width = "_".join(kept[:-1]), kind[1:]
        if kind[0] != "f" or kept[0] in ("selp", "mov"):
            yield f"{stem}_b{width}"
        if kind[0] == "b":
            yield f"{stem}_u{width}"


def known_name(low: FunctionLowering, parts: tuple[str, ...]) -> str:
    """The core's name of an instruction. Raises NotEmulatable."""
    for name in spellings(parts):
        if name in signatures():
            return name
    raise low.unsupported(_LEFT_OUT[parts[0]]) if parts[0] in _LEFT_OUT else low.unsupported()


def arithmetic(low: FunctionLowering, statement: Statement) -> None:
    """An operation of its own: one result, sources in order."""
    parts = statement.parts
    if parts[0] == "mad" and parts[-1] in ("f32", "f64"):
        parts = ("fma", *parts[1:])
    name = known_name(low, parts)
    destination, *sources = statement.operands
    fused = low.contraction
    if fused is None:
        low.emit_lane(name, destination, sources, instruction_class(parts))
        return
    # Counted as what is written: `model/expansion.py` has how many machine instructions a pair of them makes.
    whole = known_name(low, (*fused.stem.split("_"), *parts[1:]))
    low.emit_lane(whole, destination, [fused.a, fused.b, fused.c], instruction_class(parts)).counted = name


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


def compare(low: FunctionLowering, statement: Statement) -> None:
    """`setp` with an optional second destination and an optional combination with a predicate."""
    _, comparison, *modifiers, kind = statement.parts
    comparison = _UNSIGNED_COMPARISONS.get(comparison, comparison)
    combine = next((one for one in modifiers if one in ("and", "or", "xor")), None)
    rest = tuple(one for one in modifiers if one != combine)
    destination, left, right, *extra = statement.operands
    if kind in ("f16x2", "bf16x2"):
        _compare_pair(low, statement, comparison, kind)
        return
    name = known_name(low, ("setp", comparison, *rest, kind))
    if combine is None and not isinstance(destination, Group):
        low.emit_lane(name, destination, [left, right], "alu")
        return
    result, negation = low.temporary(PREDICATE), low.temporary(PREDICATE)
    low.emit_lane(name, result, [left, right], "alu")
    low.emit_lane("not_pred", negation, [result], "mov")
    targets = destination.items if isinstance(destination, Group) else (destination,)
    # The combining predicate may be a destination: both results are computed before either is written.
    values = []
    for value in (result, negation)[: len(targets)]:
        if combine is not None:
            low.emit_lane(f"{combine}_pred", value, [value, extra[0]], "mov")
        values.append(value)
    for target, value in zip(targets, values, strict=True):
        low.emit_lane("mov_pred", target, [value], "mov")


def _compare_pair(low: FunctionLowering, statement: Statement, comparison: str, kind: str) -> None:
    destination, left, right = statement.operands
    if not isinstance(destination, Group):
        raise low.unsupported("comparison of two halves with one destination")
    for target, which in zip(destination.items, ("lo", "hi"), strict=True):
        parts = [low.temporary(16), low.temporary(16)]
        for part, source in zip(parts, (left, right), strict=True):
            low.emit_lane(f"unpack_{which}_b32", part, [source], "mov")
        low.emit_lane(f"setp_{comparison}_{kind[:-2]}", target, list(parts), "alu")


def set_value(low: FunctionLowering, statement: Statement) -> None:
    """`set`: a comparison, perhaps combined with a predicate, whose result is a number or a mask."""
    _, comparison, *modifiers, result, kind = statement.parts
    destination, left, right, *extra = statement.operands
    comparison = _UNSIGNED_COMPARISONS.get(comparison, comparison)
    combine = next((one for one in modifiers if one in ("and", "or", "xor")), None)
    rest = tuple(one for one in modifiers if one != combine)
    packed = {"u32": "setmask", "s32": "setmask", kind: "set"}.get(result) if kind in ("f16x2", "bf16x2") else None
    direct = f"{packed or 'set'}_{comparison}_{kind}"
    if (packed or result == kind) and not extra and direct in signatures():
        low.emit_lane(direct, destination, [left, right], "fp16")
        return
    if result not in ("u32", "s32", "f32") or packed:
        raise low.unsupported()
    flag = low.temporary(PREDICATE)
    low.emit_lane(known_name(low, ("setp", comparison, *rest, kind)), flag, [left, right], "alu")
    if combine is not None:
        low.emit_lane(f"{combine}_pred", flag, [flag, extra[0]], "mov")
    low.emit_lane(f"set_from_pred_{'f32' if result == 'f32' else 'u32'}", destination, [flag], "mov")


def select_value(low: FunctionLowering, statement: Statement) -> None:
    """`selp` and `slct` do not look at the type of what they choose from."""
    parts = statement.parts
    if parts[0] == "slct":
        parts = ("slct", f"b{width_of(parts[-2])}", parts[-1])
    low.emit_lane(known_name(low, parts), statement.operands[0], statement.operands[1:], "alu")


def ternary_logic(low: FunctionLowering, statement: Statement) -> None:
    """`lop3.b32` with its truth table as an immediate."""
    if len(statement.parts) != 2:
        raise low.unsupported()
    destination, *sources, table = statement.operands
    value = literal(table) if isinstance(table, str) else None
    if value is None:
        raise low.unsupported("a truth table that is not a literal")
    low.emit_lane("lop3_b32", destination, sources, "alu", immediate=value)


def permute(low: FunctionLowering, statement: Statement) -> None:
    """`prmt.b32{.mode}`"""
    mode = statement.parts[2:]
    name = "_".join(("prmt", *mode, "b32"))
    low.emit_lane(name, statement.operands[0], statement.operands[1:], "alu")


def byte_differences(low: FunctionLowering, statement: Statement) -> None:
    """`vabsdiff4.u32.T.T{.add}`"""
    _, result, left, right, *rest = statement.parts
    if result not in ("u32", "s32") or left != right or rest not in ([], ["add"]) or len(statement.operands) != 4:
        raise low.unsupported()
    low.emit_lane("_".join(("vabsdiff4", left, *rest)), statement.operands[0], statement.operands[1:], "alu")


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
    "setp": compare,
    "set": set_value,
    "selp": select_value,
    "slct": select_value,
    "lop3": ternary_logic,
    "prmt": permute,
    "add": add_or_multiply,
    "sub": add_or_multiply,
    "mad": add_or_multiply,
    "vabsdiff4": byte_differences,
    "addc": carry_chain,
    "subc": carry_chain,
    "madc": carry_chain,
    "cvta": change_address,
    "isspacep": test_window,
    "mapa": map_to_rank,
    "getctarank": rank_of_address,
    **CONTROL,
    **BARRIER,
    **MEMORY,
    **TENSOR,
    **WGMMA,
    **TEXTURE,
}
