"""How long PyTorch takes for a problem on a GPU: rows of JSON lines, made once per GPU and shipped with the data.

`data/baselines/<gpu>/*.jsonl` holds them. A line is one problem in one precision at one size, sampled in one sitting.
Times of modes that were sampled later stand in later lines; `read_times` puts together what belongs together.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.evaluation.results import Conditions
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.paths import data_dir
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import reference_digest, size_digest
from kernelblaster.storage.records import read_records

TimesKey = tuple[str, str, Precision, str]
"""GPU, problem, precision, workload."""


EXPOSED_SHARE = 0.1
"""Of samples whose launch was not hidden; where there are more, samples are taken again."""
HOST_BOUND = 0.5
"""Share of exposed samples from which on a time is the host's and not the GPU's."""


class TimesAgain(StrEnum):
    """What is timed once more although it has a row."""

    FAILED = "failed"
    """Modes without a time."""
    EXPOSED = "exposed"
    """Rows with a mode whose launches were often not hidden."""
    ALL = "all"


class TorchSettings(BaseModel):
    """What decides how PyTorch computes."""

    cuda: str | None
    cudnn: int | None
    triton: str | None
    tf32_matmul: bool
    tf32_cudnn: bool
    fp16_reduced_precision_reduction: bool


class ModeTime(BaseModel):
    """One mode of PyTorch, in microseconds: medians with 95 % bootstrap intervals.

    `us` is device time of the whole call with a cold L2, its launch hidden; `wall_us` is from the call on an idle GPU
    until the device is idle again, launch and wait included.
    """

    model_config = ConfigDict(frozen=True)

    us: float
    low_us: float
    high_us: float
    samples: int
    wall_us: float
    wall_low_us: float
    wall_high_us: float
    launch_us: float | None
    """Host time of a launch, the longest of a few."""
    exposed: int = 0
    """Samples whose launch took longer than what should hide it; none are left out."""
    graph: bool = False
    """Whether `us` is of a CUDA graph of the same launches, which the host issues too slowly to be hidden."""

    @property
    def exposed_share(self) -> float:
        """Of the samples, those whose launch was not hidden."""
        return self.exposed / self.samples if self.samples else 0.0

    @property
    def host_bound(self) -> bool:
        """Whether it is the time in which the host launches, rather than that in which the GPU computes."""
        return self.exposed_share > HOST_BOUND


class PytorchTimes(BaseModel):
    """PyTorch on one problem, precision, size and GPU."""

    model_config = ConfigDict(frozen=True)

    format: Literal["kernelblaster-pytorch-times-1"] = "kernelblaster-pytorch-times-1"
    problem: str
    name: str
    precision: Precision
    workload: str
    digest: str
    """Of what the reference says of this size (`problems.reference.size_digest`); of the whole in older records."""
    gpu: str
    driver: str | None
    torch: str
    settings: TorchSettings | None
    """None where the process ended before it could say."""
    cover_us: float
    """How long the GPU was kept busy before each call, at least; the same for all modes."""
    conditions: Conditions | None
    floor_us: float | None
    """Roofline floor on that GPU, see `evaluation.roofline`."""
    attainable_us: float | None = None
    """What a good kernel reaches there, see `evaluation.attainable`."""
    times: Mapping[TorchMode, ModeTime]
    failures: Mapping[TorchMode, str] = {}
    """Why a mode has no time."""
    seconds: float
    """That the row took, compilation included."""
    at: float
    """Unix time."""

    @property
    def key(self) -> TimesKey:
        """What it holds the times of."""
        return (self.gpu, self.problem, self.precision, self.workload)

    @property
    def best(self) -> tuple[TorchMode, ModeTime] | None:
        """The mode with the least device time; None where all failed.

        One whose time is the host's comes behind all others: a best one that is `host_bound` tells that all are.
        """
        return min(self.times.items(), key=lambda found: (found[1].host_bound, found[1].us), default=None)

    def settled(self, again: TimesAgain | None) -> frozenset[TorchMode]:
        """Modes that are not timed once more."""
        if again is TimesAgain.ALL:
            return frozenset()
        if again is TimesAgain.EXPOSED and any(time.exposed_share > EXPOSED_SHARE for time in self.times.values()):
            return frozenset()  # all modes, in one sitting
        return frozenset(self.times if again is TimesAgain.FAILED else {*self.times, *self.failures})

    def joined(self, later: PytorchTimes) -> PytorchTimes:
        """With what a later line says; all is replaced where reference, PyTorch or driver are others by then.

        A later line of the same reference without times replaces none: it tells of failures alone.
        """
        measured_elsewhere = bool(later.times) and (self.torch, self.driver) != (later.torch, later.driver)
        if self.digest != later.digest or measured_elsewhere:
            return later
        failures = {mode: why for mode, why in self.failures.items() if mode not in later.times}
        return (later if later.times else self).model_copy(
            update={
                "times": {**self.times, **later.times},
                "failures": {
                    mode: why for mode, why in {**failures, **later.failures}.items() if mode not in self.times
                },
                "seconds": self.seconds + later.seconds,
            }
        )


def describes(row: PytorchTimes, problem: Problem) -> bool:
    """Whether times are of a problem's present reference. Raises ProblemError where there is none."""
    return row.digest in (size_digest(problem, row.workload), reference_digest(problem))


def read_times(paths: Iterable[Path]) -> dict[TimesKey, PytorchTimes]:
    """What files of times hold, lines of the same key joined. Raises MachineError for a damaged line."""
    found: dict[TimesKey, PytorchTimes] = {}
    for path in paths:
        for times in read_records(path, PytorchTimes):
            known = found.get(times.key)
            found[times.key] = times if known is None else known.joined(times)
    return found


@cache
def shipped_times() -> Mapping[tuple[str, str], Sequence[PytorchTimes]]:
    """All times that come with the data, by problem and size. Raises MachineError for a damaged file."""
    found: dict[tuple[str, str], list[PytorchTimes]] = {}
    for row in read_times(sorted((data_dir() / "baselines").glob("*/*.jsonl"))).values():
        found.setdefault((row.problem, row.workload), []).append(row)
    return found


def times_of(problem: Problem, workload: str) -> list[PytorchTimes]:
    """Shipped times of a problem's present reference at one size, on every GPU and in every precision."""
    rows = shipped_times().get((str(problem.id), workload), ())
    return [row for row in rows if describes(row, problem)]


def times_on(facts: DeviceFacts, problem: Problem, precision: Precision, workload: str) -> PytorchTimes | None:
    """Shipped times of this very GPU; None where there are none, and for a GPU that is emulated."""
    if facts.kind is not DeviceKind.CUDA:
        return None
    rows = times_of(problem, workload)
    return next((row for row in rows if (row.gpu, row.precision) == (facts.name, precision)), None)


def torch_settings() -> TorchSettings:
    """Of this process."""
    import torch

    matmul = torch.backends.cuda.matmul
    try:
        triton = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        triton = None
    return TorchSettings(
        cuda=torch.version.cuda,
        cudnn=torch.backends.cudnn.version(),
        triton=triton,
        tf32_matmul=matmul.allow_tf32,
        tf32_cudnn=torch.backends.cudnn.allow_tf32,
        fp16_reduced_precision_reduction=bool(matmul.allow_fp16_reduced_precision_reduction),
    )
