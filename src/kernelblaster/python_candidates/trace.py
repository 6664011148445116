"""One call of `forward` as it is recorded: the memory it names, and what it does with it, in order."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorRole, TensorSpec
from kernelblaster.python_candidates.plan import (
    SCALAR_TYPES,
    Argument,
    Buffer,
    CallArgument,
    ExtensionCall,
    Fill,
    LaunchPlan,
    PlannedLaunch,
    Refusal,
    RefusalKind,
    Step,
    TensorPlace,
)

ALIGNMENT = 16
"""Of every tensor, in bytes: judged calls find no better one."""
_APART = 1 << 40
"""Between the addresses that two buffers seem to have."""
_FORMATS = {"torch.float16": "e", "torch.float32": "f", "torch.float64": "d"}


class NotRecorded(Exception):
    """The candidate does something that is not recorded."""

    def __init__(self, kind: RefusalKind, reason: str, hint: str) -> None:
        super().__init__(f"{reason} ({hint})")
        self.refusal = Refusal(kind=kind, reason=reason, hint=hint)


def storage_key(tensor: torch.Tensor) -> int:
    """What all views of one piece of memory share."""
    return int(tensor.untyped_storage()._cdata)


def offset_bytes(tensor: torch.Tensor) -> int:
    """Where a tensor begins in its memory."""
    return int(tensor.storage_offset()) * tensor.element_size()


@dataclass
class CallTrace:
    """What one call has done so far.

    Attributes:
        given: tensors of the problem by name, whose memory is there before the call.
        outputs: that the problem wants.
        refusal: the first thing that was refused, whatever the candidate made of the exception.
    """

    given: dict[str, torch.Tensor]
    outputs: Sequence[TensorSpec] = ()
    refusal: Refusal | None = None
    _buffers: list[Buffer] = field(default_factory=list)
    _index: dict[int, int] = field(default_factory=dict)
    _steps: list[Step] = field(default_factory=list)
    _kept: list[torch.Tensor] = field(default_factory=list)
    _results: dict[int, tuple[int, torch.Tensor]] = field(default_factory=dict)
    """Buffer -> which call returned it, and what stands for it."""

    def __post_init__(self) -> None:
        for name, tensor in self.given.items():
            self._add(tensor, name)

    def refuse(self, kind: RefusalKind, reason: str, hint: str) -> NotRecorded:
        """The exception to raise; the first one is the outcome, also where the candidate catches it."""
        refused = NotRecorded(kind, reason, hint)
        self.refusal = self.refusal or refused.refusal
        return refused

    def allocate(self, tensor: torch.Tensor) -> None:
        """The call has allocated a tensor."""
        if storage_key(tensor) not in self._index:
            self._add(tensor, None)

    def buffer(self, tensor: torch.Tensor) -> int:
        """Which buffer a tensor lies in. Raises Refused."""
        found = self._index.get(storage_key(tensor))
        if found is None:
            raise self.refuse(
                RefusalKind.OUTPUT,
                f"a {tuple(tensor.shape)} tensor is neither an argument, nor a weight, nor allocated in this call",
                "allocate with torch.empty inside forward; nothing is kept from one call to the next",
            )
        return found

    def address(self, tensor: torch.Tensor) -> int:
        """What `data_ptr()` says: made up, aligned as in a judged call. Raises Refused."""
        return (self.buffer(tensor) + 1) * _APART + ALIGNMENT + offset_bytes(tensor)

    def pointer(self, tensor: torch.Tensor) -> Argument:
        """A tensor as an argument of a launch. Raises Refused."""
        return Argument(buffer=self.buffer(tensor), offset=offset_bytes(tensor))

    def launch(self, launch: PlannedLaunch) -> None:
        """A kernel was launched."""
        self._steps.append(launch)

    def call(self, function: str, arguments: Sequence[object], *, returns: bool) -> torch.Tensor | None:
        """A function of an extension is called; what stands for what it returns is as the output. Raises Refused."""
        taken = tuple(self._argument(function, one) for one in arguments)
        made = self._returned(function) if returns else None
        number = sum(isinstance(step, ExtensionCall) for step in self._steps)
        place = None if made is None else self.buffer(made)
        self._steps.append(ExtensionCall(function=function, arguments=taken, result=place))
        if made is not None and place is not None:
            self._results[place] = (number, made)
        return made

    def _returned(self, function: str) -> torch.Tensor:
        if len(self.outputs) != 1:
            raise self.refuse(
                RefusalKind.LAUNCH,
                f"{function} returns a tensor of a problem with {len(self.outputs)} outputs",
                "allocate them with torch.empty in forward and have a void function write them",
            )
        spec = self.outputs[0]
        if spec.dtype not in SCALAR_TYPES:
            raise self.refuse(RefusalKind.LAUNCH, f"{function} returns a tensor of {spec.dtype}", "submit a .cu file")
        return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype.value), device="cuda")

    def _argument(self, function: str, given: object) -> CallArgument:
        """An argument of a function of an extension. Raises Refused."""
        if isinstance(given, bool | int | float):
            return CallArgument(value=given)
        if not isinstance(given, torch.Tensor):
            hint = "give tensors and numbers, and one torch::Tensor back"
            raise self.refuse(RefusalKind.LAUNCH, f"{function} is given a {type(given).__name__}", hint)
        found = self._results.get(self.buffer(given))
        if found is not None:
            number, whole = found
            if given is whole:
                return CallArgument(result=number)
            hint = "its shape is known at run time alone; do that in C++"
            raise self.refuse(RefusalKind.LAUNCH, f"{function} is given a view of what an extension returned", hint)
        if not given.is_contiguous():
            hint = "inputs and weights are contiguous; give those"
            raise self.refuse(RefusalKind.LAUNCH, f"{function} is given a tensor that is not contiguous", hint)
        name = str(given.dtype).removeprefix("torch.")
        if name not in SCALAR_TYPES:
            raise self.refuse(RefusalKind.LAUNCH, f"{function} is given a tensor of {name}", "use another type")
        place = TensorPlace(
            buffer=self.buffer(given), offset=offset_bytes(given), shape=tuple(given.shape), dtype=DType(name)
        )
        return CallArgument(tensor=place)

    def fill(self, tensor: torch.Tensor, value: float | bool) -> None:
        """A tensor was filled with a number. Raises Refused for one whose bytes differ."""
        pattern = _bytes_of(tensor, value)
        if not tensor.is_contiguous() or pattern is None or len(set(pattern)) > 1:
            raise self.refuse(
                RefusalKind.OPERATOR,
                f"a tensor is filled with {value}",
                "fill with 0 in Python; let a kernel write other values",
            )
        size = tensor.numel() * tensor.element_size()
        if size:
            self._steps.append(
                Fill(buffer=self.buffer(tensor), offset=offset_bytes(tensor), bytes=size, value=pattern[0])
            )

    def finish(self, returned: object, specs: Sequence[TensorSpec]) -> LaunchPlan:
        """The plan of the whole call, whose outputs were returned. Raises Refused."""
        wanted = [spec for spec in specs if spec.role is TensorRole.OUTPUT]
        outputs = list(returned) if isinstance(returned, tuple | list) else [returned]
        if len(outputs) != len(wanted):
            raise self._wrong(f"forward returns {len(outputs)} values", f"return {len(wanted)}, as the reference does")
        buffers = list(self._buffers)
        for output, spec in zip(outputs, wanted, strict=True):
            index = self._output(output, spec)
            if buffers[index].tensor is not None:
                raise self._wrong(
                    f"output {spec.name} is {buffers[index].tensor}, which was there already",
                    "allocate each output with torch.empty in forward and let a kernel write it",
                )
            buffers[index] = Buffer(tensor=spec.name, bytes=spec.bytes)
        return LaunchPlan(buffers=tuple(buffers), steps=tuple(self._steps))

    def _output(self, output: object, spec: TensorSpec) -> int:
        """Which buffer is an output. Raises Refused unless it is all of that, as the reference returns it."""
        if not isinstance(output, torch.Tensor) or type(output) is not type(next(iter(self.given.values()), output)):
            raise self._wrong(f"output {spec.name} is a {type(output).__name__}", "return a plain torch.Tensor")
        dtype = str(output.dtype).removeprefix("torch.")
        if (tuple(output.shape), dtype) != (spec.shape, spec.dtype.value):
            raise self._wrong(
                f"output {spec.name} is {dtype} {tuple(output.shape)}", f"return {spec.dtype.value} {spec.shape}"
            )
        index = self.buffer(output)
        if not output.is_contiguous() or offset_bytes(output) or self._buffers[index].bytes != spec.bytes:
            raise self._wrong(
                f"output {spec.name} is a part or a rearrangement of other memory",
                "allocate it with exactly its shape, contiguous, and let the kernel write it in that order",
            )
        return index

    def _wrong(self, reason: str, hint: str) -> NotRecorded:
        return self.refuse(RefusalKind.OUTPUT, reason, hint)

    def _add(self, tensor: torch.Tensor, name: str | None) -> None:
        self._index[storage_key(tensor)] = len(self._buffers)
        self._buffers.append(Buffer(tensor=name, bytes=int(tensor.untyped_storage().nbytes())))
        self._kept.append(tensor)  # its memory's identity must not be given to another


def _bytes_of(tensor: torch.Tensor, value: Any) -> bytes | None:
    """A number as one element of a tensor holds it; None where that is not known here."""
    if value == 0 and str(value)[0] != "-":
        return bytes(tensor.element_size())
    code = _FORMATS.get(str(tensor.dtype))
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        return None if code is None else struct.pack(f"<{code}", value)
    return int(value).to_bytes(tensor.element_size(), "little", signed=int(value) < 0)
