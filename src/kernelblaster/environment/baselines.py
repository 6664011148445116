"""What an episode's speed-ups are against.

The judge times a submission in turns with a kernel: the problem's start, or the fastest verified one that the knowledge
base holds. Other baselines are times: PyTorch's, on a GPU of this very name and sampled in another sitting, or what a
well-written kernel is expected to reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.against_time import BaselineTime, against_time
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.evaluation.timing.pytorch_times import ModeTime
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.problems.problem import Problem

KnownTimes = Mapping[TorchMode, ModeTime]
"""PyTorch on one problem; empty where it was not timed on this GPU."""


class PytorchClock(Protocol):
    """Times PyTorch on this GPU."""

    def __call__(self, problem: Problem, modes: frozenset[TorchMode]) -> KnownTimes:
        """Those modes that run; may take a minute. Raises DeviceError."""
        ...


class EpisodeBaseline(StrEnum):
    """What the submissions of an episode are compared with."""

    START = "start"
    """The problem's own kernel, timed in turns with the submission; every problem has one, plain and slow."""
    EXPERT = "expert"
    """The fastest verified kernel of the problem that the knowledge base holds, timed in turns with the submission."""
    ATTAINABLE = "attainable"
    """The time that a well-written kernel is expected to reach (`evaluation.attainable`); every problem has one."""
    EAGER = "eager"
    COMPILE = "compile"
    BEST = "best"
    """The faster of `eager` and `compile`."""

    @property
    def modes(self) -> frozenset[TorchMode]:
        """PyTorch's modes that it is the fastest of; none where it is not PyTorch's time."""
        return _MODES.get(self, frozenset())

    @property
    def told(self) -> str:
        """As a person reads it."""
        return _TOLD.get(self, f"PyTorch ({self})")


_MODES = {
    EpisodeBaseline.EAGER: frozenset({TorchMode.EAGER}),
    EpisodeBaseline.COMPILE: frozenset({TorchMode.COMPILE}),
    EpisodeBaseline.BEST: frozenset({TorchMode.EAGER, TorchMode.COMPILE}),
}
_TOLD = {
    EpisodeBaseline.START: "the start",
    EpisodeBaseline.EXPERT: "the fastest kernel that is known",
    EpisodeBaseline.ATTAINABLE: "the time that a well-written kernel should reach",
}

_OTHERS = f"{EpisodeBaseline.ATTAINABLE}, {EpisodeBaseline.EXPERT} or {EpisodeBaseline.START}"


@dataclass(frozen=True)
class ChosenBaseline:
    """The baseline of an episode on its problem.

    Attributes:
        kind: as it was asked for.
        source: of the kernel that is timed in turns with a submission; the problem's start if None.
        time: in whose place this time is the baseline; None where it is the kernel.
    """

    kind: EpisodeBaseline = EpisodeBaseline.START
    source: str | None = None
    time: BaselineTime | None = None

    def compared(self, evaluation: Evaluation) -> Evaluation:
        """An evaluation that was timed against that kernel, with what its speed-up is to be against."""
        return evaluation if self.time is None else against_time(evaluation, self.time)


def fastest_of(baseline: EpisodeBaseline, known: KnownTimes) -> ModeTime | None:
    """The time of one of PyTorch's baselines; None where a mode was not timed."""
    found = [known[mode] for mode in baseline.modes if mode in known]
    return min(found, key=lambda time: time.us) if found and len(found) == len(baseline.modes) else None


def require_possible(baseline: EpisodeBaseline, facts: DeviceFacts) -> None:
    """Raise UsageError where no problem has this baseline on a device of this kind."""
    if baseline.modes and facts.kind is not DeviceKind.CUDA:
        raise UsageError(
            "PyTorch has no time on an emulated GPU: measured and modelled times are not compared",
            hint=f"take {_OTHERS}",
        )


def no_time_of(baseline: EpisodeBaseline, problem: str, facts: DeviceFacts, workload: str) -> UsageError:
    """Why PyTorch cannot be the baseline of a problem."""
    return UsageError(
        f"PyTorch ({baseline}) was not timed on {problem}, {facts.name}, size {workload}, and cannot be here",
        hint="what ships is for size full, and not for kernrl; serve with --pytorch-times FILE, of `kernelblaster "
        f"problems baseline`, or take {_OTHERS}",
    )
