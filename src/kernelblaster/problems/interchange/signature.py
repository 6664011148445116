"""The launcher of an imported definition: outputs, inputs, variable axes and whole numbers, then other numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

from kernelblaster.cuda_source.launcher import LAUNCHER
from kernelblaster.errors import ProblemError
from kernelblaster.problems.definition import AxisConst, Definition
from kernelblaster.problems.dtype import LAUNCHABLE
from kernelblaster.problems.problem import OUTPUT

_CXX = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class compl
    concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t ptrdiff_t size_t ssize_t
"""
RESERVED = frozenset(_CXX.split())
"""Words of C++, and types of signatures, that name no parameter."""
_CUDA = """
    scalar_t kb std half half2 dim3 float2 float3 float4 double2 int2 int3 int4 uint uint2 uint4 uchar ushort ulong
    longlong2 nv_bfloat16 nv_bfloat162 cudaStream_t cudaError_t blockDim blockIdx gridDim threadIdx warpSize
    NULL NAN INFINITY HUGE_VAL EOF CHAR_BIT INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN FLT_MAX FLT_MIN FLT_EPSILON
    DBL_MAX DBL_MIN DBL_EPSILON RAND_MAX BUFSIZ M_PI M_E assert errno stdin stdout stderr linux unix
"""
TAKEN = RESERVED | frozenset(_CUDA.split()) | {LAUNCHER}
"""With types that a kernel would no longer get at, and macros, which a declaration may not hold."""
_DRIVER = Template("""// Made from $origin.
#include <kernelblaster/driver.hpp>

$declaration

static void call(kb::Driver& d) {
    launch_gpu_implementation($arguments);
}

KB_DRIVER(call)
""")


@dataclass(frozen=True)
class LauncherSignature:
    """What a launcher takes, and how `driver.cpp` gets it.

    Attributes:
        arguments: parameter -> the harness's expression for it, in order.
        types: parameter -> its C++ type.
        pointers: tensor -> parameter.
        integers: axis or whole number -> parameter, constant, or expression over axes.
        floats: number -> parameter.
    """

    arguments: Mapping[str, str]
    types: Mapping[str, str]
    pointers: Mapping[str, str]
    integers: Mapping[str, str]
    floats: Mapping[str, str]

    @property
    def declaration(self) -> str:
        """The launcher's declaration, on one line."""
        return f"void {LAUNCHER}({', '.join(f'{self.types[name]} {name}' for name in self.arguments)});"


def driver_source(origin: str, signature: LauncherSignature) -> str:
    """A `driver.cpp` that calls the launcher; its first line says what it was made from."""
    arguments = ", ".join(signature.arguments.values())
    return _DRIVER.substitute(origin=origin, declaration=signature.declaration, arguments=arguments)


def whole_numbers(definition: Definition) -> tuple[str, ...]:
    """Inputs that are numbers and have no fraction: they are passed like extents, so each workload may have its own."""
    return tuple(name for name in definition.scalars if not definition.inputs[name].dtype.is_floating_point)


def output_names(definition: Definition) -> tuple[str, ...]:
    """Outputs as problem files name them: a single one is called `output`."""
    return tuple(definition.outputs) if len(definition.outputs) > 1 else (OUTPUT,)


def size_parameters(definition: Definition) -> tuple[str, ...]:
    """What each size of the problem gives: variable axes, else constant ones, for there must be some; whole numbers."""
    constant = tuple(name for name, axis in definition.axes.items() if isinstance(axis, AxisConst))
    return (definition.variable_axes or constant) + whole_numbers(definition)


def launcher_signature(definition: Definition) -> LauncherSignature:
    """The launcher of a definition. Raises ProblemError for names that C++ and Python do not share."""
    whole, sizes = whole_numbers(definition), size_parameters(definition)
    if not sizes:
        raise ProblemError(f"{definition.name} has no axis", hint="a problem needs an extent that is passed")
    fractions = [name for name in definition.scalars if name not in whole]
    tensors = [name for name in definition.inputs if name not in definition.scalars]
    every = [*definition.outputs, *tensors, *sizes, *fractions]
    _check(definition, [*every, *definition.axes])
    arguments = {
        name: f'd.output("{given}")' for name, given in zip(definition.outputs, output_names(definition), strict=True)
    }
    arguments |= {name: f'd.input("{name}")' for name in tensors}
    arguments |= {name: f'd.size("{name}")' for name in sizes}
    arguments |= {name: f'd.scalar("{name}")' for name in fractions}
    constants = {name: str(axis.value) for name, axis in definition.axes.items() if isinstance(axis, AxisConst)}
    return LauncherSignature(
        arguments=arguments,
        types={name: _type(name, sizes, fractions) for name in arguments},
        pointers={name: name for name in (*definition.outputs, *tensors)},
        integers={**constants, **definition.expressions, **{name: name for name in sizes}},
        floats={name: name for name in fractions},
    )


def _type(name: str, sizes: tuple[str, ...], fractions: list[str]) -> str:
    if name in sizes:
        return "int64_t"
    return "float" if name in fractions else "void*"


def _check(definition: Definition, names: list[str]) -> None:
    packed = [name for name, one in {**definition.inputs, **definition.outputs}.items() if one.dtype not in LAUNCHABLE]
    if packed:
        raise ProblemError(
            f"{packed[0]} of {definition.name} has elements smaller than a byte",
            hint="KernelBlaster cannot judge these",
        )
    odd = [name for name in names if not name.isidentifier() or not name.isascii() or name in RESERVED]
    if odd:
        raise ProblemError(
            f"{definition.name} has the name {odd[0]!r}, which is none in C++ and Python",
            hint="rename it at its source",
        )
    own = [*definition.inputs, *definition.outputs]
    both = [name for name in definition.axes if name in own]
    if both:
        raise ProblemError(f"{both[0]} of {definition.name} is an axis and a tensor", hint="rename it at its source")
