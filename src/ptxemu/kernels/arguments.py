"""Arguments of a launch: what Python gives, as the bytes that a kernel's parameters hold."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from numbers import Integral, Real

from ptxemu.errors import InvalidInput
from ptxemu.kernels.arrays import HostArray, host_array
from ptxemu.ptx.tree import Declared

_POINTER_BYTES = 8
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}

Argument = bytes | HostArray
"""A value as it is passed, or an array whose address on the device is."""


def arguments(kernel: str, parameters: Sequence[Declared], values: Sequence[object]) -> list[Argument]:
    """All arguments of a launch, in their order.

    Raises InvalidInput, naming the parameter, when there are too few or too many, or one does not fit.
    """
    if len(values) != len(parameters):
        types = ", ".join(_spelled(one) for one in parameters)
        raise InvalidInput(
            f"{kernel} takes {len(parameters)} arguments, not {len(values)}", hint=f"its parameters are ({types})"
        )
    found = []
    for position, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
        try:
            found.append(argument(parameter, value))
        except InvalidInput as error:
            raise InvalidInput(f"argument {position} of {kernel}: {error.message}", hint=error.hint) from error
    return found


def argument(parameter: Declared, value: object) -> Argument:
    """One argument. Raises InvalidInput.

    Integers and floats take the parameter's type, `None` is a null pointer, `bytes` and ctypes structures are passed
    by value, everything else has to be an array.
    """
    match value:
        case Integral():
            return _integer(parameter, int(value))
        case Real():
            return _float(parameter, float(value))
        case None:
            return _sized(parameter, bytes(_POINTER_BYTES))
        case bytes() | ctypes.Structure():
            return _sized(parameter, bytes(value))
    array = host_array(value)
    if array is None:
        raise InvalidInput(
            f"{type(value).__name__} is neither a number nor an array",
            hint="give numbers, None, bytes, ctypes structures, or arrays of NumPy, DLPack or Python's buffers",
        )
    if parameter.size != _POINTER_BYTES or parameter.kind.startswith(".f"):
        raise InvalidInput(f"an array for {_spelled(parameter)}", hint="give a number: it is no pointer")
    return array


def _integer(parameter: Declared, value: int) -> bytes:
    if parameter.kind.startswith(".f"):
        return _float(parameter, float(value))
    bits = 8 * parameter.size
    if parameter.size > _POINTER_BYTES:
        raise InvalidInput(f"a number for {_spelled(parameter)}", hint="give its bytes, or a ctypes structure")
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise InvalidInput(f"{value} does not fit {_spelled(parameter)}", hint="give what the parameter can hold")
    return (value & ((1 << bits) - 1)).to_bytes(parameter.size, "little")


def _float(parameter: Declared, value: float) -> bytes:
    if parameter.kind[1] not in "fb" or parameter.size not in _FLOATS:
        raise InvalidInput(f"the float {value} for {_spelled(parameter)}", hint="give an integer")
    try:
        return struct.pack(_FLOATS[parameter.size], value)
    except OverflowError as error:
        raise InvalidInput(f"{value} does not fit {_spelled(parameter)}", hint="give a smaller number") from error


def _sized(parameter: Declared, value: bytes) -> bytes:
    if len(value) != parameter.size:
        raise InvalidInput(
            f"{len(value)} bytes for {_spelled(parameter)}", hint=f"give {parameter.size} bytes, or an array"
        )
    return value


def _spelled(parameter: Declared) -> str:
    """`.f32 alpha`, `.b8 shape[12]`."""
    many = f"[{parameter.size // parameter.element_bytes}]" if parameter.size != parameter.element_bytes else ""
    return f"{parameter.kind} {parameter.name}{many}"
