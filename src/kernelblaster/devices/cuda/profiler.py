"""Profiles one call of a candidate: with ncu, else by events with a warning that says why.

ncu, CUDA's start under it and the loading of inputs take longer than the replays of the call. So the program is started
early and waits for its command while the candidate is verified and timed.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kernelblaster.devices.base import AS_DRAWN, Build, Job, KernelProfile, Profile, ProfileSource, Session
from kernelblaster.devices.batch import BatchProgram
from kernelblaster.devices.cuda.ncu import PERMISSION_CURE, NcuFailure, ncu_command, parse_csv, unknown_metrics
from kernelblaster.devices.metrics import Metric, totals
from kernelblaster.devices.sandbox import Limits, Scratch

_FALLBACK_SAMPLES = 5


@dataclass
class Counters:
    """What ncu can be asked for on this machine. Shared by all profilers of a device.

    Attributes:
        ncu: its path; None where it is not installed.
        unsupported: metrics that it does not know for this GPU, found out as it says so.
    """

    ncu: Path | None
    unsupported: frozenset[str] = field(default=frozenset())

    def names(self) -> list[str]:
        """Metrics to ask for."""
        return [metric.value for metric in Metric if metric.value not in self.unsupported]


class Opens(Protocol):
    """What starts a candidate's process without a profiler."""

    def open(self, build: Build, job: Job, *, timeout_s: float) -> Session: ...


class CudaProfiler:
    """Satisfies `devices.base.Profiler`.

    Args:
        device: times the call where ncu cannot.
        counters: what ncu can be asked for.
        build: the candidate.
        job: tensors, sizes, scalars.
        limits: of the candidate's process.
        timeout_s: of each request.
    """

    def __init__(
        self, device: Opens, counters: Counters, build: Build, job: Job, *, limits: Limits, timeout_s: float
    ) -> None:
        self._device = device
        self._counters = counters
        self._build = build
        self._job = job
        self._limits = limits
        self._timeout_s = timeout_s
        self._started = ExitStack()
        self._waiting: BatchProgram | None = None

    def __enter__(self) -> Self:
        if self._counters.ncu is not None:
            self._log = self._started.enter_context(Scratch()) / "ncu.csv"
            self._waiting = self._started.enter_context(self._program(self._counters.ncu))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._started.close()

    def settle(self) -> None:
        """Wait until the program has loaded its inputs; one that never does shows when it is asked."""
        if self._waiting is not None:
            self._waiting.settle(self._timeout_s)

    def collect(self) -> Profile:
        """Counters of one warmed call through ncu, else its time by events with a warning. Raises RunFailure."""
        if self._counters.ncu is None or self._waiting is None:
            return self._by_events("ncu is not installed: times only")
        try:
            kernels = self._by_ncu(self._counters.ncu, self._waiting)
        except NcuFailure as failure:
            cure = f"; cure: {PERMISSION_CURE}" if failure.permission else ""
            return self._by_events(f"{failure.reason}{cure}")
        return Profile(source=ProfileSource.NCU, kernels=kernels, totals=totals(kernels))

    def _by_ncu(self, ncu: Path, waiting: BatchProgram) -> list[KernelProfile]:
        """Kernel profiles. A metric this ncu does not know is left out for good. Raises NcuFailure, RunFailure."""
        text = self._text(waiting)
        unknown = unknown_metrics(text) - self._counters.unsupported
        if unknown:
            self._counters.unsupported |= unknown
            self._log.unlink(missing_ok=True)
            with self._program(ncu) as again:
                text = self._text(again)
        return parse_csv(text)

    def _program(self, ncu: Path) -> BatchProgram:
        # ncu writes to a file: many launches of many metrics outgrow the kept tail of an output.
        command = [*ncu_command(ncu, self._counters.names()), "--log-file", str(self._log)]
        return BatchProgram(self._build, self._job, command, limits=self._limits)

    def _text(self, program: BatchProgram) -> str:
        result = program.finish(["profile"], self._timeout_s)
        text = self._log.read_text(errors="replace") if self._log.exists() else result.stdout_tail
        if result.failure is not None and "==ERROR==" not in text:
            raise result.failure
        return text

    def _by_events(self, warning: str) -> Profile:
        with self._device.open(self._build, self._job, timeout_s=self._timeout_s) as session:
            session.call(0)
            samples = session.sample([AS_DRAWN] * _FALLBACK_SAMPLES)
        found = {Metric.DURATION.value: statistics.median(sample.device_us for sample in samples) * 1e3}
        if len(self._build.resources) == 1:
            found[Metric.REGISTERS_PER_THREAD.value] = float(self._build.resources[0].registers)
        return Profile(source=ProfileSource.EVENTS, kernels=[], totals=found, warnings=[warning])
