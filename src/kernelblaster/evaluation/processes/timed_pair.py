"""The processes of one timed comparison: the candidate's, its baseline's, and the candidate's under a profiler."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from kernelblaster.devices.base import BatchSession, Build, CallResult, Candidate, Device, Profiler, Session
from kernelblaster.devices.failures import RunFailure
from kernelblaster.devices.profiles import Profile
from kernelblaster.evaluation.inputs.drawn import DrawnInputs
from kernelblaster.evaluation.processes.candidate_process import CandidateProcess
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.evaluation.timing.baseline_session import BaselineBatches, BaselineFailed, BaselineSession

_SOME_PERTURBATION = 1
_Drawn = TypeVar("_Drawn", bound=DrawnInputs)


@dataclass(frozen=True)
class KeptCall:
    """What a timed call left: of which perturbation it was, what it did to its inputs, and where its outputs lie."""

    perturbation: int
    result: CallResult
    outputs: dict[str, Path]


class TimedPair(Generic[_Drawn]):
    """Candidate and baseline at the timed size. A context manager: processes and files are gone on exit.

    Args:
        device: where they run; the caller holds it.
        directory: where workspaces are made.
        drawn: the timed input set, lent for as long as this lives.
        timeout_s: of each request to a process.
        instruction_budget: warp instructions of a launch that are enough where outputs are not judged, see `Job`.
    """

    def __init__(
        self, device: Device, directory: Path, drawn: _Drawn, timeout_s: float, instruction_budget: int = 0
    ) -> None:
        self.drawn = drawn
        self._device = device
        self._directory = directory
        self._timeout_s = timeout_s
        self._instruction_budget = instruction_budget
        self._baseline: CandidateProcess | None = None
        self._baseline_build: Build | None = None
        self._processes: list[CandidateProcess] = []
        self._profiler: Profiler | None = None
        self._stack = ExitStack()
        self.kept: list[KeptCall] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close_processes()
        finally:
            self._stack.close()

    def start(self, candidate: Candidate, baseline: Build | None) -> None:
        """Begin to start the processes, the baseline's if there is one."""
        self._candidate = self._begin(candidate)
        if baseline is not None:
            self._baseline, self._baseline_build = self._begin(baseline), baseline

    def start_profiler(self, candidate: Candidate) -> Profiler:
        """Begin to start the candidate under a profiler, where it waits to be asked."""
        workspace = self._stack.enter_context(Workspace(self._directory, self.drawn, self._instruction_budget))
        profiler = self._device.profiler(candidate, workspace.job, timeout_s=self._timeout_s)
        self._profiler = self._stack.enter_context(profiler)
        return self._profiler

    def start_profiler_last(self, candidate: Candidate) -> None:
        """End candidate and baseline, start the profiler, and wait until it disturbs nobody. Raises DeviceError."""
        self._close_processes()
        self.start_profiler(candidate).settle()

    def settle(self) -> None:
        """Wait until the profiler, if it was started, disturbs nobody."""
        if self._profiler is not None:
            self._profiler.settle()

    def profile(self, candidate: Candidate) -> Callable[[], Profile]:
        """Have one call of the candidate counted, alone on the device; what is returned reads the counts without it.

        Raises RunFailure and DeviceError.
        """
        self._close_processes()
        profiler = self._profiler or self.start_profiler(candidate)
        return profiler.collect()

    @property
    def workspace(self) -> Workspace:
        """Files of the candidate's process."""
        return self._candidate.workspace

    def look(self, perturbation: int) -> None:
        """Keep what the candidate's last call, of this perturbation, left. Raises RunFailure and DeviceError."""
        result = self.candidate().fetch()
        self.kept.append(KeptCall(perturbation, result, self.workspace.keep_outputs()))

    def candidate(self) -> Session:
        """The candidate's session. Raises RunFailure and DeviceError."""
        return self._candidate.session()

    def baseline(self) -> BaselineSession | None:
        """The baseline's session, if it was given one. Raises BaselineFailed and DeviceError."""
        if self._baseline is None:
            return None
        try:
            return BaselineSession(self._baseline.session())
        except RunFailure as failure:
            raise BaselineFailed(failure.reason) from failure

    def batches(self) -> tuple[BatchSession, BatchSession] | None:
        """Batches of candidate and baseline; None where there are none. Raises RunFailure, DeviceError."""
        if self._baseline is None:
            return None
        ours, theirs = self.candidate().batches(), self._baseline.session().batches()
        return (ours, BaselineBatches(theirs)) if ours is not None and theirs is not None else None

    def started(self) -> None:
        """Wait until candidate and baseline have started, so that neither finds the GPU's memory taken by the other.

        How a start fails shows where its session is asked for. Raises DeviceError.
        """
        for process in self._processes:
            with suppress(RunFailure):
                process.session()

    def dismiss_baseline(self) -> None:
        """End the baseline's process: it must not run beside a candidate that is timed alone."""
        if self._baseline is not None:
            self._baseline.close()
            self._baseline = None

    def baseline_runs_alone(self) -> bool:
        """Whether the baseline can be timed without the candidate beside it, which ends. Raises DeviceError."""
        self._close_processes()
        if self._baseline_build is None:
            return False
        process = self._begin(self._baseline_build)
        try:
            process.session().time_calls([_SOME_PERTURBATION])
        except RunFailure:
            return False
        return True

    def retire(self) -> None:
        """Nothing more is called or timed: begin to end candidate and baseline."""
        for process in self._processes:
            process.end()

    def _close_processes(self) -> None:
        """End candidate and baseline, both at once, and wait until they are gone."""
        for process in self._processes:
            process.end()
        with ExitStack() as stack:
            for process in self._processes:
                stack.callback(process.close)
            self._processes.clear()

    def _begin(self, candidate: Candidate) -> CandidateProcess:
        workspace = Workspace(self._directory, self.drawn, self._instruction_budget)
        self._processes.append(CandidateProcess(self._device, candidate, workspace, self._timeout_s))
        return self._processes[-1]
