"""What crosses the wall around a recorder: the request that it gets, and the launch plan that it answers with.

A launch plan holds no value of a tensor and nothing that runs on a host: kernels as PTX, and in which order they are
launched on which buffers. It is written by a process that executes untrusted code, so nothing in it is believed: it is
a program in another notation, and is judged as every program is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorSpec
from kernelblaster.sandbox.text import printable, printable_lines

REQUEST, ANSWER, CANDIDATE = "request.json", "answer.json", "candidate.py"
"""Files in the working directory of a recorder."""
MOST_STEPS = 4096
MOST_BUFFERS = 4096
MOST_BYTES = 1 << 40
MOST_PTX = 8 << 20
"""Characters of one kernel."""
MOST_KERNELS = 1024
MOST_SOURCE, MOST_SOURCES = 1 << 18, 64
"""Characters of a source of an extension, and how many there may be."""
_MOST_WARNINGS = 16
_MOST_REASON, _MOST_LOG = 500, 8000
"""Characters of what is said."""
_GRID_X, _GRID_YZ = (1 << 31) - 1, (1 << 16) - 1

Count = Annotated[int, Field(ge=0, le=MOST_BYTES)]
Integer = Annotated[int, Field(ge=-(1 << 63), lt=1 << 64)]
"""That a register holds."""


def _line(text: str) -> str:
    return printable(text.encode("utf-8", errors="replace"))[:_MOST_REASON]


def _lines(text: str) -> str:
    return printable_lines(text.encode("utf-8", errors="replace"))[:_MOST_LOG]


Line = Annotated[str, AfterValidator(_line)]
"""What a recorder says, for people and models to read: it may be a candidate that says it."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class RecordedGpu(_Frozen):
    """The GPU that a candidate is compiled for, and is told that it runs on."""

    name: str
    capability: int
    """90 for `sm_90`."""
    sm_count: int
    memory_bytes: int
    l2_bytes: int
    shared_per_block: int
    """Opt-in limit in bytes."""


class PlanArgument(_Frozen):
    """An argument of `forward`: a tensor by name, or a number."""

    tensor: str | None = None
    value: float | int | None = None


class Extents(_Frozen):
    """One size of the problem, which a candidate is recorded at.

    Attributes:
        sizes: as the launcher gets them.
        scalars: as the launcher gets them.
        init: arguments of the constructor, a Python literal.
        arguments: of `forward`.
        tensors: that cross the launcher, in its order.
    """

    sizes: dict[str, int]
    scalars: dict[str, float]
    init: str
    arguments: tuple[PlanArgument, ...]
    tensors: tuple[TensorSpec, ...]


class RecordingRequest(_Frozen):
    """What a recorder is asked for."""

    gpu: RecordedGpu
    extents: Annotated[tuple[Extents, ...], Field(min_length=1)]


class Buffer(_Frozen):
    """Device memory of a plan: a tensor of the problem, or scratch memory of the candidate where it has no name."""

    tensor: str | None = None
    bytes: Count


class Argument(_Frozen):
    """An argument of a launch: an address `offset` bytes into a buffer, or a number."""

    buffer: int | None = None
    offset: Count = 0
    value: Integer | float | None = None


class PlannedLaunch(_Frozen):
    """A launch of a kernel; `arguments` are those that Triton has not made constants."""

    step: Literal["launch"] = "launch"
    kernel: Annotated[int, Field(ge=0)]
    grid: tuple[
        Annotated[int, Field(ge=0, le=_GRID_X)],
        Annotated[int, Field(ge=0, le=_GRID_YZ)],
        Annotated[int, Field(ge=0, le=_GRID_YZ)],
    ]
    warps: Annotated[int, Field(ge=1, le=32)]
    shared_bytes: Annotated[int, Field(ge=0, le=1 << 20)]
    arguments: tuple[Argument, ...]


class Fill(_Frozen):
    """`bytes` bytes of a buffer set to one value: `torch.zeros` and the like."""

    step: Literal["fill"] = "fill"
    buffer: int
    offset: Count
    bytes: Count
    value: Annotated[int, Field(ge=0, le=255)]


SCALAR_TYPES: Mapping[DType, str] = MappingProxyType(
    {
        DType.FLOAT64: "Double",
        DType.FLOAT32: "Float",
        DType.FLOAT16: "Half",
        DType.BFLOAT16: "BFloat16",
        DType.INT64: "Long",
        DType.INT32: "Int",
        DType.INT16: "Short",
        DType.INT8: "Char",
        DType.UINT8: "Byte",
        DType.BOOL: "Bool",
    }
)
"""Types of tensors that functions of extensions take, by PyTorch's names in C++."""


def _known(dtype: DType) -> DType:
    if dtype not in SCALAR_TYPES:
        raise ValueError(f"no function of an extension takes {dtype}")
    return dtype


