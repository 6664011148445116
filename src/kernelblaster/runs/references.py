"""What a reference must be before kernels are judged by it, and the memory that it takes on the CPU.

Where a host has not that memory, its operating system ends the process.
"""

from __future__ import annotations

from kernelblaster.errors import MachineError, ProblemError
from kernelblaster.evaluation.inputs.scratch import free_host_memory, host_memory
from kernelblaster.problems.problem import Problem, StandardWorkload
from kernelblaster.problems.reference import tensor_specs
from kernelblaster.problems.sound_reference import require_sound_reference
from kernelblaster.runs.check_room import need_of


def require_usable_reference(problem: Problem) -> None:
    """Refuse a problem whose reference cannot tell right kernels from wrong ones, before any is judged.

    Raises ProblemError where it is random, MachineError where this host has not the memory to find that out.
    """
    require_host_room(problem, problem.cheap_workload, "running the reference of")
    require_sound_reference(problem)


def require_host_room(problem: Problem, size: str, work: str, times: float = 1.0) -> None:
    """Raise MachineError where a reference at this size takes more memory than is free.

    One that does not run for its shapes is let through: whoever runs it tells why.

    Args:
        problem: its reference is run without memory, for its shapes.
        size: at which it is to be run on the CPU.
        work: what is done with it, for the message: "auditing".
        times: as much as one run of the reference takes.
    """
    from kernelblaster.problems.peak_memory import peak_bytes

    try:
        specs, peak = tensor_specs(problem, size, problem.precisions[0]), peak_bytes(problem, size)
    except ProblemError:
        return
    needed = times * max(need_of(specs, judged_calls=0).reference, peak)
    free = min(free_host_memory(), host_memory())
    if needed > free:
        raise MachineError(
            f"{work} {problem.slug} at size {size} without a GPU takes about {needed / 1e9:,.0f} GB of memory, "
            f"{free / 1e9:,.0f} GB are free",
            hint=_what_instead(problem, size),
        )


def _what_instead(problem: Problem, size: str) -> str:
    if size != problem.cheap_workload:
        return "use a machine with a GPU, or a smaller --size"
    if StandardWorkload.SMALL in problem.workloads:
        return "use a machine with a GPU, or make size small smaller in SIZES"
    return "use a machine with a GPU, or declare a size small, of smaller extents, in SIZES"
