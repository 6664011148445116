"""What `reference.py` declares beside sizes and scalars: names of outputs, types, index outputs, tags, mends.

OUTPUTS = ("values", "indices")      what `forward` returns, in order; one output is called `output` without it
DTYPES = {"indices": "int32"}        tensors that pin their element type; floating-point ones follow the precision
INDICES = {"indices": ("x", 1)}      outputs that hold indices into an input along an axis: equal values tie
PRECISIONS = ("fp32",)               the precisions in which it is meant; all of them without it
RANGES = {"keys": (0, 255)}          integer inputs of which every value in bounds, both included, is a sound one
KEPT = ("boxes",)                    inputs that mean something as a whole: they are judged as they are declared
PARTLY_READ = ("table",)             inputs of which a kernel need not read every byte
TAGS = ("matmul", "norm")            operations it holds, the main one first (`problems.tags`)
MENDS = "KernelBench's ...; here"    what KernelBench's form gets wrong, and what this one does instead
"""

from __future__ import annotations

from kernelblaster.errors import ProblemError
from kernelblaster.problems.dtype import LAUNCHABLE, DType
from kernelblaster.problems.problem import OUTPUT, IndexSource, Precision, ValueRange
from kernelblaster.problems.python_source import Declarations
from kernelblaster.problems.tags import Tag

NAMES = ("OUTPUTS", "DTYPES", "INDICES", "PRECISIONS", "RANGES", "KEPT", "PARTLY_READ", "TAGS", "MENDS")
_TYPES = f"use one of {', '.join(LAUNCHABLE)}"


def read_outputs(declarations: Declarations) -> tuple[str, ...]:
    """Names of the outputs. Raises ProblemError."""
    declared = declarations.get("OUTPUTS", (OUTPUT,))
    if (
        not isinstance(declared, list | tuple)
        or not declared
        or not all(isinstance(name, str) and name.isidentifier() for name in declared)
        or len(set(declared)) < len(declared)
    ):
        raise ProblemError(
            f"{declarations.place('OUTPUTS')}: OUTPUTS is {declared!r}",
            hint='name each output once: OUTPUTS = ("values", "indices")',
        )
    return tuple(declared)


def read_dtypes(declarations: Declarations) -> dict[str, DType]:
    """Pinned element types by tensor name. Raises ProblemError."""
    declared = declarations.get("DTYPES", {})
    if not isinstance(declared, dict):
        raise ProblemError(
            f"{declarations.place('DTYPES')}: DTYPES is not a dict", hint='write DTYPES = {"indices": "int32"}'
        )
    pinned = {}
    for name, text in declared.items():
        try:
            pinned[str(name)] = DType.of(str(text))
        except ValueError as error:
            raise ProblemError(f"{declarations.place('DTYPES')}: {name} has the type {text!r}", hint=_TYPES) from error
    packed = [name for name, dtype in pinned.items() if dtype not in LAUNCHABLE]
    if packed:
        raise ProblemError(f"{declarations.place('DTYPES')}: {packed[0]} has the type {pinned[packed[0]]}", hint=_TYPES)
    return pinned


def read_indices(declarations: Declarations, outputs: tuple[str, ...]) -> dict[str, IndexSource]:
    """Index outputs and what they point into. Raises ProblemError."""
    declared = declarations.get("INDICES", {})
    hint = 'write INDICES = {"indices": ("x", 1)}: an output, the input it points into, and the axis'
    if not isinstance(declared, dict):
        raise ProblemError(f"{declarations.place('INDICES')}: INDICES is not a dict", hint=hint)
    found = {}
    for name, value in declared.items():
        match value:
            case (str(tensor), int(axis)) if name in outputs:
                found[str(name)] = IndexSource(tensor, axis)
            case _:
                raise ProblemError(f"{declarations.place('INDICES')}: INDICES has {name!r}: {value!r}", hint=hint)
    return found


def read_precisions(declarations: Declarations) -> tuple[Precision, ...]:
    """Precisions in which a problem is meant, the first one its own. Raises ProblemError."""
    declared = declarations.get("PRECISIONS", tuple(Precision))
    try:
        if not isinstance(declared, list | tuple) or not declared or len(set(declared)) < len(declared):
            raise ValueError("not a tuple of different names")
        return tuple(Precision(name) for name in declared)
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"{declarations.place('PRECISIONS')}: PRECISIONS is {declared!r}: {error}",
            hint=f'write PRECISIONS = ("fp32",); precisions are {", ".join(Precision)}',
        ) from error


def read_ranges(declarations: Declarations) -> dict[str, ValueRange]:
    """Bounds of integer inputs. Raises ProblemError."""
    declared = declarations.get("RANGES", {})
    place, hint = (
        declarations.place("RANGES"),
        'write RANGES = {"keys": (0, 255)}: an input, its least and largest value',
    )
    if not isinstance(declared, dict):
        raise ProblemError(f"{place}: RANGES is not a dict", hint=hint)
    found = {}
    for name, value in declared.items():
        match value:
            case (int(low), int(high)) if low < high:
                found[str(name)] = ValueRange(low, high)
            case _:
                raise ProblemError(f"{place}: RANGES has {name!r}: {value!r}", hint=hint)
    return found


def read_names(declarations: Declarations, table: str) -> frozenset[str]:
    """Names of inputs that a table lists, such as KEPT. Raises ProblemError."""
    declared = declarations.get(table, ())
    if not isinstance(declared, list | tuple) or not all(isinstance(name, str) for name in declared):
        raise ProblemError(
            f"{declarations.place(table)}: {table} is {declared!r}", hint=f'name inputs: {table} = ("table",)'
        )
    return frozenset(declared)


def read_tags(declarations: Declarations) -> tuple[Tag, ...]:
    """Operations that a problem holds. Raises ProblemError."""
    declared = declarations.get("TAGS", ())
    try:
        if not isinstance(declared, list | tuple) or len(set(declared)) < len(declared):
            raise ValueError("not a tuple of different names")
        return tuple(Tag(name) for name in declared)
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"{declarations.place('TAGS')}: TAGS is {declared!r}: {error}",
            hint=f'write TAGS = ("matmul",); tags are {", ".join(Tag)}',
        ) from error


def read_mends(declarations: Declarations) -> str:
    """What was mended of KernelBench's form. Raises ProblemError."""
    declared = declarations.get("MENDS", "")
    if not isinstance(declared, str):
        raise ProblemError(f"{declarations.place('MENDS')}: MENDS is no text", hint="write a sentence")
    return declared
