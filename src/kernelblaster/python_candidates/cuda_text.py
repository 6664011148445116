"""A recording as CUDA C++: one `.cu` file that defines the problem's launcher, and is judged as any other is.

Each kernel is a `__global__` function whose body is Triton's PTX as one inline assembly statement; nvcc gives the
function's parameters the names that the PTX loads them by. The host code is written here, from numbers alone: nothing
of the candidate's text reaches it but names of kernels, and PTX inside string literals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelblaster.cuda_source.launcher import LAUNCHER
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.problems.driver_names import LauncherArgument
from kernelblaster.problems.problem import TensorRole
from kernelblaster.python_candidates.extension_text import CallText, extension_text
from kernelblaster.python_candidates.plan import (
    CANDIDATE,
    CandidateRecording,
    CompiledKernel,
    ExtensionCall,
    Extents,
    Fill,
    LaunchPlan,
    PlannedLaunch,
)

Launcher = Sequence[LauncherArgument]
"""What the problem's driver passes to the launcher, in order."""
_ENTRY = ".visible .entry "
_PARAMETER = re.compile(r"\.param\s+\.(?P<type>\w+)\s+(?:\.ptr\s+(?:\.global\s+)?(?:\.align\s+\d+\s+)?)?(?P<name>\w+)$")
_PLACE = re.compile(r"(\d{1,7}):(\d{1,5})\b")
_WORD = re.compile(r"[\w$]+")
_TYPES = {
    "u64": "unsigned long long",
    "b64": "unsigned long long",
    "s64": "long long",
    "u32": "unsigned int",
    "b32": "unsigned int",
    "s32": "int",
    "u16": "unsigned short",
    "b16": "unsigned short",
    "u8": "unsigned char",
    "b8": "unsigned char",
    "f32": "float",
    "f64": "double",
}
_MODULE_SCOPE = (".version", ".target", ".address_size", ".extern .shared .align 16 .b8 global_smem[]", ".file")
"""What a module may hold beside its kernel; the last sections are for debuggers."""
_GLOBAL = re.compile(r"\.global (?:\.align \d+ )?\.b8 (?P<name>[\w$]+)\[\d+\] = \{[\d, ]*\};$")
_SMALL_SHARED_BYTES = 48 << 10
"""More than that a kernel has to ask for."""


@dataclass(frozen=True)
class _Function:
    """A kernel as a `__global__` function."""

    name: str
    parameters: tuple[str, ...]
    """C types."""
    text: str


def cuda_text(recording: CandidateRecording, extents: Sequence[Extents], launcher: Launcher) -> str:
    """The CUDA source of a recording.

    Args:
        recording: with a plan for each of `extents`.
        extents: the sizes it was recorded at.
        launcher: what the problem's driver passes, in order.

    Raises:
        BuildFailure: a kernel or a launch has no such form, or the launcher cannot tell two sizes apart.
    """
    functions = [_function(kernel, number) for number, kernel in enumerate(recording.kernels)]
    _require_distinct(extents, launcher)
    parameters = ", ".join(argument.declaration for argument in launcher)
    branches = [
        line
        for number, (plan, one) in enumerate(zip(recording.plans, extents, strict=True))
        for line in _branch(number, plan, one, functions, launcher)
    ]
    return "\n".join(
        [
            "// Written from a recording of a candidate in Python: its kernels as PTX, its launches at each size.",
            "#include <cuda_runtime.h>",
            "#include <cstdint>",
            "#include <stdexcept>",
            *([extension_text(recording.sources)] if recording.sources else []),
            *(function.text for function in functions),
            '#line 1 "launches.cu"',
            _ALLOCATE,
            f"void {LAUNCHER}({parameters}) {{",
            *branches,
            '    throw std::runtime_error("no launches were recorded at these sizes");',
            "}",
            "",
        ]
    )


_ALLOCATE = """
// Scratch memory, as PyTorch's allocator would have it from the second call on: without a cost.
static char* scratch(char*& memory, size_t bytes) {
    if (memory == nullptr && cudaMalloc(&memory, bytes) != cudaSuccess) throw std::runtime_error("no scratch memory");
    return memory;
}
"""


@dataclass(frozen=True)
class _PtxEntry:
    """The one kernel of a module of PTX, without comments.

    Attributes:
        before: what the module holds before it.
        name: in PTX.
        parameters: declarations between the parentheses.
        directives: between these and the body.
        body: between the braces.
    """

    before: str
    name: str
    parameters: str
    directives: str
    body: str


