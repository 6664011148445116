"""`mma.sync` on fp16 and bf16 with float accumulators, and `ldmatrix`."""

from __future__ import annotations

from kernelblaster.devices.emulated.ptx.lowering import FunctionLowering
from kernelblaster.devices.emulated.ptx.select_memory import locate
from kernelblaster.devices.emulated.ptx.tree import Group, Operand, Statement


def multiply(low: FunctionLowering, statement: Statement) -> None:
    """`mma.sync.aligned.m16n8k{8,16}.row.col.f32.T.T.f32`"""
    parts = statement.parts
    shape, layout, kinds = parts[3], parts[4:6], parts[6:]
    if shape not in ("m16n8k8", "m16n8k16") or layout != ("row", "col") or len(kinds) != 4:
        raise low.unsupported()
    if kinds[0] != "f32" or kinds[3] != "f32" or kinds[1] != kinds[2] or kinds[1] not in ("f16", "bf16"):
        raise low.unsupported()
    registers = [low.read(one, 32) for group in statement.operands for one in _items(low, group)]
    start = _list(low, registers)
    low.emit(f"mma_{shape}_{kinds[1]}", [0, 0, 0, start, low.constant(0xFFFFFFFF, 32)], "tensor")


def load_matrix(low: FunctionLowering, statement: Statement) -> None:
    """`ldmatrix.sync.aligned.m8n8.x{1,2,4}{.trans}.shared.b16`"""
    parts = statement.parts
    if parts[3] != "m8n8" or parts[-1] != "b16":
        raise low.unsupported()
    target, address = statement.operands
    start = _list(low, [low.destination(one, 32) for one in _items(low, target)])
    _, base, wide, offset = locate(low, address, "shared")
    name = f"ldmatrix_{'trans_' if 'trans' in parts else ''}{parts[4]}"
    operands = [0, 0, 0, start, low.constant(0xFFFFFFFF, 32), base]
    memory = low.memory("shared", "load", 16)
    low.emit(name, operands, "ld_shared", flags=wide, immediate=offset, memory=memory)


def _items(low: FunctionLowering, operand: Operand) -> tuple[Operand, ...]:
    if not isinstance(operand, Group):
        raise low.unsupported("a fragment is expected")
    return operand.items


def _list(low: FunctionLowering, registers: list[int]) -> int:
    start = len(low.kernel.registers)
    low.kernel.registers += registers
    return start


TENSOR = {"mma": multiply, "ldmatrix": load_matrix}
