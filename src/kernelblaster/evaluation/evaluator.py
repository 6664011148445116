"""Candidate in, `Evaluation` out: build, verify, time against a baseline, profile.

A bad candidate is a verdict, never an exception; what no candidate caused (a lost GPU, a full disk, a broken
reference) is an exception, never a verdict. Safe for many threads: builds overlap, and everything that runs on a real
GPU holds the device, because a kernel that is verified would disturb one that is timed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kernelblaster.devices.base import NO_TENSORS, Job
from kernelblaster.devices.failures import BuildFailure, RunFailure
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.context import EvaluationContext
from kernelblaster.evaluation.pipeline import EvaluationPipeline
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.evaluation.results import Evaluation, SweepTimes
from kernelblaster.evaluation.self_checking import SelfCheckingPipeline
from kernelblaster.evaluation.sweep import Sweep
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.problems.problem import Problem


class Evaluator(EvaluationContext):
    """Judges candidates on one device, at one precision, for one workload. Arguments as of `EvaluationContext`."""

    def evaluate(
        self,
        problem: Problem,
        source: str,
        *,
        baseline: str | None = None,
        profile: bool = True,
        process_pairs: int = 1,
        tier: Tier = Tier.FULL,
    ) -> Evaluation:
        """Build, verify, measure and profile one candidate.

        Args:
            problem: what it solves.
            source: its source, in CUDA C++ or Python.
            baseline: source to compare with, timed in turns; verified earlier, and not again here.
            profile: collect hardware counters.
            process_pairs: pairs of fresh processes in which a candidate that seems faster is compared; one on an
                emulated device, whose times do not depend on the process.
            tier: how far it is judged; below `full` there are neither counters nor further pairs of processes.

        Raises:
            DeviceError: the device failed.
            ProblemError: the problem's reference or harness failed.
            UsageError: a self-checking problem on an emulated device or at another tier than `full`, or a size that the
                problem does not declare.
        """
        if problem.weakly_verified:
            if tier is not Tier.FULL:
                raise UsageError(f"{problem.slug} judges itself, and whole", hint="use the tier full")
            return SelfCheckingPipeline(self, problem, source).run(
                baseline, profile=profile, process_pairs=process_pairs
            )
        self.check_workload(problem)
        pipeline = EvaluationPipeline(self, problem, source, tier)
        if tier is Tier.FULL:
            return pipeline.run(baseline, profile=profile, process_pairs=process_pairs)
        return pipeline.run(baseline if tier.times else None, profile=False)

    def sweep(self, problem: Problem, sources: Sequence[str]) -> SweepTimes:
        """Time variants of a candidate against each other, briefly; whoever wins is yet to be evaluated.

        Raises:
            DeviceError: the device failed.
            ProblemError: the problem's reference or harness failed.
            UsageError: a self-checking problem, whose process holds one candidate, or a size that is not declared.
        """
        if problem.weakly_verified:
            raise UsageError(
                f"variants of {problem.slug} cannot be swept: its own driver judges one candidate per process",
                hint="switch it off: --ablate sweep",
            )
        self.check_workload(problem)
        return Sweep(self, problem, sources).run()

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        """Run the device's sanitizers on one call at the cheap size.

        A candidate that does not build or run is a finding. Raises DeviceError.
        """
        try:
            text = self.cuda_source(problem, source).text
            build = self.device.build(text, self.device.prepare(problem, self.precision_of(problem)), self.libraries)
            with self.holding(), self.verifying(), self._cheap_job(problem) as job:
                return self.device.sanitize(build, job, timeout_s=self.config.timeout_s)
        except (BuildFailure, RunFailure) as failure:
            return [SanitizerFinding(tool=failure.kind.value, message=failure.reason)]

    @contextmanager
    def _cheap_job(self, problem: Problem) -> Iterator[Job]:
        """One call at the cheap size."""
        if problem.weakly_verified:
            yield NO_TENSORS
            return
        self.check_workload(problem)
        plan = self.plan(problem)
        key = plan.small[0] if plan.small else plan.timed
        with self.inputs.use(key) as drawn, Workspace(self.inputs.directory, drawn) as workspace:
            yield workspace.job
