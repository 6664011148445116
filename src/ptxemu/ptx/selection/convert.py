"""`cvt`: from any number format to any other, with the widths that PTX lets registers have."""

from __future__ import annotations

from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.operations import signatures, width_of
from ptxemu.ptx.tree import Operand, Statement

_FLOATS = frozenset(["f16", "bf16", "f32", "f64"])
_PACKED = frozenset(["f16x2", "bf16x2", "tf32", "e4m3x2", "e5m2x2"])
_TO_INTEGRAL = ("rni", "rzi", "rmi", "rpi")
_ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")


def convert(low: FunctionLowering, statement: Statement) -> None:
    """Choose by kind of source and destination. Raises NotEmulatable."""
    *modifiers, to, source = statement.parts[1:]
    modifiers = [one for one in modifiers if not (one == "ftz" and to != source)]
    if "bf16" in (to, source) and {"s8", "u8"} & {to, source}:
        raise low.unsupported("PTX has no conversion between bf16 and eight bits")
    if statement.parts[1] == "pack":
        low.emit_lane("_".join(statement.parts), statement.operands[0], statement.operands[1:], "cvt")
    elif to in _PACKED:
        name = "_".join(("cvt", *modifiers, to, source))
        low.emit_lane(name, statement.operands[0], statement.operands[1:], "cvt")
    elif to in _FLOATS and source in _FLOATS:
        _float_to_float(low, statement, modifiers, to, source)
    elif to in _FLOATS:
        _integer_to_float(low, statement, modifiers, to, source)
    elif source in _FLOATS:
        _float_to_integer(low, statement, modifiers, to, source)
    else:
        _integer_to_integer(low, statement, modifiers, to, source)


def _float_to_float(low: FunctionLowering, statement: Statement, modifiers: list[str], to: str, source: str) -> None:
    if to == source and modifiers == ["rn"]:
        modifiers = ["rni"]
    name = "_".join(("cvt", *modifiers, to, source))
    if name not in signatures() and modifiers and modifiers[0] in _ROUNDINGS:
        name = "_".join(("cvt", *modifiers[1:], to, source))
    if name in ("cvt_f16_f16", "cvt_bf16_bf16"):
        name = "mov_b16"
    low.emit_lane(name, statement.operands[0], statement.operands[1:], "cvt")


def _integer_to_float(low: FunctionLowering, statement: Statement, modifiers: list[str], to: str, source: str) -> None:
    value, kind = _widened(low, statement.operands[1], source)
    rounding = next((one for one in modifiers if one in _ROUNDINGS), "rn")
    if set(modifiers) - {rounding}:
        raise low.unsupported()
    name = f"cvt_{rounding}_{to}_{kind}"
    if name not in signatures():  # every 32-bit integer is a double
        name = f"cvt_rn_{to}_{kind}"
    low.emit_lane(name, statement.operands[0], [value], "cvt")


def _float_to_integer(low: FunctionLowering, statement: Statement, modifiers: list[str], to: str, source: str) -> None:
    mode = next((one for one in modifiers if one in _TO_INTEGRAL), None)
    if mode is None or set(modifiers) - {mode, "sat"}:
        raise low.unsupported()
    name = f"cvt_{mode}_{to}_{source}"
    result_width = 64 if to.endswith("64") else 32
    _deliver(low, statement, name, statement.operands[1], result_width)


def _deliver(low: FunctionLowering, statement: Statement, name: str, source: Operand, result_width: int) -> None:
    """Run an operation whose result may be wider than the destination register."""
    destination = statement.operands[0]
    if not isinstance(destination, str) or destination == "_" or low.width(destination) == result_width:
        low.emit_lane(name, destination, [source], "cvt")
        return
    result = low.temporary(result_width)
    low.emit_lane(name, result, [source], "cvt")
    kind = "u" if statement.parts[-2][0] == "u" else "s"
    if low.width(destination) < result_width:
        low.emit_lane(f"cvt_b{low.width(destination)}_b{result_width}", destination, [result], "mov")
    else:
        low.emit_lane(f"cvt_b{low.width(destination)}_{kind}{result_width}", destination, [result], "mov")


def _widened(low: FunctionLowering, source: Operand, kind: str) -> tuple[Operand, str]:
    """The source as a 32- or 64-bit integer of the same value, and its type."""
    sign = "s" if kind[0] == "s" else "u"
    bits = width_of(kind)
    if not low.is_register(source):
        return source, f"{sign}{max(bits, 32)}"
    assert isinstance(source, str)
    actual = low.width(source)
    if bits >= 32 and actual == bits:
        return source, f"{sign}{bits}"
    wide = source
    if actual != 32:
        wide = low.temporary(32)
        low.emit_lane("cvt_b32_b64" if actual == 64 else f"cvt_b32_{sign}16", wide, [source], "mov")
    if bits < 32 and not (bits == 16 and actual == 16):
        narrow, wide = wide, low.temporary(32)
        low.emit_lane(f"{'sext' if sign == 's' else 'zext'}_{sign}{bits}_b32", wide, [narrow], "mov")
    return wide, f"{sign}32"


def _integer_to_integer(
    low: FunctionLowering, statement: Statement, modifiers: list[str], to: str, source: str
) -> None:
    destination = statement.operands[0]
    value, kind = _widened(low, statement.operands[1], source)
    to = to.replace("b", "u")
    if set(modifiers) - {"sat"}:
        raise low.unsupported()
    if "sat" in modifiers:
        value, kind = _clamped(low, value, kind, to)
    elif to in ("s8", "u8"):
        value, kind = _truncated(low, value, kind, to)
    if not isinstance(destination, str) or destination == "_":
        raise low.unsupported("a conversion without a destination")
    width, from_width = low.width(destination), width_of(kind)
    if (to == "s16" and width == 32) or (to == "u16" and width == 32):
        value, kind = _truncated(low, value, kind, to)
        from_width = 32
    if width == from_width:
        low.emit_lane(f"mov_b{width}", destination, [value], "cvt")
    elif width < from_width:
        low.emit_lane(f"cvt_b{width}_b{from_width}", destination, [value], "cvt")
    else:
        low.emit_lane(f"cvt_b{width}_{kind[0]}{from_width}", destination, [value], "cvt")


def _clamped(low: FunctionLowering, value: Operand, kind: str, to: str) -> tuple[Operand, str]:
    name = f"clamp_{to}_{kind}"
    if name not in signatures():
        return value, kind
    width = 64 if to.endswith("64") else 32
    result = low.temporary(width)
    low.emit_lane(name, result, [value], "cvt")
    return result, f"{to[0]}{width}"


def _truncated(low: FunctionLowering, value: Operand, kind: str, to: str) -> tuple[Operand, str]:
    if kind.endswith("64"):
        half = low.temporary(32)
        low.emit_lane("cvt_b32_b64", half, [value], "mov")
        value = half
    result = low.temporary(32)
    low.emit_lane(f"{'sext' if to[0] == 's' else 'zext'}_{to}_b32", result, [value], "mov")
    return result, f"{to[0]}32"
