"""Profiles one call of a candidate: with ncu, else by events with a warning that says why.

ncu, CUDA's start under it and the loading of inputs take longer than the replays of the call, and so does the first
kernel that ncu profiles. So the program is started while the candidate is being compiled, profiles an empty kernel, and
then waits for its command while the candidate is verified and timed. What ncu keeps of the call is read by further
starts of ncu, some seconds of the CPU that leave the GPU to others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import COUNTED, Candidate, Job
from kernelblaster.devices.cuda.ncu import (
    MOST_LAUNCHES,
    NO_KERNEL,
    PERMISSION_ERROR,
    PERMISSION_HINT,
    TIMES,
    WARMUP_KERNEL,
    NcuFailure,
    ncu_command,
    parse_csv,
    unknown_metrics,
)
from kernelblaster.devices.cuda.ncu_report import page_command, parse_lines, parse_rules, report_arguments
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.harness.process import HarnessProcess
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profilers import EventProfiler, Opens
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, totals
from kernelblaster.errors import DeviceError
from kernelblaster.sandbox.isolation import FileView, Isolation, strongest_working, weaker
from kernelblaster.sandbox.limits import Limits
from kernelblaster.sandbox.process import Scratch, clean_environment, run, strongest

LONG_S = 5.0
"""Counting a call takes less, or its launches may be too many: they are looked up while it can still be timed."""
PAGE_TIMEOUT_S = 60.0
"""For ncu to print a page of a report."""
_TABLE = '"Kernel Name"'
"""In the head of every table of kernels that ncu prints."""
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


class CudaProfiler:
    """Satisfies `devices.base.Profiler`.

    Args:
        device: times the call where ncu cannot.
        counters: what ncu can be asked for.
        candidate: what is profiled.
        job: tensors, sizes, scalars.
        view: what ncu and the candidate's program see beside the tensors.
        limits: of the candidate's process, its isolation among them.
        timeout_s: of each request.
    """

    def __init__(
        self,
        device: Opens,
        counters: Counters,
        candidate: Candidate,
        job: Job,
        *,
        view: FileView,
        limits: Limits,
        timeout_s: float,
    ) -> None:
        self._device = device
        self._counters = counters
        self._candidate = candidate
        self._job = job
        self._view = view
        self._limits = limits
        self._timeout_s = timeout_s
        self._started = ExitStack()
        self._waiting: HarnessProcess | None = None

    def __enter__(self) -> Self:
        if self._counters.ncu is not None:
            self._log = self._started.enter_context(Scratch()) / "ncu.csv"
            self._report = self._log.with_name("call.ncu-rep")
            self._level = self._counters.isolation or self._limits.isolation or strongest().level
            self._waiting = self._started.enter_context(self._program(self._command(self._counters.ncu), self._level))
            self._waiting.begin_warm_up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._started.close()

    def settle(self) -> None:
        """Wait until the program is idle; one that never is shows when it is asked."""
        if self._waiting is not None:
            with contextlib.suppress(RunFailure, DeviceError):
                self._waiting.settle()

    def collect(self) -> Callable[[], Profile]:
        """Have ncu count one warmed call, else time it by events with a warning. Raises RunFailure."""
        ncu = self._counters.ncu
        if ncu is None:
            return self._by_events("ncu is not installed: times only")
        try:
            began = time.monotonic()
            text = self._by_ncu(ncu)
            times = ""
            if time.monotonic() - began > LONG_S:
                text = self._with_table(ncu, text)
                times = self._times(ncu) if len(_own(parse_csv(text))) >= MOST_LAUNCHES else ""
        except NcuFailure as failure:
            hint = f"; hint: {PERMISSION_HINT}" if failure.permission else ""
            return self._by_events(f"{failure.reason}{hint}")
        except RunFailure as failure:
            if failure.kind is not RunFailureKind.TIMEOUT:
                raise
            return self._by_events(f"under ncu the call took too long: {failure.reason}")
        return lambda: self._read(ncu, text, times)

    def _by_ncu(self, ncu: Path) -> str:
        """What ncu writes of a call; until it is known to work, under weaker isolation where it fails.

        The empty kernel in a profile proves that ncu works, whatever the candidate does. Raises NcuFailure, RunFailure.
        """
        counters, wanted = self._counters, self._limits.isolation or strongest().level
        levels = [counters.isolation] if counters.isolation is not None else weaker(wanted)
        try:
            found = strongest_working(levels, lambda level: self._counted(ncu, level), NcuFailure)
        except NcuFailure as failure:
            if failure.permission:
                counters.isolation = wanted
            raise
        counters.isolation = found.level
        if found.refused:
            counters.warning = f"profiled under weaker isolation ({found.level}): under {wanted} {found.reason}"
        if _TABLE in found.result and not _own(parse_csv(found.result)):
            raise NcuFailure(NO_KERNEL)
        return found.result

    def _counted(self, ncu: Path, level: Isolation) -> str:
        """What ncu writes of a call of which it prints counts or keeps them in a report.

        A metric this ncu does not know is left out for good. Raises NcuFailure, RunFailure.
        """
        text = self._text(ncu, level)
        unknown = unknown_metrics(text) - self._counters.unsupported
        if unknown:
            self._counters.unsupported |= unknown
            text = self._text(ncu, level)
        if _TABLE in text or not self._report.exists() or PERMISSION_ERROR in text:
            parse_csv(text)
        return text

    def _times(self, ncu: Path) -> str:
        """What ncu writes of all launches of a call, by another program. Raises NcuFailure, RunFailure."""
        log = self._log.with_name("times.csv")
        command = [*ncu_command(ncu, TIMES), "--log-file", str(log)]
        with self._program(command, self._counters.isolation or self._level) as program:
            program.begin_warm_up()
            return self._finish(program, log)

    def _read(self, ncu: Path, text: str, times: str = "") -> Profile:
        """The profile of what was counted, and of the times of all launches where those are more.

        Raises RunFailure where ncu cannot print its own report.
        """
        warnings = [self._counters.warning] if self._counters.warning else []
        try:
            kernels = _own(self._kernels(ncu, text))
            counted = len(kernels)
            if times:
                kernels += _own(parse_csv(times, TIMES))[counted:]
            if counted >= MOST_LAUNCHES:
                warnings.append(
                    f"the first {counted} launches are counted in full, of {len(kernels) - counted} others the times"
                )
        except NcuFailure as failure:
            raise RunFailure(RunFailureKind.RUNTIME, failure.reason) from failure
        if not kernels:
            raise RunFailure(RunFailureKind.RUNTIME, NO_KERNEL)
        return Profile(source=ProfileSource.NCU, kernels=kernels, totals=totals(kernels), warnings=warnings)

    def _kernels(self, ncu: Path, text: str) -> list[KernelProfile]:
        """Kernel profiles, with rules and lines where ncu keeps a report that it can read. Raises NcuFailure."""
        if not self._report.exists():
            return parse_csv(text)
        # Each start of ncu takes a second. A version that keeps a report prints no table beside it.
        with ThreadPoolExecutor() as pool:
            raw = None if _TABLE in text else pool.submit(self._page, ncu, "raw")
            details, source = (pool.submit(self._page, ncu, page) for page in ("details", "source"))
            kernels = parse_csv(text + (raw.result() if raw else ""))
            rules, lines = parse_rules(details.result()), parse_lines(source.result(), kernels)
        for number, kernel in enumerate(kernels):
            kernel.rules, kernel.lines = rules.get(number, []), lines[number]
        return kernels

    def _with_table(self, ncu: Path, text: str) -> str:
        """What ncu writes of a call with its table of kernels, which a version that keeps a report leaves out."""
        return text if _TABLE in text or not self._report.exists() else text + self._page(ncu, "raw")

    def _page(self, ncu: Path, page: str) -> str:
        """A page of the report; empty when ncu fails. It needs no GPU, and sees the report alone."""
        output = self._report.with_suffix(f".{page}.csv")
        # A pipe keeps the end of what is printed alone: a page is longer.
        command = [*page_command(ncu, self._report, page), "--log-file", str(output)]
        run(
            command,
            timeout_s=PAGE_TIMEOUT_S,
            limits=replace(self._limits, forks=True),
            cwd=self._report.parent,
            environment=clean_environment(self._report.parent),
            view=self._view | FileView(writable=(self._report.parent,)),
        )
        return output.read_text(errors="replace") if output.exists() else ""

    def _command(self, ncu: Path) -> list[str]:
        # ncu writes to a file: many launches of many metrics outgrow the kept tail of an output.
        asked = [*ncu_command(ncu, self._counters.names(), launches=MOST_LAUNCHES), *report_arguments(self._report)]
        return [*asked, "--log-file", str(self._log)]

    def _program(self, command: list[str], level: Isolation) -> HarnessProcess:
        view = self._view | FileView(writable=(self._log.parent,), counters=True)
        limits = replace(self._limits, isolation=level)
        timeout_s = self._timeout_s
        return HarnessProcess(
            self._candidate, self._job, command, view=view, limits=limits, timeout_s=timeout_s, contain=False
        )

    def _text(self, ncu: Path, level: Isolation) -> str:
        """What ncu writes of one call, of the program that waits if that is under this isolation."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and level is self._level:
            return self._finish(waiting, self._log)
        self._log.unlink(missing_ok=True)
        self._report.unlink(missing_ok=True)
        with self._program(self._command(ncu), level) as program:
            program.begin_warm_up()
            return self._finish(program, self._log)

    def _finish(self, program: HarnessProcess, log: Path) -> str:
        failure: RunFailure | DeviceError | None = None
        try:
            program.load()
            program.profile(COUNTED)
            tail = program.quit().output
        except (RunFailure, DeviceError) as error:
            failure, tail = error, getattr(error, "log", "")
        text = log.read_text(errors="replace") if log.exists() else tail
        if failure is not None and _CONNECTED not in text and "==ERROR==" not in text:
            raise NcuFailure(f"ncu did not reach the program: {failure}")
        if failure is not None and "==ERROR==" not in text:
            raise failure
        return text

    def _by_events(self, warning: str) -> Callable[[], Profile]:
        return EventProfiler(self._device, self._candidate, self._job, self._timeout_s, warning).collect()


def _own(kernels: list[KernelProfile]) -> list[KernelProfile]:
    """The candidate's kernels: the harness' empty one comes first where it was profiled, too."""
    return kernels[1:] if kernels[0].name.partition("(")[0] == WARMUP_KERNEL else kernels
