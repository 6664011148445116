"""At which of its sizes a problem is timed where nobody asks for one."""

from __future__ import annotations

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.problems.problem import Problem, StandardWorkload


def usual_size(kind: DeviceKind) -> str:
    """The size that is timed by default: small where times are modelled, medium on a GPU."""
    return StandardWorkload.SMALL if kind is DeviceKind.EMULATED else StandardWorkload.MEDIUM


def size_instead(problem: Problem, usual: str, kind: DeviceKind) -> str:
    """The usual size, or what stands for it in a problem without it.

    That is the first size where times are modelled, which is dear, and on a GPU full, or the last.
    """
    declared = list(problem.workloads)
    if usual in declared or not declared:
        return usual
    if kind is DeviceKind.EMULATED:
        return declared[0]
    return StandardWorkload.FULL if StandardWorkload.FULL in declared else declared[-1]