class TensorPlace(_Frozen):
    """A contiguous tensor in a buffer."""

    buffer: int
    offset: Count
    shape: Annotated[tuple[Count, ...], Field(max_length=64)]
    dtype: Annotated[DType, AfterValidator(_known)]

    @property
    def bytes(self) -> int:
        """That it takes."""
        return math.prod(self.shape) * self.dtype.itemsize


class CallArgument(_Frozen):
    """An argument of a function of an extension: a tensor, what an earlier call returned, or a number."""

    tensor: TensorPlace | None = None
    result: int | None = None
    """Place of that call among the calls of the plan."""
    value: bool | Integer | float | None = None


class ExtensionCall(_Frozen):
    """A call of a function that CUDA sources of the candidate define."""

    step: Literal["call"] = "call"
    function: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
    arguments: Annotated[tuple[CallArgument, ...], Field(max_length=64)]
    result: int | None = None
    """The buffer that stands for what it returns; None where it returns nothing."""


Step = Annotated[PlannedLaunch | Fill | ExtensionCall, Field(discriminator="step")]


class LaunchPlan(_Frozen):
    """What one call of a candidate does, in order."""

    buffers: Annotated[tuple[Buffer, ...], Field(max_length=MOST_BUFFERS)]
    steps: Annotated[tuple[Step, ...], Field(max_length=MOST_STEPS)]

    @model_validator(mode="after")
    def _stays_in_its_buffers(self) -> Self:
        calls = 0
        for step in self.steps:
            for buffer, end in _spans(step):
                if buffer is not None and not (0 <= buffer < len(self.buffers) and end <= self.buffers[buffer].bytes):
                    raise ValueError("a step lies outside the buffers")
            if isinstance(step, ExtensionCall):
                if any(one.result is not None and not 0 <= one.result < calls for one in step.arguments):
                    raise ValueError("a call takes what no call before it has returned")
                calls += 1
        return self


def _spans(step: PlannedLaunch | Fill | ExtensionCall) -> list[tuple[int | None, int]]:
    """Buffers that a step names, and where in them it ends."""
    if isinstance(step, Fill):
        return [(step.buffer, step.offset + step.bytes)]
    if isinstance(step, PlannedLaunch):
        return [(one.buffer, one.offset) for one in step.arguments]
    tensors = [one.tensor for one in step.arguments if one.tensor is not None]
    return [(step.result, 0), *((one.buffer, one.offset + one.bytes) for one in tensors)]


class ExtensionSource(_Frozen):
    """CUDA or C++ that the candidate has compiled, as it wrote it."""

    text: Annotated[str, Field(max_length=MOST_SOURCE)]
    line: Annotated[int, Field(ge=0, le=1 << 20)]
    """Of the candidate, on which it begins; 0 where that is unknown."""


class CompiledKernel(_Frozen):
    """A compiled kernel."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
    ptx: Annotated[str, Field(max_length=MOST_PTX)]


class CandidateRecording(_Frozen):
    """A candidate as plans, one for each size of the request."""

    kernels: Annotated[tuple[CompiledKernel, ...], Field(max_length=MOST_KERNELS)]
    plans: tuple[LaunchPlan, ...]
    sources: Annotated[tuple[ExtensionSource, ...], Field(max_length=MOST_SOURCES)] = ()
    warnings: Annotated[tuple[Line, ...], Field(max_length=_MOST_WARNINGS)] = ()

    @model_validator(mode="after")
    def _launches_its_kernels(self) -> Self:
        launches = [step for plan in self.plans for step in plan.steps if isinstance(step, PlannedLaunch)]
        if any(launch.kernel >= len(self.kernels) for launch in launches):
            raise ValueError("a launch names no kernel")
        return self


class RefusalKind(StrEnum):
    """Why a candidate has no recording."""

    OPERATOR = "operator"
    """It asks PyTorch to compute."""
    OUTPUT = "output"
    """It returns something other than outputs that its kernels wrote in this call."""
    LAUNCH = "launch"
    """It launches in a way that cannot be replayed."""
    MODULE = "module"
    """`ModelNew` is missing, or has other weights than the reference."""
    UNSTABLE = "unstable"
    """Two calls with the same shapes do different things."""
    EXCEPTION = "exception"
    """It raised, or Triton did not compile it."""


class Refusal(_Frozen):
    """Why a candidate has no recording: one line, what to do about it, and what it said."""

    kind: RefusalKind
    reason: Line
    hint: Line = ""
    log: Annotated[str, AfterValidator(_lines)] = ""


class RecorderAnswer(_Frozen):
    """What a recorder leaves behind: one of the two."""

    recording: CandidateRecording | None = None
    refusal: Refusal | None = None

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if (self.recording is None) is (self.refusal is None):
            raise ValueError("neither a recording nor a refusal, or both")
        return self
