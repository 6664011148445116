"""What every evaluation pipeline has in common: the `Evaluation` it fills in, builds, and how a stage refuses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.base import Build, Harness
from kernelblaster.devices.build.tools import bounded
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import BuildFailure
from kernelblaster.evaluation.context import EvaluationContext
from kernelblaster.evaluation.integrity.source_hints import hints
from kernelblaster.evaluation.messages import fault_in, tidied
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.evaluation.stage_clock import Held, StageClock
from kernelblaster.problems.problem import Problem
from kernelblaster.python_candidates.language import CandidateLanguage, language_of


class EvaluationStages:
    """One candidate, judged once; `EvaluationPipeline` and `SelfCheckingPipeline` say by which stages.

    Args:
        judge: device, inputs, configuration and plan.
        problem: what the candidate solves.
        source: its source, in CUDA C++ or Python.
    """

    def __init__(self, judge: EvaluationContext, problem: Problem, source: str) -> None:
        self._judge = judge
        self._problem = problem
        self._source = source
        facts = judge.facts
        self._evaluation = Evaluation(
            problem=str(problem.id),
            source_sha256=source_digest(source),
            language=language_of(source),
            verdict=Verdict.CORRECT,
            reason="",
            device=facts.kind,
            device_name=facts.name,
            arch=facts.arch,
            precision=judge.precision_of(problem),
            workload=judge.workload_of(problem),
            libraries=[library.value for library in judge.libraries],
            weakly_verified=problem.weakly_verified,
            warnings=hints(source) if language_of(source) is CandidateLanguage.CUDA else [],
            isolation=judge.device.isolation,
            in_company=judge.in_company and facts.kind is DeviceKind.CUDA,
        )
        self._own_streams: tuple[str, ...] = ()
        clock = StageClock(self._evaluation.seconds)
        self._stage, self._guarded = clock.stage, clock.guarded

    @contextmanager
    def _alone(self, guard: AbstractContextManager[Held]) -> Iterator[Held]:
        """The body under a guard that keeps others from the GPU, if it does; for how long is kept."""
        with self._guarded(guard) as held:
            began = time.monotonic()
            try:
                yield held
            finally:
                if held is not False and not isinstance(guard, nullcontext):
                    self._evaluation.alone_s += time.monotonic() - began

    def _translated(self) -> bool:
        """Put CUDA in the place of another language. False when that cannot be done, which is the verdict then."""
        if self._evaluation.language is CandidateLanguage.CUDA:
            return True
        try:
            with self._stage("record"):
                self._judge.inputs.tell(f"recording a Python kernel for {self._problem.id}")
                found = self._judge.cuda_source(self._problem, self._source)
        except BuildFailure as failure:
            self._refuse(Verdict(failure.kind.value), failure.reason, failure.log)
            return False
        self._source = found.text
        for warning in found.warnings:
            self._warn(warning)
        return True

    def _build(self, harness: Harness) -> Build:
        """The candidate's program. Raises BuildFailure."""
        return self._judge.device.build(self._source, harness, self._judge.libraries)

    def _built(self, build: Callable[[], Build]) -> Build | None:
        """The candidate's program; None when it cannot be built, which is its verdict then."""
        try:
            with self._stage("build"):
                found = build()
        except BuildFailure as failure:
            self._refuse(Verdict(failure.kind.value), failure.reason, failure.log)
            return None
        self._evaluation.resources = list(found.resources)
        self._evaluation.machine = None if found.machine is None else dict(found.machine)
        self._own_streams = found.own_streams
        for hint in found.hints:
            self._warn(f"{hint}: host code runs under a system-call filter, which lets none of that out of its process")
        return found

    def _build_baseline(self, source: str, harness: Harness) -> Build | None:
        try:
            with self._stage("build"):
                text = self._judge.cuda_source(self._problem, source).text
                return self._judge.device.build(text, harness, self._judge.libraries)
        except BuildFailure as failure:
            self._warn(f"no comparison: the baseline does not build ({failure.reason})")
            return None

    def _refuse(self, verdict: Verdict, reason: str, log: str = "") -> None:
        """Record why the candidate is not correct; only a correct one carries a time."""
        evaluation = self._evaluation
        fault = fault_in(log) if verdict is Verdict.RUNTIME_ERROR else None
        if fault is not None:
            error, is_cuda, _ = reason.partition(": ")
            reason = f"{error}: {fault}" if is_cuda and error.startswith("cudaError") else fault
        evaluation.verdict, evaluation.reason = verdict, tidied(reason, evaluation.resources)
        evaluation.log = bounded(tidied(log, evaluation.resources))
        evaluation.timing = evaluation.comparison = None

    def _warn(self, text: str) -> None:
        if text not in self._evaluation.warnings:
            self._evaluation.warnings.append(text)
