"""The front door: PTX text in, executable module out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from ptxemu.ptx.context import ModuleContext
from ptxemu.ptx.errors import NotEmulatable
from ptxemu.ptx.limits import check_statements
from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.module import Module, Variable, VariableKind
from ptxemu.ptx.selection.select import lower_statement
from ptxemu.ptx.syntax import parse
from ptxemu.ptx.tree import Declared, integer

__all__ = ["Module", "NotEmulatable", "assemble"]


def assemble(ptx_text: str, system_dirs: Sequence[Path] = ()) -> Module:
    """Assemble every kernel of the text.

    Args:
        ptx_text: PTX as nvcc writes it.
        system_dirs: what was inlined from headers there counts for the line that called it.

    Raises NotEmulatable.
    """
    program = parse(ptx_text)
    context = ModuleContext(program, system_dirs)
    placed = [one for one in program.variables if one.space in (".global", ".const")]
    context.globals = {one.name: position for position, one in enumerate(placed)}
    for one in placed:
        try:
            context.module.variables.append(_variable(one, context.globals, context.calls.addresses))
        except ValueError as error:
            raise NotEmulatable(one.name, one.line, "an initial value that is no number") from error
    kernels = [one for one in program.functions if one.is_kernel and one.defined]
    check_statements((one, context.calls.order(one)) for one in kernels)
    for function in kernels:
        context.module.kernels.append(FunctionLowering(context, function, lower_statement).lower())
    return context.module


def _variable(declared: Declared, positions: dict[str, int], functions: dict[str, int]) -> Variable:
    """A variable with its initial bytes; elements that are addresses of variables become relocations."""
    content, relocations = bytearray(), []
    for element in declared.initial:
        symbol, _, addend = element.partition("+")
        if symbol in positions:
            relocations.append((len(content), positions[symbol], integer(addend) if addend else 0))
            content += bytes(8)
        elif symbol in functions:
            content += struct.pack("<Q", functions[symbol])
        else:
            content += _element(element, declared)
    kind = VariableKind.GLOBAL
    if declared.space == ".const":
        kind = VariableKind.CONSTANT
    elif declared.managed:
        kind = VariableKind.MANAGED
    return Variable(declared.name, kind, declared.align, declared.size, bytes(content), relocations)


def _element(token: str, declared: Declared) -> bytes:
    size = declared.element_bytes
    text = token.lstrip("-")
    if text[:2] in ("0f", "0F") and len(text) == 10:
        return struct.pack("<I", int(text[2:], 16))
    if text[:2] in ("0d", "0D") and len(text) == 18:
        return struct.pack("<Q", int(text[2:], 16))
    if not text[:1].isdigit():
        raise NotEmulatable(declared.name, declared.line, f"initial value {token}")
    value = -integer(text) if token.startswith("-") else integer(text)
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