def _function(kernel: CompiledKernel, number: int) -> _Function:
    """A kernel as a function of its own name, which the number keeps apart from all others. Raises BuildFailure."""
    entry = _entry(kernel)
    _require_nothing_else(kernel.name, entry)
    name = f"{kernel.name}_{number}"
    types = tuple(_c_type(kernel.name, one) for one in entry.parameters.split(",") if one.strip())
    body = re.sub(rf"\b{re.escape(entry.name)}_param_(\d+)\b", rf"{name}_param_\1", entry.body)
    declared = ", ".join(f"{kind} p{place}" for place, kind in enumerate(types))
    first = re.search(r"\.loc 1 (\d+)", body)
    lines = [
        f'#line {first[1] if first else 1} "{CANDIDATE}"',
        f'extern "C" __global__ void {_bounds(entry.directives)} {name}({declared}) {{',
        "    extern __shared__ __align__(16) char global_smem[];",
        # The assembly names the shared memory; without a use here it would not be declared.
        '    asm volatile("// shared memory at %0" : : "l"(global_smem));',
        '    asm volatile("{\\n"',
        *(f'        "{_escaped(line)}\\n"' for line in body.splitlines() if line.strip()),
        '        "}");',
        "}",
    ]
    return _Function(name, types, "\n".join(lines))


def _entry(kernel: CompiledKernel) -> _PtxEntry:
    """The kernel of a module. Raises BuildFailure unless there is one alone.

    The text is a candidate's: nothing here takes longer than in proportion to its length.
    """
    lines = [_without_comment(line) for line in kernel.ptx.replace("\r", "").split("\n")]
    starts = [place for place, line in enumerate(lines) if line.startswith(_ENTRY)]
    if len(starts) == 1 and kernel.ptx.isascii():
        name, _, rest = "\n".join(lines[starts[0] :]).removeprefix(_ENTRY).partition("(")
        parameters, _, rest = rest.partition(")")
        directives, _, rest = rest.partition("{")
        end = _closing_brace(rest)
        if end is not None and _WORD.fullmatch(name):
            return _PtxEntry("\n".join(lines[: starts[0]]), name, parameters, directives, rest[:end])
    raise _not_replayed(f"kernel {kernel.name} is not one entry of PTX")


def _without_comment(line: str) -> str:
    """A line of PTX; a place in the source is that in the candidate, which nvcc calls file 1 and knows alone."""
    code, _, comment = line.partition("//")
    if not code.lstrip().startswith(".loc"):
        return code.rstrip()
    # Triton's comment beside it names functions from the innermost outwards: the last place is the outermost.
    place = _PLACE.match(comment.rpartition(f"{CANDIDATE}:")[2]) if f"{CANDIDATE}:" in comment else None
    return f".loc 1 {place[1]} {place[2]}" if place else ""


def _closing_brace(text: str) -> int | None:
    """Where the brace is closed behind which a text begins."""
    depth = 1
    for brace in re.finditer(r"[{}]", text):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return None


def _escaped(line: str) -> str:
    """A line inside a string literal."""
    return line.strip().replace("\\", "\\\\").replace('"', '\\"').replace("\t", " ")


def _require_nothing_else(name: str, entry: _PtxEntry) -> None:
    """Raise BuildFailure for what a kernel uses beside itself; mathematical functions leave text that nothing uses."""
    used = set(_WORD.findall(entry.body))
    for line in entry.before.splitlines():
        unused = _GLOBAL.match(line.strip())
        if unused is not None and unused["name"] not in used:
            continue
        if line.strip() and not line.strip().startswith(_MODULE_SCOPE):
            raise _not_replayed(f"kernel {name} has more than one function or a global variable: {line.strip()[:80]}")


def _c_type(kernel: str, parameter: str) -> str:
    found = _PARAMETER.match(" ".join(parameter.split()))
    if found is None or found["type"] not in _TYPES:
        raise _not_replayed(f"kernel {kernel} has a parameter {' '.join(parameter.split())[:80]}")
    return _TYPES[found["type"]]


def _bounds(directives: str) -> str:
    """Launch bounds that stand for those of the PTX; nvcc takes one of the two alone."""
    registers = re.search(r"\.maxnreg (\d+)", directives)
    if registers is not None:
        return f"__maxnreg__({registers[1]})"
    threads = re.search(r"\.(?:reqntid|maxntid) (\d+)", directives)
    return "" if threads is None else f"__launch_bounds__({threads[1]})"


