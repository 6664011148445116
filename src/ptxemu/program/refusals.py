"""What went wrong in host code: sentences with their places.

Calls that were refused with an error, where no question for the last error came after, and memory of the device that
was touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ptxemu.checks.findings import Finding, FindingKind, SourcePlace
from ptxemu.counters.record import HostFaultRecord, RefusedRecord, RunningRecord

Places = Callable[[Sequence[int]], Sequence[SourcePlace | None]]
"""File and line of addresses in the program; None for those that are not the program's own code."""


def running(record: RunningRecord | None, places: Places) -> str | None:
    """What a program was doing when it was stopped; None where it was not, or has not told."""
    if record is None:
        return None
    found = places(record.callers) if record.callers else ()
    place = next((f"{PurePath(one[0]).name}:{one[1]}" for one in found if one is not None), None)
    if not record.running:
        return f"host code was executed at {place}" if place else "host code was executed"
    return record.running + (f", launched at {place}" if place else "")


def host_fault(fault: HostFaultRecord | None, places: Places) -> str | None:
    """The sentence; None where nothing happened."""
    if fault is None:
        return None
    found = places(fault.callers) if fault.callers else ()
    place = next((one for one in found if one is not None), None)
    return fault.host_fault + (f" ({PurePath(place[0]).name}:{place[1]})" if place else "")


@dataclass(frozen=True)
class RefusedCall:
    """A call that was refused, and how often at that place; None where the place is not known."""

    message: str
    place: SourcePlace | None
    count: int

    @property
    def sentence(self) -> str:
        """With its place."""
        place = f"{PurePath(self.place[0]).name}:{self.place[1]}: " if self.place else ""
        times = f", {self.count} times" if self.count > 1 else ""
        return f"{place}{self.message}{times}; the program has not called cudaGetLastError since"

    @property
    def finding(self) -> Finding:
        """As compute-sanitizer tells of it."""
        file, line = self.place or (None, None)
        return Finding(
            tool="memcheck",
            kind=FindingKind.API_ERROR,
            message=f"{self.message}; the program has not called cudaGetLastError since",
            kernel="",
            block=(0, 0, 0),
            thread=(0, 0, 0),
            count=self.count,
            ptx_line=0,
            source_file=file,
            source_line=line,
        )


def refusals(refused: Sequence[RefusedRecord], places: Places) -> list[RefusedCall]:
    """Refused calls, as the core reports them; the same at one line once."""
    callers = list(dict.fromkeys(caller for one in refused for caller in one.callers))
    known = dict(zip(callers, places(callers) if callers else (), strict=True))
    counts: Counter[tuple[SourcePlace | None, str]] = Counter()
    for one in refused:
        place = next((found for caller in one.callers if (found := known[caller]) is not None), None)
        counts[place, one.refused] += one.count
    return [RefusedCall(message, place, count) for (place, message), count in counts.items()]
