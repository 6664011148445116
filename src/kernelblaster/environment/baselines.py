"""What a submission's speed-up is against: the problem's start, or PyTorch's time on this very GPU."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.against_pytorch import against_pytorch
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.evaluation.timing.pytorch_times import ModeTime
from kernelblaster.evaluation.timing.torch_mode import TorchMode

KnownTimes = Mapping[TorchMode, ModeTime]
"""PyTorch on one problem; empty where it was not timed on this GPU."""


class EpisodeBaseline(StrEnum):
    """What the submissions of an episode are compared with."""

    START = "start"
    """The problem's own kernel, timed in turns with the submission; every problem has one."""
    EAGER = "eager"
    COMPILE = "compile"
    BEST = "best"
    """The faster of `eager` and `compile`."""

    @property
    def told(self) -> str:
        """As a person reads it."""
        return "the start" if self is EpisodeBaseline.START else f"PyTorch ({self})"


def compared(evaluation: Evaluation, baseline: EpisodeBaseline, known: KnownTimes) -> Evaluation:
    """An evaluation that was timed against the start, with what its speed-up is to be against."""
    if baseline is EpisodeBaseline.START:
        return evaluation
    return against_pytorch(evaluation, _time_of(baseline, known))


def require_known(
    baseline: EpisodeBaseline, problem: str, known: KnownTimes, facts: DeviceFacts, workload: str
) -> None:
    """Raise UsageError where there is no such baseline for a problem."""
    if baseline is EpisodeBaseline.START or _time_of(baseline, known) is not None:
        return
    if facts.kind is not DeviceKind.CUDA:
        raise UsageError(
            "PyTorch has no time on an emulated GPU: measured and modelled times are not compared",
            hint=f"{EpisodeBaseline.START}, the problem's own kernel, is the one baseline here",
        )
    raise UsageError(
        f"PyTorch ({baseline}) was not timed on {problem}, {facts.name}, size {workload}",
        hint="time it with `kernelblaster problems baseline` and serve with --pytorch-times FILE, or take start",
    )


def _time_of(baseline: EpisodeBaseline, known: KnownTimes) -> ModeTime | None:
    modes = [TorchMode.EAGER, TorchMode.COMPILE] if baseline is EpisodeBaseline.BEST else [TorchMode(baseline)]
    found = [known[mode] for mode in modes if mode in known]
    return min(found, key=lambda time: time.us) if len(found) == len(modes) else None
