"""Times many participants in turns by one rule: kernels, and PyTorch in its modes.

Device time hides the launch, for whoever is timed: the host time that each participant needs to launch a call is
measured while it warms up, and all calls are then launched behind fills of memory that last longer than the slowest of
them (`cover_fills_for`). A sample whose launch took longer than the fills after all is counted as exposed; where that
happens often, all samples are taken again behind more fills. A participant whose launches no fills hide is sampled as a
CUDA graph, where it can be captured. Wall time is sampled apart: an idle GPU, no fills, from the call until the device
is idle again, each participant as it is.

A participant that takes `APART` times as long as the fastest is sampled on its own, a few times, so that the others get
the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelblaster.devices.base import TimingSample
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.evaluation.inputs.perturbations import PerturbationSchedule
from kernelblaster.evaluation.timing.clock_agreement import median_us
from kernelblaster.evaluation.timing.conditions import Readings
from kernelblaster.evaluation.timing.pytorch_times import EXPOSED_SHARE
from kernelblaster.evaluation.timing.stopwatch import COVER, COVER_FILL_BYTES, LEAST_COVER_FILLS, Timeable

MOST_COVER_FILLS = 200
"""Some 1.5 ms on an H200; a launcher that needs longer waits for the GPU, and nothing can cover it."""
LEAST_CYCLES = 10
APART, APART_CYCLES = 30.0, 5
ATTEMPTS = 3
_SLOW_LAUNCHES = 95
"""Percentile of the launches of an attempt that the next one hides."""
_WARM_UP, _WALLS = 5, 10


@dataclass
class Participant:
    """What was found of one participant; times in microseconds.

    Attributes:
        session: what is timed.
        capture: the same calls as a CUDA graph; None where they cannot be captured.
        graph: what device times are sampled of in the place of `session`, whose launches nothing hides.
        cycles: device times; each cycle visits all participants forwards and backwards.
        launches_us: host times of the launches in these cycles.
        walls_us: of single calls, launch and wait included.
        launch_us: host time of a launch, the longest of the last warm-up calls; None where it is not known.
        exposed: samples whose launch took longer than the fills that should hide it.
        warm_us: median device time of the last warm-up calls.
    """

    session: Timeable
    capture: Callable[[], Timeable | None] = lambda: None
    graph: Timeable | None = None
    cycles: list[tuple[float, ...]] = field(default_factory=list)
    launches_us: list[float] = field(default_factory=list)
    walls_us: list[float] = field(default_factory=list)
    launch_us: float | None = None
    exposed: int = 0
    warm_us: float = 0.0

    @property
    def sampled(self) -> Timeable:
        """What its device times are of."""
        return self.session if self.graph is None else self.graph

    @property
    def exposed_share(self) -> float:
        """Of its samples."""
        return self.exposed / max(sum(map(len, self.cycles)), 1)

    def forget(self) -> None:
        """Drop its samples."""
        self.cycles.clear()
        self.launches_us.clear()
        self.exposed = 0


@dataclass
class RoundRobin:
    """Participants of one problem on one device; the caller holds it.

    Attributes:
        entries: by name.
        facts: of the device.
        schedule: values of the calls.
        readings: clocks and temperatures meanwhile.
        clock: seconds, monotonic.
        cover_fills: that each call was launched behind.
        least_cycles: taken however long they take.
    """

    entries: Mapping[str, Participant]
    facts: DeviceFacts
    schedule: PerturbationSchedule
    readings: Readings
    clock: Callable[[], float] = time.monotonic
    cover_fills: int = LEAST_COVER_FILLS
    least_cycles: int = LEAST_CYCLES

    @property
    def cover_us(self) -> float:
        """How long the fills take, at least."""
        return self.cover_fills * fill_us(self.facts)

    def run(self, seconds: float) -> None:
        """Sample for so many seconds, and a few cycles at least. Raises RunFailure."""
        warm, walls = (self.schedule.draw(count) for count in (2 * _WARM_UP, _WALLS))
        self.cover_fills = cover_fills_for([self._prepare(entry, warm) for entry in self.entries.values()], self.facts)
        for attempt in range(1, ATTEMPTS + 1):
            self._sample(seconds)
            late = [entry for entry in self.entries.values() if entry.exposed_share > EXPOSED_SHARE]
            if not late or attempt == ATTEMPTS or self.cover_fills == MOST_COVER_FILLS:
                break
            slow = [float(np.percentile(entry.launches_us, _SLOW_LAUNCHES)) for entry in late]
            self.cover_fills = min(max(cover_fills_for(slow, self.facts), 2 * self.cover_fills), MOST_COVER_FILLS)
            for entry in self.entries.values():
                entry.forget()
        for entry in self.entries.values():
            _time_walls(entry, walls)

    def _prepare(self, entry: Participant, perturbations: Sequence[int]) -> float:
        """Warm up; what launching what is sampled takes at most, in microseconds."""
        launches = _launches_us(entry.session, perturbations)
        entry.launch_us = max(launches, default=None)
        if not launches or not _exceeds_cover(float(np.median(launches)), self.facts):
            return entry.launch_us or 0.0
        entry.graph = entry.capture()
        return max(_launches_us(entry.sampled, perturbations), default=0.0)

    def _sample(self, seconds: float) -> None:
        covered = self.schedule.draw(2)
        for entry in self.entries.values():
            entry.warm_us = median_us(entry.sampled.time_calls(covered, self.cover_fills))
        fastest = min(entry.warm_us for entry in self.entries.values())
        together = [entry for entry in self.entries.values() if entry.warm_us <= APART * fastest]
        began = self.clock()
        while len(together[0].cycles) < self.least_cycles or self.clock() - began < seconds:
            self._cycle(together)
        for entry in self.entries.values():
            while len(entry.cycles) < min(APART_CYCLES, self.least_cycles):
                self._cycle([entry])

    def _cycle(self, entries: Sequence[Participant]) -> None:
        visit: list[list[TimingSample]] = [[] for _ in entries]
        for order in (range(len(entries)), range(len(entries) - 1, -1, -1)):
            perturbations = self.schedule.draw(2)
            for place in order:
                visit[place] += entries[place].sampled.time_calls(perturbations, self.cover_fills)
        for entry, samples in zip(entries, visit, strict=True):
            entry.cycles.append(tuple(sample.device_us for sample in samples))
            launches = [sample.enqueue_us or 0.0 for sample in samples]
            entry.launches_us += launches
            entry.exposed += sum(launch > self.cover_us for launch in launches)
        self.readings.take()


def _launches_us(session: Timeable, perturbations: Sequence[int]) -> list[float]:
    """Call it, and tell the host times of the launches in the second half of the calls, where they are known."""
    session.time_calls(perturbations[:_WARM_UP], LEAST_COVER_FILLS)
    samples = session.time_calls(perturbations[_WARM_UP:], LEAST_COVER_FILLS)
    return [sample.enqueue_us for sample in samples if sample.enqueue_us is not None]


def _exceeds_cover(launch_us: float, facts: DeviceFacts) -> bool:
    """Whether no fills hide a launch that takes so long."""
    return COVER * launch_us > MOST_COVER_FILLS * fill_us(facts)


def _time_walls(entry: Participant, perturbations: Sequence[int]) -> None:
    samples = entry.session.time_calls(perturbations, 0)
    entry.walls_us += [sample.host_us for sample in samples if sample.host_us is not None]


def cover_fills_for(launch_us: Sequence[float], facts: DeviceFacts) -> int:
    """Fills that hide the longest of these host times, in microseconds."""
    needed = math.ceil(COVER * max(launch_us) / fill_us(facts))
    return int(np.clip(needed, LEAST_COVER_FILLS, MOST_COVER_FILLS))


def fill_us(facts: DeviceFacts) -> float:
    """Time of one fill, at least, in microseconds."""
    return 1e6 * COVER_FILL_BYTES / facts.peak_bandwidth