def _require_distinct(extents: Sequence[Extents], launcher: Launcher) -> None:
    told = [_condition(one, launcher) for one in extents]
    if len(set(told)) < len(told):
        raise _not_replayed("the launcher does not get every size of this problem")


def _condition(extents: Extents, launcher: Launcher) -> str:
    """That a call is one of these sizes."""
    tests = [f"{one.parameter} == {extents.sizes[one.name]}" for one in launcher if one.kind == "size"]
    tests += [
        f"{one.parameter} == {_number(extents.scalars[one.name], 'float')}" for one in launcher if one.kind == "scalar"
    ]
    return " && ".join(tests) or "true"


def _branch(
    number: int,
    plan: LaunchPlan,
    extents: Extents,
    functions: Sequence[_Function],
    launcher: Launcher,
) -> Iterator[str]:
    """What a call at one size does."""
    yield f"    if ({_condition(extents, launcher)}) {{"
    tensors = _tensors(extents, launcher)
    returned = {step.result for step in plan.steps if isinstance(step, ExtensionCall)}
    for index, buffer in enumerate(plan.buffers):
        if buffer.tensor is None and index in returned:
            continue  # what returns it has it allocated
        if buffer.tensor is None:
            yield f"        static char* scratch_{number}_{index} = nullptr;"
            memory = f"scratch(scratch_{number}_{index}, {max(buffer.bytes, 1)})"
        elif buffer.tensor not in tensors:
            continue  # a weight that this launcher is not given
        else:
            memory = f"(char*){tensors[buffer.tensor]}"
        yield f"        char* b{index} = {memory}; (void)b{index};"
    calls = CallText(number, plan, extents)
    yield from calls.opening()
    for step in plan.steps:
        if isinstance(step, ExtensionCall):
            yield from calls.call(step)
        else:
            yield from _fill(step) if isinstance(step, Fill) else _launch(step, functions)
    yield "        return;"
    yield "    }"


def _tensors(extents: Extents, launcher: Launcher) -> Mapping[str, str]:
    """Tensor -> the expression of its address."""
    weights = [spec.name for spec in extents.tensors if spec.role is TensorRole.WEIGHT]
    found = {}
    for one in launcher:
        if one.kind == "weights":
            found.update({name: f"{one.parameter}[{place}]" for place, name in enumerate(weights)})
        elif one.kind in ("input", "weight", "output"):
            found[one.name] = one.parameter
    return found


def _fill(step: Fill) -> Iterator[str]:
    yield f"        cudaMemsetAsync(b{step.buffer} + {step.offset}, {step.value}, {step.bytes}, 0);"


def _launch(step: PlannedLaunch, functions: Sequence[_Function]) -> Iterator[str]:
    function = functions[step.kernel]
    # Behind its own parameters a kernel has pointers to scratch memory of the compiler's, which nothing here needs.
    if len(step.arguments) > len(function.parameters):
        raise _not_replayed(f"kernel {function.name} is launched with too many arguments")
    values = []
    for place, kind in enumerate(function.parameters):
        if place >= len(step.arguments):
            values.append("0")
            continue
        argument = step.arguments[place]
        if argument.buffer is not None:
            values.append(f"({kind})(b{argument.buffer} + {argument.offset})")
        elif argument.value is not None:
            values.append(_number(argument.value, kind))
        else:
            values.append("0")
    if step.shared_bytes > _SMALL_SHARED_BYTES:
        yield (
            f"        cudaFuncSetAttribute({function.name}, cudaFuncAttributeMaxDynamicSharedMemorySize, "
            f"{step.shared_bytes});"
        )
    grid, threads = ", ".join(map(str, step.grid)), 32 * step.warps
    yield f"        {function.name}<<<dim3({grid}), {threads}, {step.shared_bytes}>>>({', '.join(values)});"


def _number(value: float, kind: str) -> str:
    """A number as a C++ expression of a type, exactly. Raises BuildFailure for a type that does not hold it."""
    if kind in ("float", "double"):
        return f"({kind}){_floating(float(value))}"
    if not float(value).is_integer():
        raise _not_replayed(f"a kernel takes {value} as {kind}")
    return f"({kind}){int(value) % (1 << 64)}ull"


def _floating(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nan("")'
    return value.hex() if math.isfinite(value) else f"({'-' if value < 0 else ''}__builtin_inf())"


def _not_replayed(reason: str) -> BuildFailure:
    return BuildFailure(BuildFailureKind.COMPILE, f"{reason}: this cannot be replayed; use plain kernels and launches")
