"""Profiles one call of a candidate: with ncu, else by events with a warning that says why.

ncu, CUDA's start under it and the loading of inputs take longer than the replays of the call. So the program is started
early and waits for its command while the candidate is verified and timed.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kernelblaster.devices.base import AS_DRAWN, Build, Job, KernelProfile, Profile, ProfileSource, Session
from kernelblaster.devices.batch import BatchProgram
from kernelblaster.devices.cuda.ncu import PERMISSION_CURE, NcuFailure, ncu_command, parse_csv, unknown_metrics
from kernelblaster.devices.isolation import Isolation, View, weaker
from kernelblaster.devices.metrics import Metric, totals
from kernelblaster.devices.sandbox import Limits, Scratch, strongest

_FALLBACK_SAMPLES = 5
_CONNECTED = "==PROF=="
"""Begins what ncu says once it has a program in hand: what fails afterwards is not for lack of privileges."""


@dataclass
class Counters:
    """What ncu can be asked for on this machine. Shared by all profilers of a device.

    Attributes:
        ncu: its path; None where it is not installed.
        unsupported: metrics that it does not know for this GPU, found out as it says so.
        isolation: under which it is known to work, or known to get no counters under any; None until that is known.
        warning: why that is weaker than the isolation of candidates; empty when it is not.
    """

    ncu: Path | None
    unsupported: frozenset[str] = field(default=frozenset())
    isolation: Isolation | None = None
    warning: str = ""

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
        view: what ncu and the candidate's program see beside the tensors.
        limits: of the candidate's process, its isolation among them.
        timeout_s: of each request.
    """

    def __init__(
        self,
        device: Opens,
        counters: Counters,
        build: Build,
        job: Job,
        *,
        view: View,
        limits: Limits,
        timeout_s: float,
    ) -> None:
        self._device = device
        self._counters = counters
        self._build = build
        self._job = job
        self._view = view
        self._limits = limits
        self._timeout_s = timeout_s
        self._started = ExitStack()
        self._waiting: BatchProgram | None = None

    def __enter__(self) -> Self:
        if self._counters.ncu is not None:
            self._log = self._started.enter_context(Scratch()) / "ncu.csv"
            level = self._counters.isolation or self._limits.isolation
            self._waiting = self._started.enter_context(self._program(self._counters.ncu, level))
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
            return self._by_ncu(self._counters.ncu, self._waiting)
        except NcuFailure as failure:
            cure = f"; cure: {PERMISSION_CURE}" if failure.permission else ""
            return self._by_events(f"{failure.reason}{cure}")

    def _by_ncu(self, ncu: Path, waiting: BatchProgram) -> Profile:
        """What ncu counts; until it is known to work, under weaker isolation where it fails. Raises as `_kernels`."""
        if self._counters.isolation is not None:
            return self._profile(self._kernels(ncu, waiting, self._counters.isolation))
        first, *others = weaker(self._limits.isolation or strongest().level)
        try:
            kernels = self._kernels(ncu, waiting, first)
        except NcuFailure as failure:
            return self._by_ncu_under(ncu, others, failure)
        self._counters.isolation = first
        return self._profile(kernels)

    def _by_ncu_under(self, ncu: Path, levels: Sequence[Isolation], failure: NcuFailure) -> Profile:
        """What ncu counts under the first of these levels in which it works. Raises `failure` if there is none."""
        for level in levels:
            self._log.unlink(missing_ok=True)
            try:
                with self._program(ncu, level) as program:
                    kernels = self._kernels(ncu, program, level)
            except NcuFailure:
                continue
            self._counters.isolation = level
            wanted = self._limits.isolation
            self._counters.warning = f"profiled under weaker isolation ({level}): under {wanted} {failure.reason}"
            return self._profile(kernels)
        if failure.permission:
            self._counters.isolation = self._limits.isolation
        raise failure

    def _profile(self, kernels: list[KernelProfile]) -> Profile:
        warnings = [self._counters.warning] if self._counters.warning else []
        return Profile(source=ProfileSource.NCU, kernels=kernels, totals=totals(kernels), warnings=warnings)

    def _kernels(self, ncu: Path, waiting: BatchProgram, level: Isolation) -> list[KernelProfile]:
        """Kernel profiles. A metric this ncu does not know is left out for good. Raises NcuFailure, RunFailure."""
        text = self._text(waiting)
        unknown = unknown_metrics(text) - self._counters.unsupported
        if unknown:
            self._counters.unsupported |= unknown
            self._log.unlink(missing_ok=True)
            with self._program(ncu, level) as again:
                text = self._text(again)
        return parse_csv(text)

    def _program(self, ncu: Path, level: Isolation | None) -> BatchProgram:
        # ncu writes to a file: many launches of many metrics outgrow the kept tail of an output.
        command = [*ncu_command(ncu, self._counters.names()), "--log-file", str(self._log)]
        view = self._view | View(writable=(self._log.parent,), counters=True)
        limits = replace(self._limits, isolation=level)
        return BatchProgram(self._build, self._job, command, view=view, limits=limits)

    def _text(self, program: BatchProgram) -> str:
        result = program.finish(["profile"], self._timeout_s)
        text = self._log.read_text(errors="replace") if self._log.exists() else result.stdout_tail
        if result.failure is not None and _CONNECTED not in text and "==ERROR==" not in text:
            raise NcuFailure(f"ncu did not reach the program: {result.failure.reason}")
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
