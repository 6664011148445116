"""What a counted run reported: its launches and transfers, faults, and why a sample cannot stand for all blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ptxemu.counters.record import (
    CountedRecord,
    FaultRecord,
    HostFaultRecord,
    MarkRecord,
    MissingRecord,
    RefusedRecord,
    RunningRecord,
    UnsampledRecord,
    read_records,
)


class NotSampled(Exception):
    """A sample of blocks cannot stand for all of a call. `reason` names the kernel and what would go wrong."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class CountedReport:
    """What a program did, in order, and what went wrong on the device, whatever the program made of it."""

    records: tuple[CountedRecord, ...]
    faults: tuple[str, ...]
    """Of kernels: what happened, in which kernel and line."""
    missing: tuple[str, ...]
    """What the program asked the runtime for in vain."""
    refused: tuple[RefusedRecord, ...] = ()
    """Calls whose errors the program may have overlooked; only where they were asked for."""
    host_fault: HostFaultRecord | None = None
    """What its host code did that killed it."""
    running: RunningRecord | None = None
    """What it was doing when its time was up."""
    marks: tuple[str, ...] = ()
    """Where it has begun (`start`) and ended (`stop`) its profile, in order."""


def counted_report(path: Path, *, cut_off: bool) -> CountedReport:
    """A report file; see `read_records`.

    Raises:
        NotSampled: the core stopped because of what a sample had left out.
        CoreFailure: a line is not a record.
    """
    records: list[CountedRecord] = []
    faults: list[str] = []
    missing: list[str] = []
    refused: list[RefusedRecord] = []
    host_fault: HostFaultRecord | None = None
    running: RunningRecord | None = None
    marks: list[str] = []
    for record in read_records(path, cut_off=cut_off):
        match record:
            case UnsampledRecord():
                raise NotSampled(record.unsampled)
            case FaultRecord():
                faults.append(record.fault)
            case HostFaultRecord():
                host_fault = record
            case RunningRecord():
                running = record
            case MarkRecord():
                marks.append(record.mark)
            case MissingRecord():
                missing.append(record.missing)
            case RefusedRecord():
                refused.append(record)
            case _:
                records.append(record)
    return CountedReport(
        tuple(records), tuple(faults), tuple(dict.fromkeys(missing)), tuple(refused), host_fault, running, tuple(marks)
    )
