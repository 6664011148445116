"""The summary of a run: one row per problem, written to `summary.json` and printed as the final table."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import ExitCode, UsageError
from kernelblaster.evaluation.results import Comparison, Timing
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.workload import WORKLOAD_KEYS


class ProblemSummary(BaseModel):
    """One row of the final table."""

    problem: str
    name: str
    status: OutcomeStatus
    reason: str = ""
    hint: str = ""
    """What to do about it; empty when there is nothing to advise."""
    start: Timing | None = None
    """Of the starting kernel, timed before the search; None when it could not be."""
    comparison: Comparison | None = None
    """Final kernel against the start, measured again after the search; None when nothing beat the start."""
    workload: Annotated[str | None, Field(validation_alias=WORKLOAD_KEYS)] = None
    """Workload that was timed; None when the start was not evaluated."""
    outputs_judged: bool = True
    """Whether outputs of that workload were judged, see `Evaluation`."""
    unjudged: list[str] = []
    """Declared sizes at which outputs were not judged; empty where nothing was, and in files of earlier versions."""
    weakly_verified: bool = False
    """Judged by the problem's own libtorch driver, see `Evaluation`."""
    recalled_speedup: float | None = None
    """What of the speed-up the kernel brought that was recalled from the knowledge base; None where none was."""
    verdicts: dict[str, int] = {}
    """Candidates by verdict."""
    transitions: int = 0
    final_kernel: Path | None = None
    pytorch_us: dict[str, float] = {}
    """As in `ProblemOutcome`."""
    directory: Path

    @property
    def fastest_pytorch(self) -> tuple[str, float] | None:
        """The fastest of PyTorch's modes and its time in microseconds; None where nobody has measured any."""
        return min(self.pytorch_us.items(), key=lambda timed: timed[1], default=None)

    @property
    def attainable_us(self) -> float | None:
        """What a well-written kernel is expected to reach; None where that is not known."""
        return next((one.attainable_us for one in self.timings if one.attainable_us is not None), None)

    @property
    def title(self) -> str:
        """`level1/023 Softmax`; of a problem of one's own its name."""
        return self.name if self.problem == self.name else f"{self.problem} {self.name}"

    @property
    def searched_speedup(self) -> float:
        """What replies of a model brought: the speed-up over the recalled kernel, or over the start; 1 for nothing."""
        return self.comparison.speedup / (self.recalled_speedup or 1.0) if self.comparison else 1.0

    @property
    def timings(self) -> list[Timing]:
        """All there are."""
        compared = [self.comparison.baseline, self.comparison.candidate] if self.comparison else []
        return [*([self.start] if self.start else []), *compared]


class Spending(BaseModel):
    """Model calls of a run, from the ledger."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float | None = None
    """None when a price is unknown."""
    estimated: bool = False


class RunSummary(BaseModel):
    """Everything the final table and `--json` show."""

    format: str = "kernelblaster-summary-1"
    run: str
    """Unique name of the run, over all its starts; the names of its searches begin with it."""
    device: DeviceFacts
    precision: Precision
    model: str
    model_kind: str
    problems: list[ProblemSummary]
    spending: Spending
    """Over all starts of the run."""
    spending_of_start: Spending | None = None
    """By the latest start alone; None in summaries of earlier versions."""
    knowledge_base: Path
    directory: Path
    report: Path | None = None
    seconds: float
    stopped: str | None = None
    """Why the run ended early; None when every problem was finished."""
    pending_requests: list[Path] = []
    ablated: list[str] = []
    """Parts of the search that were switched off."""
    warnings: list[str] = []
    """What of the settings did not have the effect that one may expect, in sentences."""

    @property
    def emulated(self) -> bool:
        """Whether every time in here comes from a model of a GPU."""
        return self.device.kind is DeviceKind.EMULATED

    @property
    def sampled(self) -> str:
        """What of the problems was executed and judged in part, in a sentence; empty when nothing was."""
        partly = [row for row in self.problems if not row.outputs_judged]
        if not partly:
            return ""
        timings = [timing for row in partly for timing in row.timings]
        least = min((timing.executed_share for timing in timings), default=1.0)
        share = f"; times are modelled from a sample of the blocks, {least:.2g} at least" if least < 1 else ""
        return f"size {partly[0].workload} was timed, outputs were judged at smaller sizes alone{share}"

    @property
    def unjudged(self) -> str:
        """At which declared sizes that were not timed no output was judged, in a sentence; empty when all were."""
        rows = [(size, row) for row in self.problems for size in row.unjudged if size != row.workload]
        counts = Counter(size for size, _ in rows)
        if not counts:
            return ""
        told = [size if len(self.problems) == 1 else f"{size} (of {count})" for size, count in counts.items()]
        return f"not judged at these declared sizes, where a kernel may be wrong: {', '.join(told)}"

    @property
    def weak(self) -> str:
        """Which problems were judged by drivers of their own, in a sentence; empty when none was."""
        names = ", ".join(row.problem for row in self.problems if row.weakly_verified)
        return f"weakly verified, each by its own libtorch driver: {names}" if names else ""

    @property
    def geometric_mean(self) -> float | None:
        """Geometric mean speed-up over the start; without improvement counts as 1. None when nothing was searched."""
        logs = [math.log(p.comparison.speedup) if p.comparison else 0.0 for p in self.searched]
        return math.exp(sum(logs) / len(logs)) if logs else None

    @property
    def searched(self) -> list[ProblemSummary]:
        """The problems for which candidates were judged, or would have been, had the start been correct."""
        silent = (OutcomeStatus.WAITING, OutcomeStatus.UNANSWERED, OutcomeStatus.INTERRUPTED)
        return [problem for problem in self.problems if problem.status not in silent]

    @property
    def exit_code(self) -> ExitCode:
        """Worst news first: interrupted, waiting, budget, failure, no answer, not executed, no improvement, fine.

        A problem without improvement is no bad news beside one with an improvement; one that was not searched is.
        """
        states = {p.status for p in self.problems}
        if OutcomeStatus.INTERRUPTED in states:
            return ExitCode.INTERRUPTED
        if OutcomeStatus.WAITING in states:
            return ExitCode.WAITING
        if OutcomeStatus.BUDGET in states:
            return ExitCode.BUDGET
        if OutcomeStatus.FAILED in states:
            return ExitCode.FAILED
        if OutcomeStatus.UNANSWERED in states:
            return ExitCode.MODEL
        if OutcomeStatus.NOT_EMULATABLE in states:
            return ExitCode.MACHINE
        if OutcomeStatus.IMPROVED not in states:
            return ExitCode.NO_IMPROVEMENT
        return ExitCode.OK


def read_summary(path: Path) -> RunSummary:
    """Read `summary.json`. Raises UsageError when it is missing or damaged."""
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist",
            hint="give the directory that `run` named; one that was cut off writes it when it is continued",
        )
    try:
        return RunSummary.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path} is damaged", hint="give the same `run` command again; it writes it anew") from error
