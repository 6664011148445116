"""`mma.sync`, `wmma`, and the matrix loads and stores of their operands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.selection.memory import SPACES, locate
from ptxemu.ptx.tree import Group, Operand, Statement

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "f64": 64, "f32": 32, "s32": 32}
_HALVES, _EIGHTHS, _BYTES = ("f16", "bf16"), ("e4m3", "e5m2"), ("s8", "u8")
_MMA_SHAPES = {
    **dict.fromkeys(_HALVES, ("m16n8k8", "m16n8k16")),
    "tf32": ("m16n8k4", "m16n8k8"),
    **dict.fromkeys(_EIGHTHS, ("m16n8k16", "m16n8k32")),
    **dict.fromkeys(_BYTES, ("m8n8k16", "m16n8k16", "m16n8k32")),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
}
_WMMA_SHAPES = {
    **dict.fromkeys((*_HALVES, *_BYTES), ("m16n16k16", "m32n8k16", "m8n32k16")),
    "tf32": ("m16n16k8",),
    "f64": ("m8n8k4",),
}
_RESULTS = {
    "f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"),
    "s8": ("s32",), "u8": ("s32",), "f64": ("f64",),
}  # fmt: skip
_MODIFIERS = ("satfinite", "rn")
_SATURATE, _HALF_ADDEND, _HALF_RESULT = 1, 2, 4
_PARTS = {"a": 0, "b": 1, "c": 2, "d": 2}
_BY_COLUMNS = 4


@dataclass(frozen=True)
class _Shape:
    m: int
    n: int
    k: int

    @classmethod
    def of(cls, name: str) -> _Shape:
        found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", name)
        if found is None:
            raise ValueError(name)
        return cls(*map(int, found.groups()))

    @property
    def packed(self) -> int:
        return self.m | self.n << 8 | self.k << 16

    def work(self, kind: str) -> int:
        """Multiply-adds, in those of fp16: tf32 takes twice the time, 8 bits half, fp64 sixteen times."""
        weight = 16 if kind == "f64" else _BITS[kind] / 16
        return int(self.m * self.n * self.k * weight)

    def registers(self, part: str, kind: str) -> int:
        """Registers of a fragment with every element once."""
        elements = {"a": self.m * self.k, "b": self.k * self.n}.get(part, self.m * self.n)
        return max(1, elements * min(_BITS[kind], 32) // 1024)


def multiply(low: FunctionLowering, statement: Statement) -> None:
    """`mma.sync.aligned.SHAPE.row.col{.satfinite}.D.A.B.C`"""
    if statement.parts[1] == "sp":
        raise low.unsupported("sparse matrices are not emulated")
    parts = [part for part in statement.parts if part not in _MODIFIERS]
    if len(parts) != 10 or parts[4:6] != ["row", "col"]:
        raise low.unsupported()
    result, a, b, addend = parts[6:]
    if parts[3] not in _MMA_SHAPES.get(a, ()):
        raise low.unsupported()
    _emit_multiply(low, statement, _Shape.of(parts[3]), (result, a, b, addend))


def _wmma_multiply(low: FunctionLowering, statement: Statement) -> None:
    """`wmma.mma.sync.aligned.LAYOUT.LAYOUT.SHAPE{.D.A.B.C | .D.C}{.satfinite}`"""
    parts = [part for part in statement.parts if part not in _MODIFIERS]
    shape, kinds = parts[6], parts[7:]
    if len(kinds) == 2:
        kinds = [kinds[0], "f16", "f16", kinds[1]]
    if len(kinds) != 4 or shape not in _WMMA_SHAPES.get(kinds[1], ()) or kinds[1] != kinds[2]:
        raise low.unsupported()
    _emit_multiply(low, statement, _Shape.of(shape), (kinds[0], kinds[1], kinds[2], kinds[3]))


def _emit_multiply(
    low: FunctionLowering, statement: Statement, shape: _Shape, kinds: tuple[str, str, str, str]
) -> None:
    result, a, b, addend = kinds
    same_family = any(a in family and b in family for family in (_EIGHTHS, _BYTES)) or a == b
    if not same_family or result not in _RESULTS[a] or addend not in _RESULTS[a]:
        raise low.unsupported()
    width = 64 if a == "f64" else 32
    registers: list[int] = []
    operands = zip("dabc", (result, a, b, addend), statement.operands, strict=True)
    for part, kind, operand in operands:
        items = _items(low, operand)
        distinct = shape.registers(part, kind)
        if len(items) < distinct or (len(items) != distinct and statement.parts[0] == "mma"):
            raise low.unsupported(f"a fragment of {len(items)} registers where {distinct} are expected")
        read = low.destination if part == "d" else low.read
        registers += [read(one, width) for one in items[:distinct]]
    flags = _SATURATE * ("satfinite" in statement.parts)
    flags |= _HALF_ADDEND * (addend == "f16") | _HALF_RESULT * (result == "f16")
    low.emit(
        f"mma_{a}_{b}",
        [shape.packed, flags, 0, _list(low, registers), low.constant(0xFFFFFFFF, 32)],
        "tensor",
        immediate=shape.work(a),
    )


def _wmma_transfer(low: FunctionLowering, statement: Statement) -> None:
    """`wmma.{load,store}.PART.sync.aligned.LAYOUT.SHAPE{.SPACE}.TYPE`"""
    verb, part, _, _, layout, shape_name, *space, kind = statement.parts[1:]
    written = space[0].partition("::")[0] if space else "generic"
    family = "f16" if kind in ("f32", "s32") else kind
    shapes = _WMMA_SHAPES.get(family, ()) + (("m16n16k8",) if kind == "f32" else ())
    if shape_name not in shapes or written not in SPACES or layout not in ("row", "col"):
        raise low.unsupported()
    shape = _Shape.of(shape_name)
    fragment, address = statement.operands[:2] if verb == "load" else statement.operands[1::-1]
    width = 64 if kind == "f64" else 32
    read = low.destination if verb == "load" else low.read
    items = _items(low, fragment)
    if len(items) < shape.registers(part, kind):
        raise low.unsupported(f"a fragment of {len(items)} registers")
    start = _list(low, [read(one, width) for one in items])
    closest = {"a": shape.k, "b": shape.n}.get(part, shape.n) if layout == "row" else 0
    stride = statement.operands[2] if len(statement.operands) > 2 else str(closest or _column_height(shape, part))
    space_name, base, wide, offset = locate(low, address, written)
    operands = [
        shape.packed | _BITS[kind] << 24,
        _PARTS[part] | (_BY_COLUMNS if layout == "col" else 0) | len(items) << 8,
        low.read(stride, 32),
        start,
        low.constant(0xFFFFFFFF, 32),
        base,
    ]
    low.emit(
        f"wmma_{verb}_{width}",
        operands,
        f"{'ld' if verb == 'load' else 'st'}_{'global' if space_name == 'generic' else space_name}",
        flags=wide,
        immediate=offset,
        memory=low.memory(space_name, verb, max(4, _BITS[kind] // 8)),
        extra=SPACES[space_name],
    )


def _column_height(shape: _Shape, part: str) -> int:
    return shape.k if part == "b" else shape.m


def wmma(low: FunctionLowering, statement: Statement) -> None:
    """`wmma`: load, store and multiply."""
    if statement.parts[1] == "mma":
        _wmma_multiply(low, statement)
    elif statement.parts[1] in ("load", "store"):
        _wmma_transfer(low, statement)
    else:
        raise low.unsupported()


def move_matrix(low: FunctionLowering, statement: Statement) -> None:
    """`ldmatrix` and `stmatrix`: `.sync.aligned.m8n8.x{1,2,4}{.trans}.shared.b16`"""
    parts = statement.parts
    if parts[3] != "m8n8" or parts[4] not in ("x1", "x2", "x4") or parts[-1] != "b16":
        raise low.unsupported()
    loads = parts[0] == "ldmatrix"
    fragment, address = statement.operands if loads else statement.operands[::-1]
    items = _items(low, fragment)
    if len(items) != int(parts[4][1]):
        raise low.unsupported(f"{len(items)} registers where {parts[4][1]} are expected")
    start = _list(low, [(low.destination if loads else low.read)(one, 32) for one in items])
    _, base, wide, offset = locate(low, address, "shared")
    low.emit(
        f"{parts[0]}_{'trans_' if 'trans' in parts else ''}{parts[4]}",
        [0, 0, 0, start, low.constant(0xFFFFFFFF, 32), base],
        "ld_shared" if loads else "st_shared",
        flags=wide,
        immediate=offset,
        memory=low.memory("shared", "load" if loads else "store", 16),
    )


def transpose(low: FunctionLowering, statement: Statement) -> None:
    """`movmatrix.sync.aligned.m8n8.trans.b16`"""
    if statement.parts[3:] != ("m8n8", "trans", "b16"):
        raise low.unsupported()
    destination, source = statement.operands
    read = low.read(source, 32)
    operands = [low.destination(destination, 32), read, 0, 0, low.constant(0xFFFFFFFF, 32)]
    low.emit("movmatrix_trans", operands, "shfl")


def _items(low: FunctionLowering, operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Group) else (operand,)


def _list(low: FunctionLowering, registers: list[int]) -> int:
    start = len(low.kernel.registers)
    low.kernel.registers += registers
    return start


TENSOR = {
    "mma": multiply,
    "wmma": wmma,
    "ldmatrix": move_matrix,
    "stmatrix": move_matrix,
    "movmatrix": transpose,
}
