"""Calls that were refused with an error, and no question for the last error came after: sentences with their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath

from ptxemu.checks.findings import SourcePlace
from ptxemu.counters.record import RefusedRecord


def refusals(
    refused: Sequence[RefusedRecord], places: Callable[[Sequence[int]], Sequence[SourcePlace | None]]
) -> tuple[str, ...]:
    """One sentence for each; the same at one line once.

    Args:
        refused: as the core reports them.
        places: file and line of addresses in the program; None for those that are not the program's own code.
    """
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
