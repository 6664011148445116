"""Times variants of one candidate against each other, briefly and in one process: a ranking, and no verdict.

All are compiled side by side; one harness process loads them (`devices.base.VariantSession`) and calls them in turns.
Each rung of successive halving (Jamieson and Talwalkar, AISTATS 2016) keeps the faster half and takes three times as
many samples of it, so that most of the time goes to variants between which it is hard to choose. On a modelled device
one sample is all there is to know.

A call is timed as the judge times it (`timing.stopwatch`): tensors at the addresses of timed calls, which lie better
across lines than those of verified ones, and behind as many fills as cover the host time of the slowest launcher. The
n-th sample of every variant has the same values.

Variants share a process, and nobody looks at their outputs: whoever wins is judged afterwards like any other candidate.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.base import MOST_VARIANTS, UNPERTURBED, Build, Harness, Job, VariantSession
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import BuildFailure, RunFailure
from kernelblaster.evaluation.context import EvaluationContext
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.evaluation.results import SweepTimes, SweptVariant
from kernelblaster.evaluation.stage_clock import StageClock
from kernelblaster.evaluation.timing.stopwatch import (
    LEAST_COVER_FILLS,
    LEAST_SPIN_UP,
    SLOW_US,
    SPIN_UP_S,
    clock_is_up,
    cover_fill_us,
    fills_that_cover,
)
from kernelblaster.problems.problem import Problem

FIRST_SAMPLES = 3
"""Of each variant in the first rung."""
GROWTH = 3
"""Samples of a rung over those of the one before."""
RUNGS = 3
MOST_STARTS = 4
"""Processes of one sweep: a variant that takes its process with it costs the others a start."""


@dataclass
class _Contestant:
    """A variant that was built."""

    place: int
    build: Build
    samples_us: list[float] = field(default_factory=list)
    reason: str = ""

    @property
    def median_us(self) -> float:
        return statistics.median(self.samples_us)

    def refuse(self, reason: str) -> None:
        self.reason, self.samples_us = reason, []


class _Ladder:
    """Who is still to be timed, and how often."""

    def __init__(self, contestants: Sequence[_Contestant], *, modelled: bool) -> None:
        self._field = list(contestants)
        self._left = 1 if modelled else RUNGS
        self.wanted = 1 if modelled else FIRST_SAMPLES
        """Samples of each in this rung."""

    @property
    def alive(self) -> list[_Contestant]:
        """Those of this rung that have not failed; none when the last rung is over."""
        return [one for one in self._field if not one.reason] if self._left else []

    @property
    def owing(self) -> list[_Contestant]:
        """Those of them that have fewer samples than are wanted."""
        return [one for one in self.alive if len(one.samples_us) < self.wanted]

    def climb(self) -> None:
        """The next rung has the faster half of this one, two at least."""
        ranked = sorted(self.alive, key=lambda one: one.median_us)
        self._field, self.wanted = ranked[: max(2, len(ranked) // 2)], GROWTH * self.wanted
        self._left -= 1


class Sweep:
    """One sweep over variants of a problem. Arguments as of `EvaluationStages`, with a source for each variant."""

    def __init__(self, judge: EvaluationContext, problem: Problem, sources: Sequence[str]) -> None:
        if not 0 < len(sources) <= MOST_VARIANTS:
            raise ValueError(f"a sweep has 1 to {MOST_VARIANTS} variants")
        self._judge = judge
        self._problem = problem
        self._sources = tuple(sources)
        self._modelled = judge.facts.kind is DeviceKind.EMULATED
        self._clock = StageClock({})
        self._called: _Contestant | None = None

    def run(self) -> SweepTimes:
        """Time every variant that compiles, in the order given. Raises DeviceError and ProblemError."""
        judge, clock = self._judge, self._clock
        with clock.stage("build"):
            built = self._build(judge.device.prepare(self._problem, judge.precision_of(self._problem)))
        contestants = [_Contestant(place, one) for place, one in enumerate(built) if isinstance(one, Build)]
        if contestants:
            key = judge.plan(self._problem).timed
            budget = 0 if key.judged else judge.instruction_budget
            with clock.stage("inputs"):
                changing = judge.checks(self._problem, clock.guarded).changing
            with clock.guarded(judge.holding()), ExitStack() as stack:
                with clock.guarded(judge.verifying()), clock.stage("inputs"):
                    drawn = stack.enter_context(judge.inputs.use(key))
                workspace = stack.enter_context(Workspace(judge.inputs.directory, drawn, budget))
                with clock.stage("time"):
                    self._time(contestants, workspace.job, changing=changing)
        timed = {one.place: one for one in contestants}
        variants = [self._result(place, built[place], timed.get(place)) for place in range(len(built))]
        return SweepTimes(variants=variants, seconds=clock.seconds)

    def _build(self, harness: Harness) -> list[Build | BuildFailure]:
        """Each variant, compiled, or why it cannot be."""
        judge = self._judge

        def build(source: str) -> Build | BuildFailure:
            try:
                return judge.device.build(source, harness, judge.libraries)
            except BuildFailure as failure:
                return failure

        with ThreadPoolExecutor(judge.config.compile_jobs or os.cpu_count() or 1, "sweep") as threads:
            return list(threads.map(build, self._sources))

    def _time(self, contestants: list[_Contestant], job: Job, *, changing: bool) -> None:
        """Rung by rung; a process that a variant has taken with it is started again without that variant."""
        ladder = _Ladder(contestants, modelled=self._modelled)
        most = FIRST_SAMPLES * GROWTH ** (RUNGS - 1)
        perturbations = list(range(1, most + 1)) if changing else [UNPERTURBED] * most
        for _ in range(MOST_STARTS):
            if not (alive := ladder.alive):
                break
            self._called = alive[0]  # whose fault it is when the process does not even start, nobody can say
            try:
                self._in_one_process(ladder, alive, job, perturbations)
            except RunFailure as failure:
                self._called.refuse(failure.reason)
        for one in contestants:
            if not one.samples_us and not one.reason:
                one.reason = "other variants ended the processes that it was to be timed in"

    def _in_one_process(
        self, ladder: _Ladder, alive: list[_Contestant], job: Job, perturbations: Sequence[int]
    ) -> None:
        """All rungs that are left. Raises RunFailure when a call ends the process: that of `_called`."""
        judge, clock = self._judge, self._clock
        with ExitStack() as stack:
            with clock.guarded(judge.verifying()):
                builds = [one.build for one in alive]
                opened = judge.device.open_variants(builds, job, timeout_s=judge.config.timeout_s)
                session = stack.enter_context(opened)
            stack.enter_context(clock.guarded(judge.measuring()))
            places = {one.place: index for index, one in enumerate(alive)}
            fills = 1 if self._modelled else self._warm_up(session, alive, perturbations)
            while ladder.alive:
                for one in ladder.owing:
                    if self._chosen(session, one, places[one.place]):
                        taken = session.time_calls(perturbations[len(one.samples_us) : ladder.wanted], fills)
                        one.samples_us += [sample.device_us for sample in taken]
                ladder.climb()

    def _chosen(self, session: VariantSession, one: _Contestant, index: int) -> bool:
        """Whether a variant is called from here on; one that cannot be is out."""
        self._called = one
        if reason := session.choose(index):
            one.refuse(reason)
        return not reason

    def _warm_up(self, session: VariantSession, alive: Sequence[_Contestant], perturbations: Sequence[int]) -> int:
        """Bring the clock up and every variant's code and tensors into place; the fills that cover all launchers."""
        facts, enqueue = self._judge.facts, 0.0
        until = time.monotonic() + (0.0 if clock_is_up(facts, self._judge.device.reading()) else SPIN_UP_S)
        for index, one in enumerate(alive):
            if not self._chosen(session, one, index):
                continue
            warm = session.time_calls(perturbations[:1], LEAST_COVER_FILLS)
            if warm[0].device_us < SLOW_US:
                warm += session.time_calls(perturbations[1:LEAST_SPIN_UP], LEAST_COVER_FILLS)
            while time.monotonic() < until:
                warm = session.time_calls(perturbations[:LEAST_SPIN_UP], LEAST_COVER_FILLS)
            until = 0.0
            enqueue = max([enqueue, *(sample.enqueue_us or 0.0 for sample in warm)])
        return fills_that_cover(enqueue, cover_fill_us(facts))

    def _result(self, place: int, built: Build | BuildFailure, timed: _Contestant | None) -> SweptVariant:
        sha256 = source_digest(self._sources[place])
        if isinstance(built, BuildFailure):
            return SweptVariant(source_sha256=sha256, modelled=self._modelled, reason=built.reason)
        if timed is None or not timed.samples_us:
            reason = timed.reason if timed else ""
            return SweptVariant(source_sha256=sha256, modelled=self._modelled, reason=reason)
        return SweptVariant(
            source_sha256=sha256, median_us=timed.median_us, samples=len(timed.samples_us), modelled=self._modelled
        )
