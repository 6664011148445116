"""What crosses the wall around a recorder: the request that it gets, and the launch plan that it answers with.

A launch plan holds no value of a tensor and nothing that runs on a host: kernels as PTX, and in which order they are
launched on which buffers. It is written by a process that executes untrusted code, so nothing in it is believed: it is
a program in another notation, and is judged as every program is.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

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


Step = Annotated[PlannedLaunch | Fill, Field(discriminator="step")]


class LaunchPlan(_Frozen):
    """What one call of a candidate does, in order."""

    buffers: Annotated[tuple[Buffer, ...], Field(max_length=MOST_BUFFERS)]
    steps: Annotated[tuple[Step, ...], Field(max_length=MOST_STEPS)]

    @model_validator(mode="after")
    def _stays_in_its_buffers(self) -> Self:
        for step in self.steps:
            spans = (
                [(step.buffer, step.offset + step.bytes)]
                if isinstance(step, Fill)
                else [(one.buffer, one.offset) for one in step.arguments]
            )
            for buffer, end in spans:
                if buffer is not None and not (0 <= buffer < len(self.buffers) and end <= self.buffers[buffer].bytes):
                    raise ValueError("a step lies outside the buffers")
        return self


class CompiledKernel(_Frozen):
    """A compiled kernel."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
    ptx: Annotated[str, Field(max_length=MOST_PTX)]


class CandidateRecording(_Frozen):
    """A candidate as plans, one for each size of the request."""

    kernels: Annotated[tuple[CompiledKernel, ...], Field(max_length=MOST_KERNELS)]
    plans: tuple[LaunchPlan, ...]
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
