"""What went wrong in host code: sentences with their places.

Calls that were refused with an error, where no question for the last error came after, and memory of the device that
was touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath

from ptxemu.checks.findings import SourcePlace
from ptxemu.counters.record import HostFaultRecord, RefusedRecord

Places = Callable[[Sequence[int]], Sequence[SourcePlace | None]]
"""File and line of addresses in the program; None for those that are not the program's own code."""


def host_fault(fault: HostFaultRecord | None, places: Places) -> str | None:
    """The sentence; None where nothing happened."""
    if fault is None:
        return None
    found = places(fault.callers) if fault.callers else ()
    place = next((one for one in found if one is not None), None)
    return fault.host_fault + (f" ({PurePath(place[0]).name}:{place[1]})" if place else "")


def refusals(refused: Sequence[RefusedRecord], places: Places) -> tuple[str, ...]:
    """One sentence for each call, as the core reports them; the same at one line once."""
    callers = list(dict.fromkeys(caller for one in refused for caller in one.callers))
    known = dict(zip(callers, places(callers) if callers else (), strict=True))
    counts: Counter[tuple[str, str]] = Counter()
    for one in refused:
        place = next((found for caller in one.callers if (found := known[caller]) is not None), None)
        counts[f"{PurePath(place[0]).name}:{place[1]}: " if place else "", one.refused] += one.count
    return tuple(
        f"{place}{message}{f', {count} times' if count > 1 else ''}; the program has not called cudaGetLastError since"
        for (place, message), count in counts.items()
    )
