"""`baseline.json`: PyTorch timed beside the start and the final kernel of a search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.evaluation.results import Timing
from kernelblaster.evaluation.timing.pytorch_times import TorchSettings
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.workload import WORKLOAD_KEYS
from kernelblaster.storage.atomic import write_atomically

BASELINE = "baseline.json"


class Ratio(BaseModel):
    """How many times faster one implementation is than another, with its 95 % bootstrap interval."""

    speedup: float
    low: float
    high: float


class WallTime(BaseModel):
    """Microseconds of one call on an idle GPU, from the call until the device is idle: launch and wait included."""

    median_us: float
    low_us: float
    high_us: float
    samples: int


class LaunchCover(BaseModel):
    """How the launches of all implementations were hidden; times in microseconds."""

    cover_us: float
    """How long the GPU was kept busy before each call, at least; the same for all."""
    launch_us: dict[str, float]
    """Implementation -> host time of one launch, the longest of a few."""
    exposed: dict[str, int]
    """Implementation -> samples whose launch took longer than that after all; none are left out."""


class BaselineRow(BaseModel):
    """One problem: every implementation's time, and the first kernel against each of the others."""

    format: str = "kernelblaster-baseline-1"
    problem: str
    name: str
    precision: Precision
    workload: Annotated[str, Field(validation_alias=WORKLOAD_KEYS)]
    device: DeviceFacts
    torch: str
    timings: dict[str, Timing]
    """Implementation -> time; samples are left out."""
    final_against: dict[str, Ratio]
    """Implementation -> final kernel's speed-up over it; empty when there is no final kernel."""
    failures: dict[str, str]
    """Implementation -> why it has no time."""
    walls: dict[str, WallTime] = {}
    cover: LaunchCover | None = None
    """None in files of before launches of PyTorch were hidden: their times of PyTorch hold host time."""
    settings: TorchSettings | None = None


def keep_baseline(directory: Path, row: BaselineRow) -> None:
    """Keep a row in the directory of the search whose kernels were timed. Raises OSError."""
    write_atomically(directory / BASELINE, row.model_dump_json(indent=1))


def find_baseline(directory: Path) -> BaselineRow | None:
    """The row of a search; None when nobody has timed it, or another version wrote it."""
    try:
        return BaselineRow.model_validate_json((directory / BASELINE).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
