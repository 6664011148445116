"""How starting kernels were judged: one line of JSON per problem, precision, size, device and state of its files."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Verdict
from kernelblaster.paths import data_dir
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.storage.records import read_records

PROBLEM_FAULT = "problem_error"
"""Stands for the verdict where the problem itself, not its kernel, is at fault."""
MEMORY_FULL = "memory_full"
"""Stands for the verdict where the GPU's memory does not suffice."""
LOST = "lost"
"""Stands for the verdict where the device failed, or the process that judged died or took too long."""
SHIPPED = "starts"
"""Folder of outcomes below `data/baselines/<gpu>`."""
_PASSING = (MEMORY_FULL, LOST)
"""What the state of the machine brought about, and neither the problem nor its kernel."""


class CheckAgain(StrEnum):
    """Which outcomes are judged again although nothing has changed."""

    REFUSED = "refused"
    """Every start that was not correct."""
    ALL = "all"


class CheckRecord(BaseModel):
    """How the starting kernel of a problem was judged once.

    Times are in microseconds, of the whole call with a cold L2; None where it is not correct.
    """

    problem: str
    name: str
    precision: Precision
    workload: str
    device: str
    device_kind: DeviceKind
    digest: str
    """Of the problem's files, as they were judged."""
    verdict: str
    """A `Verdict`, `problem_error`, `memory_full` or `lost`."""
    reason: str = ""
    hint: str = ""
    """What to do about a fault of the problem."""
    median_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    floor_us: float | None = None
    attainable_us: float | None = None
    """What a well-written kernel is expected to reach, see `evaluation.attainable`."""
    modelled: bool | None = None
    budget_ratio: float | None = None
    """Worst error over its budget, of all input sets; at most 1 for a correct kernel."""
    isolation: str | None = None
    judge: str | None = None
    """The judge's version (`evaluation.judge_version`); None in records of earlier releases."""
    stages: dict[str, float] = {}
    """Wall seconds of each stage, see `Evaluation.seconds`; empty in records of earlier releases."""
    warnings: list[str] = []
    """What the judge warned of."""
    seconds: float
    """Wall time of the judgement, compilation included where nothing was compiled ahead."""
    at: float
    """Unix time."""

    @property
    def title(self) -> str:
        """`level1/023 Softmax`; of a problem of one's own its name."""
        return self.name if self.problem == self.name else f"{self.problem} {self.name}"

    @property
    def passed(self) -> bool:
        """Whether the kernel was correct."""
        return self.verdict == Verdict.CORRECT

    def settled(self, judge: str, again: CheckAgain | None) -> bool:
        """Whether it stands, rather than being judged once more by a judge of this version.

        What only the state of the machine brought about does not, nor does a refusal by another version.
        """
        if again is CheckAgain.ALL or self.verdict in _PASSING:
            return False
        return self.passed or (again is None and self.judge == judge)

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What it is the outcome of: problem, precision, workload, device, digest."""
        return (self.problem, self.precision, self.workload, f"{self.device_kind} {self.device}", self.digest)


def read_checks(path: Path) -> list[CheckRecord]:
    """The newest outcome of each problem, precision, workload and device. Raises MachineError for a damaged file."""
    newest: dict[tuple[str, ...], CheckRecord] = {}
    for record in read_records(path, CheckRecord):
        newest.pop(record.key[:4], None)
        newest[record.key[:4]] = record
    return list(newest.values())


@cache
def shipped_checks() -> tuple[CheckRecord, ...]:
    """Times of starting kernels on GPUs that come with the data. Raises MachineError for a damaged file."""
    files = sorted((data_dir() / "baselines").glob(f"*/{SHIPPED}/*.jsonl"))
    return tuple(record for path in files for record in read_checks(path))


def problem_digest(problem: Problem, source: str) -> str:
    """Of reference, harness and a kernel."""
    state = hashlib.sha256()
    for data in (problem.reference_path.read_bytes(), problem.driver_path.read_bytes(), source.encode()):
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:16]
