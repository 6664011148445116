"""What `reference.py` declares beside sizes and scalars: names of outputs, types, index outputs, tags, mends.

OUTPUTS = ("values", "indices")      what `forward` returns, in order; one output is called `output` without it
DTYPES = {"indices": "int32"}        tensors that pin their element type; floating-point ones follow the precision
INDICES = {"indices": ("x", 1)}      outputs that hold indices into an input along an axis: equal values tie
TAGS = ("matmul", "norm")            operations it holds, the main one first (`problems.tags`)
MENDS = "KernelBench's ...; here"    what KernelBench's form gets wrong, and what this one does instead
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.dtype import LAUNCHABLE, DType
from kernelblaster.problems.problem import OUTPUT, IndexSource
from kernelblaster.problems.tags import Tag

NAMES = ("OUTPUTS", "DTYPES", "INDICES", "TAGS", "MENDS")
_TYPES = f"use one of {', '.join(LAUNCHABLE)}"


def read_outputs(directory: Path, literals: Mapping[str, object]) -> tuple[str, ...]:
    """Names of the outputs. Raises ProblemError."""
    declared = literals.get("OUTPUTS", (OUTPUT,))
    if (
        not isinstance(declared, list | tuple)
        or not declared
        or not all(isinstance(name, str) and name.isidentifier() for name in declared)
        or len(set(declared)) < len(declared)
    ):
        raise ProblemError(
            f"OUTPUTS of {directory.name} is {declared!r}",
            hint='name each output once: OUTPUTS = ("values", "indices")',
        )
    return tuple(declared)


def read_dtypes(directory: Path, literals: Mapping[str, object]) -> dict[str, DType]:
    """Pinned element types by tensor name. Raises ProblemError."""
    declared = literals.get("DTYPES", {})
    if not isinstance(declared, dict):
        raise ProblemError(f"DTYPES of {directory.name} is not a dict", hint='write DTYPES = {"indices": "int32"}')
    pinned = {}
    for name, text in declared.items():
        try:
            pinned[str(name)] = DType.of(str(text))
        except ValueError as error:
            raise ProblemError(f"{name} of {directory.name} has the type {text!r}", hint=_TYPES) from error
    packed = [name for name, dtype in pinned.items() if dtype not in LAUNCHABLE]
    if packed:
        raise ProblemError(f"{packed[0]} of {directory.name} has the type {pinned[packed[0]]}", hint=_TYPES)
    return pinned


def read_indices(directory: Path, literals: Mapping[str, object], outputs: tuple[str, ...]) -> dict[str, IndexSource]:
    """Index outputs and what they point into. Raises ProblemError."""
    declared = literals.get("INDICES", {})
    hint = 'write INDICES = {"indices": ("x", 1)}: an output, the input it points into, and the axis'
    if not isinstance(declared, dict):
        raise ProblemError(f"INDICES of {directory.name} is not a dict", hint=hint)
    found = {}
    for name, value in declared.items():
        match value:
            case (str(tensor), int(axis)) if name in outputs:
                found[str(name)] = IndexSource(tensor, axis)
            case _:
                raise ProblemError(f"INDICES of {directory.name} has {name!r}: {value!r}", hint=hint)
    return found


def read_tags(directory: Path, literals: Mapping[str, object]) -> tuple[Tag, ...]:
    """Operations that a problem holds. Raises ProblemError."""
    declared = literals.get("TAGS", ())
    try:
        if not isinstance(declared, list | tuple) or len(set(declared)) < len(declared):
            raise ValueError("not a tuple of different names")
        return tuple(Tag(name) for name in declared)
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"TAGS of {directory.name} is {declared!r}: {error}",
            hint=f'write TAGS = ("matmul",); tags are {", ".join(Tag)}',
        ) from error


def read_mends(directory: Path, literals: Mapping[str, object]) -> str:
    """What was mended of KernelBench's form. Raises ProblemError."""
    declared = literals.get("MENDS", "")
    if not isinstance(declared, str):
        raise ProblemError(f"MENDS of {directory.name} is no text", hint="write a sentence")
    return declared
