"""A candidate beside PyTorch's time for its problem, which was sampled in another sitting on a GPU of the same name."""

from __future__ import annotations

from collections.abc import Mapping

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.evaluation.against_time import BaselineTime, against_time
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.evaluation.timing.pytorch_times import (
    ModeTime,
    PytorchTimes,
    TimesKey,
    describes,
    times_on,
)
from kernelblaster.problems.problem import Precision, Problem


def against_pytorch(evaluation: Evaluation, pytorch: ModeTime | None) -> Evaluation:
    """The evaluation with PyTorch as its baseline; without a comparison where PyTorch was not timed.

    Both are times of the whole call with a cold L2 whose launch is hidden, sampled in different processes.
    """
    if pytorch is None:
        return evaluation.model_copy(update={"comparison": None})
    return against_time(evaluation, baseline_time(pytorch))


def baseline_time(pytorch: ModeTime) -> BaselineTime:
    """PyTorch's time as a baseline."""
    return BaselineTime(pytorch.us, pytorch.low_us, pytorch.high_us, pytorch.samples)


def known_times(
    problem: Problem,
    facts: DeviceFacts,
    precision: Precision,
    workload: str,
    own: Mapping[TimesKey, PytorchTimes] | None,
) -> PytorchTimes | None:
    """PyTorch's times of a problem's present reference on this very GPU; None where there are none.

    Args:
        problem: to look up.
        facts: of the GPU; an emulated one has no times.
        precision: of candidates; a problem that has its own is looked up in that.
        workload: size that is timed.
        own: times to look in; those that ship if None.
    """
    precision = problem.precision_for(precision)
    if own is None:
        return times_on(facts, problem, precision, workload)
    if facts.kind is not DeviceKind.CUDA:
        return None
    found = own.get((facts.name, str(problem.id), precision, workload))
    return found if found is not None and describes(found, problem) else None
