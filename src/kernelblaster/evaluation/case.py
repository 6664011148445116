"""One candidate under evaluation: the stages that fill in its `Evaluation`, until one of them refuses it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kernelblaster.devices.base import Build, BuildFailure, Driver, RunFailure
from kernelblaster.evaluation.bench import Bench
from kernelblaster.evaluation.inputs import InputSet
from kernelblaster.evaluation.static import hints
from kernelblaster.evaluation.timing import ImpossibleTime, Rival, RivalFailed, Stopwatch
from kernelblaster.evaluation.types import Evaluation, Verdict
from kernelblaster.evaluation.verify import Verification, Verifier
from kernelblaster.problems.problem import Problem

if TYPE_CHECKING:
    from kernelblaster.evaluation.evaluator import Evaluator

LOG_CHARACTERS = 16_000
"""Kept of a log: half from its beginning, where compilers name the first error, half from its end."""


class Case:
    """Evaluates one candidate, once.

    Args:
        judge: device, inputs, configuration and plan.
        problem: what the candidate solves.
        source: its CUDA source.
    """

    def __init__(self, judge: Evaluator, problem: Problem, source: str) -> None:
        self._judge = judge
        self._problem = problem
        self._source = source
        self._plan = judge.plan(problem)
        self._verifier = Verifier(judge.device, judge.inputs, judge.config.error_factor, judge.config.timeout_s)
        facts = judge.facts
        self._evaluation = Evaluation(
            problem=str(problem.id),
            source_sha256=hashlib.sha256(source.encode()).hexdigest(),
            verdict=Verdict.CORRECT,
            reason="",
            device=facts.kind,
            device_name=facts.name,
            arch=facts.arch,
            precision=judge.precision,
            size=judge.size,
            libraries=[library.value for library in judge.libraries],
            warnings=hints(source),
        )

    def run(self, rival: str | None, *, profile: bool) -> Evaluation:
        """Go through the stages. Raises DeviceError and ProblemError."""
        driver = self._judge.device.prepare(self._problem, self._judge.precision)
        build = self._build(driver)
        if build is None or not self._verify(build):
            return self._evaluation
        opponent = None if rival is None else self._build_rival(rival, driver)
        if self._measure(build, opponent) and profile:
            self._profile(build)
        return self._evaluation

    def _build(self, driver: Driver) -> Build | None:
        try:
            with self._stage("build"):
                build = self._judge.device.build(self._source, driver, self._judge.libraries)
        except BuildFailure as failure:
            self._refuse(Verdict(failure.kind.value), failure.reason, failure.log)
            return None
        self._evaluation.resources = list(build.resources)
        return build

    def _build_rival(self, source: str, driver: Driver) -> Build | None:
        try:
            with self._stage("build"):
                return self._judge.device.build(source, driver, self._judge.libraries)
        except BuildFailure as failure:
            self._warn(f"no comparison: the rival does not build ({failure.reason})")
            return None

    def _verify(self, build: Build) -> bool:
        """The cheap size with all distributions, then the timed size."""
        groups = [self._plan.small, () if self._plan.timed in self._plan.small else (self._plan.timed,)]
        for keys in filter(None, groups):
            with self._judge.holding():
                with self._stage("inputs"):
                    self._judge.inputs.draw(keys)
                with self._stage("verify"):
                    found = self._verifier.verify(build, keys)
            if not self._take(found):
                return False
        return True

    def _measure(self, build: Build, rival: Build | None) -> bool:
        """Time the candidate, against its rival if there is one. Whether it is still correct."""
        judge = self._judge
        watch = Stopwatch(judge.facts, judge.floor_us(self._problem), judge.config.max_seconds_timing)
        try:
            with judge.holding(), self._stage("time"), judge.inputs.use(self._plan.timed) as drawn:
                return self._time(watch, build, rival, drawn)
        except ImpossibleTime as impossible:
            self._refuse(Verdict.REWARD_HACK, impossible.reason)
        except RunFailure as failure:
            self._refuse(Verdict(failure.kind.value), f"while being timed: {failure.reason}", failure.log)
        return False

    def _time(self, watch: Stopwatch, build: Build, rival: Build | None, drawn: InputSet) -> bool:
        judge, evaluation = self._judge, self._evaluation
        with (
            Bench(judge.inputs.directory, drawn) as bench,
            judge.device.open(build, bench.job, timeout_s=judge.config.timeout_s) as session,
        ):
            if rival is not None:
                try:
                    with self._rival(rival, drawn) as opponent:
                        evaluation.comparison = watch.compare(session, opponent)
                        evaluation.timing = evaluation.comparison.candidate
                except RivalFailed as failure:
                    self._warn(f"no comparison: the rival does not run ({failure.reason})")
            if evaluation.timing is None:
                evaluation.timing = watch.time_alone(session)
            if watch.modelled:
                return True
            found = Verification()
            self._verifier.check_timed(found, session, bench, drawn)
        return self._take(found)

    @contextmanager
    def _rival(self, build: Build, drawn: InputSet) -> Iterator[Rival]:
        """The rival's process, on its own copy of the files. Raises RivalFailed."""
        judge = self._judge
        with Bench(judge.inputs.directory, drawn) as bench, ExitStack() as stack:
            try:
                opened = judge.device.open(build, bench.job, timeout_s=judge.config.timeout_s)
                session = stack.enter_context(opened)
            except RunFailure as failure:
                raise RivalFailed(failure.reason) from failure
            yield Rival(session)

    def _profile(self, build: Build) -> None:
        """Counters of one call. A profiler that fails takes nothing back from a correct, timed candidate."""
        judge = self._judge
        try:
            with (
                judge.holding(),
                self._stage("profile"),
                judge.inputs.use(self._plan.timed) as drawn,
                Bench(judge.inputs.directory, drawn) as bench,
            ):
                timeout_s = judge.config.timeout_s
                self._evaluation.profile = judge.device.profile(build, bench.job, timeout_s=timeout_s)
        except RunFailure as failure:
            self._warn(f"no profile: {failure.reason}")

    def _take(self, found: Verification) -> bool:
        """Add a verification to the evaluation. Whether the candidate passed."""
        self._evaluation.errors += found.errors
        for warning in found.warnings:
            self._warn(warning)
        if found.verdict is Verdict.CORRECT:
            return True
        self._refuse(found.verdict, found.reason, found.log)
        return False

    def _refuse(self, verdict: Verdict, reason: str, log: str = "") -> None:
        """Record why the candidate is not correct; only a correct one carries a time."""
        evaluation = self._evaluation
        evaluation.verdict, evaluation.reason, evaluation.log = verdict, reason, _bounded(log)
        evaluation.timing = evaluation.comparison = None

    def _warn(self, text: str) -> None:
        if text not in self._evaluation.warnings:
            self._evaluation.warnings.append(text)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """Add the wall seconds of the body to a stage."""
        began = time.monotonic()
        try:
            yield
        finally:
            seconds = self._evaluation.seconds
            seconds[name] = seconds.get(name, 0.0) + time.monotonic() - began


def _bounded(log: str) -> str:
    if len(log) <= LOG_CHARACTERS:
        return log
    half = LOG_CHARACTERS // 2
    return f"{log[:half]}\n... {len(log) - 2 * half} characters left out ...\n{log[-half:]}"
