"""Clocks and temperatures while something is timed, and which samples they discredit."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kernelblaster.devices.facts import GpuReading
from kernelblaster.evaluation.results import Conditions

LEAST_CLOCK = 0.75
"""Samples at a lower share of the highest clock seen do not count."""
READ_EVERY_S = 0.05
"""NVML takes up to a millisecond to answer, a block of short kernels a few."""

Taken = TypeVar("Taken")


@dataclass(frozen=True)
class Conditioned(Generic[Taken]):
    """Samples beside the state of the GPU just after them; None where it was not known."""

    taken: Taken
    reading: GpuReading | None


class Readings:
    """Readings of one comparison.

    Args:
        read: the state of the GPU now.
        clock: seconds, monotonic.
    """

    def __init__(self, read: Callable[[], GpuReading | None], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._all: list[GpuReading] = []
        self._read_at: float | None = None
        self._discarded = 0

    def take(self) -> GpuReading | None:
        """The state of the GPU, read anew when the last reading is old or shows a low clock."""
        now = self._clock()
        last = self._all[-1] if self._all else None
        if self._read_at is not None and now - self._read_at < READ_EVERY_S and not self._low(last):
            return last
        self._read_at = now
        reading = self._read()
        if reading is not None:
            self._all.append(reading)
        return reading

    def kept(self, visits: Sequence[Conditioned[Taken]]) -> list[Taken]:
        """What was taken while the clock was high enough, by all that is known now."""
        kept = [visit.taken for visit in visits if not self._low(visit.reading)]
        self._discarded = len(visits) - len(kept)
        return kept

    def summary(self) -> Conditions | None:
        """All readings; None when there are none."""
        if not self._all:
            return None
        clocks = [reading.sm_mhz for reading in self._all]
        temperatures = [reading.temperature for reading in self._all]
        return Conditions(
            readings=len(clocks),
            sm_mhz_low=min(clocks),
            sm_mhz_median=statistics.median(clocks),
            sm_mhz_high=max(clocks),
            temperature_low=min(temperatures),
            temperature_high=max(temperatures),
            discarded=self._discarded,
        )

    def _low(self, reading: GpuReading | None) -> bool:
        return reading is not None and reading.sm_mhz < LEAST_CLOCK * max(one.sm_mhz for one in self._all)
