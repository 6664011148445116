"""The file in which the emulator writes down what a candidate's process does: what of it is the emulator's own word.

The process holds the file open, and host code of the candidate runs in it. The harness, whose replies no candidate can
make, says how many bytes the emulator has written when a call is over; the file must have that length then, and what
comes later is left out.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.devices.emulated.translation import translated_errors
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from ptxemu.checks.findings import Finding, read_findings
from ptxemu.counters.record import CountedRecord
from ptxemu.counters.report import counted_report
from ptxemu.errors import CoreFailure

MOST_REPORT_BYTES = 64 << 20
"""Of what was counted of a call: tens of thousands of launches. Each becomes objects that take ten times as much."""
_MARKS = ("start", "stop")
"""Of the one profile that the harness makes."""


@dataclass(frozen=True)
class OwnReport:
    """A report that the emulator writes, and nobody else.

    Attributes:
        path: of the file.
        variable: of the environment that names it to the emulator.
    """

    path: Path
    variable: str

    def check(self, told: int) -> None:
        """Raise RunFailure unless it holds as many bytes as the emulator has written."""
        _bounded(told)
        found = self._size()
        if found != told:
            reason = (
                f"the emulator has reported {told} bytes, and its file holds {found}: the candidate meddles with it"
            )
            raise RunFailure(RunFailureKind.POLICY, reason)

    def cut(self, told: int) -> None:
        """Leave out what the process has added while it ended."""
        if self._size() > told:
            os.truncate(self.path, told)

    def records(self) -> list[CountedRecord]:
        """Launches and transfers of the profiled call.

        Raises NotSampled, RunFailure where counting was stopped or begun by another than the harness or has seen
        nothing, DeviceError.
        """
        with translated_errors():
            report = counted_report(self.path, cut_off=False)
        if report.marks != _MARKS:
            reason = f"the candidate starts or stops the profiler: {', '.join(report.marks) or 'it never began'}"
            raise RunFailure(RunFailureKind.POLICY, reason)
        if not report.records:
            raise RunFailure(RunFailureKind.POLICY, "the emulator has seen nothing of the call: no launch and no copy")
        return list(report.records)

    def look_for_a_reason(self) -> None:
        """Of a call that has failed: raise NotSampled where a sample was why, RunFailure where it did too much."""
        _bounded(self._size())
        with suppress(CoreFailure):  # it has failed, whatever stands there
            counted_report(self.path, cut_off=True)

    def findings(self) -> list[Finding]:
        """What the emulator's checks have found. Raises DeviceError."""
        with translated_errors():
            return read_findings(self.path, cut_off=False)

    def findings_of_a_failure(self) -> list[Finding]:
        """The same of a call that has failed; none where something else stands there."""
        try:
            return read_findings(self.path, cut_off=True)
        except CoreFailure:
            return []

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0


def _bounded(size: int) -> None:
    """A candidate chooses how often it launches."""
    if size > MOST_REPORT_BYTES:
        raise RunFailure(RunFailureKind.RUNTIME, f"one call does more than is written down: {size} bytes of it")
