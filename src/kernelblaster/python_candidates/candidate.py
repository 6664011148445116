"""The way in: a Python candidate in, the CUDA source that is judged in its place out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.problems.driver_names import launcher_arguments
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.python_candidates.cuda_text import cuda_text
from kernelblaster.python_candidates.language import CandidateLanguage, language_of
from kernelblaster.python_candidates.plan import CandidateRecording, RecordingRequest
from kernelblaster.python_candidates.recording import extents_of, record, recorded_gpu

Record = Callable[[str, RecordingRequest], CandidateRecording]


@dataclass(frozen=True)
class CudaSource:
    """What is built of a candidate.

    Attributes:
        text: CUDA C++; of a Python candidate written from its recording, with a branch for each size.
        warnings: of the recording.
    """

    text: str
    warnings: tuple[str, ...] = ()


def as_cuda(
    source: str,
    sizes: Callable[[], Sequence[tuple[Problem, str]]],
    precision: Precision,
    facts: DeviceFacts,
    record: Record = record,
) -> CudaSource:
    """The CUDA source of a candidate: its own, or that of a recording.

    Args:
        source: CUDA C++, or a module that defines `ModelNew`.
        sizes: gives problems and workloads it will be called at: one problem, at these and at undeclared extents; asked
            for a Python candidate alone.
        precision: storage type of floating-point tensors.
        facts: the device that it is compiled for.
        record: makes the recording; in a process that starts when it is asked for if not given.

    Raises:
        BuildFailure: it cannot be recorded, or not be replayed.
        MachineError: Triton is not installed.
        ProblemError: the problem cannot be posed to a Python candidate.
    """
    if language_of(source) is CandidateLanguage.CUDA:
        return CudaSource(source)
    extents, asked = [], sizes()
    for problem, workload in asked:
        found = extents_of(problem, workload, precision)
        if found not in extents:
            extents.append(found)
    recording = record(source, RecordingRequest(gpu=recorded_gpu(facts), extents=tuple(extents)))
    text = cuda_text(recording, extents, launcher_arguments(asked[0][0].driver_path))
    return CudaSource(text, recording.warnings)
