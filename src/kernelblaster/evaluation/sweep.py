"""Times variants of one candidate against each other, briefly and in one process: a ranking, and no verdict.

All are compiled side by side; one harness process loads them (`devices.base.VariantSession`) and calls them in turns.
Each rung of successive halving (Jamieson and Talwalkar, AISTATS 2016) keeps the faster half and takes three times as
many samples of it, so that most of the time goes to variants between which it is hard to choose. On a modelled device
one sample is all there is to know.

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
from kernelblaster.evaluation.results import SweptVariant
from kernelblaster.evaluation.timing.stopwatch import LEAST_COVER_FILLS, SPIN_UP_S
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


class Sweep:
    """One sweep over variants of a problem. Arguments as of `EvaluationStages`, with a source for each variant."""

    def __init__(self, judge: EvaluationContext, problem: Problem, sources: Sequence[str]) -> None:
        if not 0 < len(sources) <= MOST_VARIANTS:
            raise ValueError(f"a sweep has 1 to {MOST_VARIANTS} variants")
        self._judge = judge
        self._problem = problem
        self._sources = tuple(sources)
        self._modelled = judge.facts.kind is DeviceKind.EMULATED

    def run(self) -> list[SweptVariant]:
        """Time every variant that compiles, in the order given. Raises DeviceError and ProblemError."""
        harness = self._judge.device.prepare(self._problem, self._judge.precision)
        built = self._build(harness)
        contestants = [_Contestant(place, one) for place, one in enumerate(built) if isinstance(one, Build)]
        if contestants:
            judge, key = self._judge, self._judge.plan(self._problem).timed
            budget = 0 if key.judged else judge.instruction_budget
            with judge.holding(), ExitStack() as stack:
                with judge.verifying():
                    drawn = stack.enter_context(judge.inputs.use(key))
                workspace = stack.enter_context(Workspace(judge.inputs.directory, drawn, budget))
                self._time(contestants, workspace.job)
        timed = {one.place: one for one in contestants}
        return [self._result(place, built[place], timed.get(place)) for place in range(len(built))]

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

    def _time(self, contestants: list[_Contestant], job: Job) -> None:
        """Rung by rung; a process that a variant has taken with it is started again without that variant."""
        wanted, field_of_rung = 1 if self._modelled else FIRST_SAMPLES, contestants
        for _ in range(1 if self._modelled else RUNGS):
            starts = 0
            while starts < MOST_STARTS and any(_owed(one, wanted) for one in field_of_rung):
                starts += 1
                self._rung([one for one in field_of_rung if not one.reason], job, wanted)
            for one in field_of_rung:
                if not one.samples_us and not one.reason:
                    one.reason = "other variants ended the processes that it was to be timed in"
            ranked = sorted((one for one in field_of_rung if one.samples_us), key=lambda one: one.median_us)
            field_of_rung, wanted = ranked[: max(2, len(ranked) // 2)], GROWTH * wanted

    def _rung(self, contestants: list[_Contestant], job: Job, wanted: int) -> None:
        """One process: until each has `wanted` samples, or one of them ends it."""
        judge = self._judge
        current = contestants[0]  # whose fault it is when the process does not even start, nobody can say
        builds, at_rest = [one.build for one in contestants], not self._modelled
        try:
            with ExitStack() as stack:
                with judge.verifying():
                    opened = judge.device.open_variants(builds, job, timeout_s=judge.config.timeout_s)
                    session = stack.enter_context(opened)
                stack.enter_context(judge.measuring())
                for index, one in enumerate(contestants):
                    current = one
                    if not _owed(one, wanted):
                        continue
                    one.reason = session.choose(index)
                    if one.reason:
                        one.samples_us = []
                        continue
                    if at_rest:
                        self._spin_up(session)
                        at_rest = False
                    taken = session.time_calls([UNPERTURBED] * (wanted - len(one.samples_us)), LEAST_COVER_FILLS)
                    one.samples_us += [sample.device_us for sample in taken]
        except RunFailure as failure:
            current.reason, current.samples_us = failure.reason, []

    @staticmethod
    def _spin_up(session: VariantSession) -> None:
        """A GPU at rest needs a while until its clock is up."""
        began = time.monotonic()
        while time.monotonic() - began < SPIN_UP_S:
            session.time_calls([UNPERTURBED] * FIRST_SAMPLES, LEAST_COVER_FILLS)

    def _result(self, place: int, built: Build | BuildFailure, timed: _Contestant | None) -> SweptVariant:
        sha256 = source_digest(self._sources[place])
        if isinstance(built, BuildFailure):
            return SweptVariant(source_sha256=sha256, modelled=self._modelled, reason=built.reason)
        if timed is None or not timed.samples_us:
            reason = timed.reason if timed is not None else ""
            return SweptVariant(source_sha256=sha256, modelled=self._modelled, reason=reason)
        return SweptVariant(
            source_sha256=sha256,
            median_us=timed.median_us,
            samples=len(timed.samples_us),
            modelled=self._modelled,
        )


def _owed(one: _Contestant, wanted: int) -> bool:
    return not one.reason and len(one.samples_us) < wanted
