"""The processes that meet at the timed size: the candidate's, its rival's, and the candidate's under a profiler."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import Build, CallResult, Candidate, Device, Profile, Profiler, RunFailure, Session
from kernelblaster.evaluation.bench import Bench
from kernelblaster.evaluation.inputs import InputSet, InputStore
from kernelblaster.evaluation.process import CandidateProcess
from kernelblaster.evaluation.timing import Rival, RivalFailed


@dataclass(frozen=True)
class KeptCall:
    """What a timed call left: of which variant it was, what it did to its inputs, and where its output lies."""

    variant: int
    result: CallResult
    output: Path


class Contest:
    """Candidate and rival at the timed size. A context manager: processes and files are gone on exit.

    Args:
        device: where they run; the caller holds it.
        inputs: owns the directory of the benches.
        drawn: the timed input set, lent for as long as this lives.
        timeout_s: of each request to a process.
        sample: warp instructions of a launch that are enough where outputs are not judged, see `Job`.
    """

    def __init__(self, device: Device, inputs: InputStore, drawn: InputSet, timeout_s: float, sample: int = 0) -> None:
        self.drawn = drawn
        self._device = device
        self._inputs = inputs
        self._timeout_s = timeout_s
        self._sample = sample
        self._rival: CandidateProcess | None = None
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

    def start(self, candidate: Candidate, rival: Build | None) -> None:
        """Begin to start the processes, the rival's if there is one."""
        self._candidate = self._begin(candidate)
        if rival is not None:
            self._rival = self._begin(rival)

    def start_profiler(self, candidate: Candidate) -> None:
        """Begin to start the candidate under a profiler, where it waits to be asked."""
        bench = self._stack.enter_context(Bench(self._inputs.directory, self.drawn, self._sample))
        profiler = self._device.profiler(candidate, bench.job, timeout_s=self._timeout_s)
        self._profiler = self._stack.enter_context(profiler)

    def settle(self) -> None:
        """Wait until the profiler, if it was started, disturbs nobody."""
        if self._profiler is not None:
            self._profiler.settle()

    def profile(self, candidate: Candidate) -> Profile:
        """Counters of one call of the candidate, alone on the device. Raises RunFailure and DeviceError."""
        self._close_processes()
        if self._profiler is None:
            self.start_profiler(candidate)
        return self._profiler.collect()

    @property
    def bench(self) -> Bench:
        """Files of the candidate's process."""
        return self._candidate.bench

    def look(self, variant: int) -> None:
        """Keep what the candidate's last call, of this variant, left. Raises RunFailure and DeviceError."""
        result = self.candidate().fetch()
        self.kept.append(KeptCall(variant, result, self.bench.keep_output()))

    def candidate(self) -> Session:
        """The candidate's session. Raises RunFailure and DeviceError."""
        return self._candidate.session()

    def rival(self) -> Rival | None:
        """The rival's session, if it was given one. Raises RivalFailed and DeviceError."""
        if self._rival is None:
            return None
        try:
            return Rival(self._rival.session())
        except RunFailure as failure:
            raise RivalFailed(failure.reason) from failure

    def started(self) -> None:
        """Wait until candidate and rival have started, so that neither finds the GPU's memory taken by the other.

        How a start fails shows where its session is asked for. Raises DeviceError.
        """
        for process in self._processes:
            with suppress(RunFailure):
                process.session()

    def dismiss_rival(self) -> None:
        """End the rival's process: it must not run beside a candidate that is timed alone."""
        if self._rival is not None:
            self._rival.close()
            self._rival = None

    def retire(self) -> None:
        """Nothing more is called or timed: begin to end candidate and rival."""
        for process in self._processes:
            process.end()

    def _close_processes(self) -> None:
        """End candidate and rival, both at once, and wait until they are gone."""
        for process in self._processes:
            process.end()
        with ExitStack() as stack:
            for process in self._processes:
                stack.callback(process.close)
            self._processes.clear()

    def _begin(self, candidate: Candidate) -> CandidateProcess:
        bench = Bench(self._inputs.directory, self.drawn, self._sample)
        self._processes.append(CandidateProcess(self._device, candidate, bench, self._timeout_s))
        return self._processes[-1]
