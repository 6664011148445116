"""Which starts may be judged beside each other: what each takes of the memory of GPU and host.

A reference in float64 takes several times the memory of all that comes after it, and seconds of a judgement of ten. So
large references are computed one after the other (`reference_turn`), while others are verified and timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import ProblemError
from kernelblaster.evaluation.inputs.scratch import free_host_memory, free_space
from kernelblaster.problems.problem import Precision, Problem, TensorRole, TensorSpec
from kernelblaster.problems.reference import tensor_specs

_COPIES = 4
"""Tensors of the output's size, in float64, while a reference is computed."""
_FREE = 0.7
"""Share of the free memory that a reference in float64 may take, else it is computed in float32."""
_BESIDE = 3 << 30
"""GPU memory of contexts and of what is compared at once."""
_LARGE = 1 / 16
"""Share of the GPU's memory from which on references are computed one at a time."""
_OUTPUT_FILES = 3
"""Files of each output at once, beside those of judged timed calls."""
_READ_EVERY_S = 1.0


@dataclass(frozen=True)
class Need:
    """Bytes that judging one start takes.

    Attributes:
        reference: of GPU memory while its reference is computed (of the host's where the GPU is emulated).
        judging: of GPU memory from then on: what is kept of the reference, and the start's process.
        files: of the space for files, which host memory is part of.
    """

    reference: int = 0
    judging: int = 0
    files: int = 0

    @property
    def most(self) -> int:
        """All that it takes at any time."""
        return self.reference + self.judging + self.files

    def is_large(self, facts: DeviceFacts) -> bool:
        """Whether its reference is computed while no other large one is."""
        return facts.kind is DeviceKind.CUDA and self.reference > _LARGE * facts.memory_bytes


def need_of(specs: Sequence[TensorSpec], judged_calls: int, processes: int = 1) -> Need:
    """What judging takes, from the tensors of the timed size, and from how many processes hold them at once."""
    outputs = [spec for spec in specs if spec.role is TensorRole.OUTPUT]
    given = [spec for spec in specs if spec.role is not TensorRole.OUTPUT]
    read, written = (sum(spec.bytes for spec in some) for some in (given, outputs))
    taken, left = (sum(spec.elements for spec in some) for some in (given, outputs))
    kept = sum(spec.elements * (8 if spec.dtype.bits > 16 else 4) for spec in outputs)
    return Need(
        reference=int(8 * (taken + _COPIES * left) / _FREE),
        judging=processes * (3 * read + 2 * written) + kept + _BESIDE,
        files=read + (_OUTPUT_FILES + judged_calls) * written,
    )


class Room:
    """What the host has to give of memory or space, as far as is known by now.

    A virtual machine may be given its memory as it touches it, and what runs has taken some: so the most that was ever
    free counts, and it is read again and again.

    Args:
        free: bytes that are free now.
        clock: seconds, monotonic.
    """

    def __init__(self, free: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._free, self._clock = free, clock
        self._most, self._read_at = 0, -_READ_EVERY_S

    def bytes(self) -> int:
        """The most that was ever free."""
        now = self._clock()
        if now - self._read_at >= _READ_EVERY_S:
            self._read_at, self._most = now, max(self._most, self._free())
        return self._most


class CheckRoom:
    """Says which starts are judged at once.

    Args:
        facts: of the device.
        judged_calls: timed calls of each that are judged.
        memory, space: of the host.
        processes: of each that hold its tensors at once.
    """

    def __init__(
        self,
        facts: DeviceFacts,
        judged_calls: int,
        memory: Room | None = None,
        space: Room | None = None,
        processes: int = 1,
    ) -> None:
        self._facts, self._judged_calls, self._processes = facts, judged_calls, processes
        self._memory = memory or Room(free_host_memory)
        self._space = space or Room(free_space)
        self._specs: dict[tuple[Problem, str], Sequence[TensorSpec]] = {}

    def need(self, problem: Problem, workload: str, precision: Precision) -> Need:
        """What judging takes; nothing for a problem whose tensors are not known, which is an outcome later."""
        key = (problem, workload)
        if key not in self._specs:
            try:
                self._specs[key] = tensor_specs(problem, workload, Precision.FP16)
            except ProblemError:
                self._specs[key] = ()
        stored = [_stored(spec, precision) for spec in self._specs[key]]
        return need_of(stored, self._judged_calls, self._processes)

    def holds(self, needs: Sequence[Need]) -> bool:
        """Whether there is memory for all of these at once."""
        files = sum(need.files for need in needs)
        if files > self._space.bytes():
            return False
        if self._facts.kind is DeviceKind.EMULATED:
            return files + sum(need.reference for need in needs) <= self._memory.bytes()
        large = [need for need in needs if need.is_large(self._facts)]
        others = sum(need.reference + need.judging for need in needs if not need.is_large(self._facts))
        judged = others + sum(need.judging for need in large)
        most = max([judged, *(judged - need.judging + need.reference for need in large)])
        return most <= self._facts.memory_bytes


def reference_turn(need: Need, facts: DeviceFacts) -> AbstractContextManager[object]:
    """Held while a reference is computed; by one at a time, of all processes of this machine, if it is large."""
    if not need.is_large(facts):
        return nullcontext()
    from kernelblaster.devices.cuda.lock import reference_lock

    return reference_lock(facts.uuid or "gpu")


def _stored(spec: TensorSpec, precision: Precision) -> TensorSpec:
    """A tensor in another precision than fp16, unless its type is pinned."""
    return replace(spec, dtype=precision.dtype) if spec.dtype is Precision.FP16.dtype else spec
