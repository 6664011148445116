"""Candidates of problems whose libtorch driver draws inputs, compares and prints the verdict itself.

Everything that is found here is weak evidence (`Evaluation.weakly_verified`). What is done about it:

- the driver's output comes over the result channel; what the candidate prints is not part of it, and a process that
  ends before its driver has returned did not pass;
- it must pass twice: in a process of its own, and again at the end of the timed one, where the driver judges the last
  of many equal calls. What earlier calls wrote is put back to what it was before each, so that a kernel which computes
  only once has nothing to show in the end;
- a driver that passes even a launcher which does nothing is named in every evaluation;
- times are taken around the launcher, cold, in turns with the baseline, by the stopwatch that all candidates share.

What remains possible: the reference lies in the candidate's address space; the driver's tolerance is wide (0.1 in most)
and its inputs are the same in every process and call, so that constants, small errors and kernels for these inputs
alone pass. No roofline floor is known.
"""

from __future__ import annotations

from contextlib import ExitStack

from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.devices.base import NO_TENSORS, Build, SelfCheckingSession, SelfCheckOutput, profile_once
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import BuildFailure, RunFailure
from kernelblaster.errors import ProblemError
from kernelblaster.evaluation.context import EvaluationContext
from kernelblaster.evaluation.inputs.perturbations import PerturbationSchedule
from kernelblaster.evaluation.results import Comparison, Decision, Evaluation, Verdict
from kernelblaster.evaluation.stages import EvaluationStages
from kernelblaster.evaluation.timing.baseline_session import BaselineFailed, BaselineSession
from kernelblaster.evaluation.timing.clock_agreement import ImpossibleTime
from kernelblaster.evaluation.timing.stopwatch import Stopwatch, combined
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.self_checking import (
    WeakVerdict,
    idle_launcher,
    needs_a_gpu,
    read_output,
)

SAME_INPUTS = "weakly verified: its own driver judged it, at inputs that are the same in every call"


class SelfCheckingPipeline(EvaluationStages):
    """Evaluates one candidate of a weakly verified problem, once. Arguments as of `EvaluationStages`."""

    def run(self, baseline: str | None, *, profile: bool, process_pairs: int = 1) -> Evaluation:
        """Go through the stages. Raises DeviceError, and ProblemError when the driver is no judge."""
        judge = self._judge
        if judge.facts.kind is DeviceKind.EMULATED:
            raise needs_a_gpu(self._problem)
        self._warn(SAME_INPUTS)
        harness = judge.device.prepare(self._problem, judge.precision)
        build = self._built(lambda: self._build(harness))
        if build is None:
            return self._evaluation
        baseline_build = None if baseline is None else self._build_baseline(baseline, harness)
        with judge.holding(), judge.measuring():
            if self._passes(build):
                if judge.once("idle passes", self._problem, lambda: idle_passes(judge, self._problem)):
                    self._warn("its driver also passes a launcher that does nothing")
                if self._measure(build, baseline_build) and profile:
                    self._profile(build)
        if baseline_build is not None and process_pairs > 1:
            self._repeat(build, baseline_build, process_pairs)
        return self._evaluation

    def _passes(self, build: Build) -> bool:
        """One call in a process of its own, judged by the driver."""
        try:
            with self._stage("verify"), self._open(build) as session:
                return self._take(session.finish())
        except RunFailure as failure:
            self._refuse(Verdict(failure.kind.value), failure.reason, failure.log)
            return False

    def _take(self, output: SelfCheckOutput) -> bool:
        """Whether the driver passed the candidate. Raises ProblemError when it did not say."""
        said = _verdict(self._problem, output)
        if said is WeakVerdict.FAILED:
            status = f" and returned {output.returncode}" if output.returncode else ""
            reason = f"its driver said {_last_line(output.text)!r}{status}"
            self._refuse(Verdict.WRONG_VALUES, reason, output.text)
        if output.missing_bytes or not output.restored_bytes:
            self._warn("what a call writes could not be put back between timed calls: one that skips work would pass")
        return said is WeakVerdict.PASSED

    def _measure(self, build: Build, baseline: Build | None) -> bool:
        """Time the candidate, against its baseline if there is one. Whether its driver still passes it."""
        try:
            with self._stage("time"), ExitStack() as stack:
                session = stack.enter_context(self._open(build))
                self._time(session, self._open_baseline(baseline, stack))
                return self._take(session.finish())
        except ImpossibleTime as impossible:
            self._refuse(Verdict.REWARD_HACK, impossible.reason)
        except RunFailure as failure:
            self._refuse(Verdict(failure.kind.value), f"while being timed: {failure.reason}", failure.log)
        return False

    def _open_baseline(self, baseline: Build | None, stack: ExitStack) -> SelfCheckingSession | None:
        if baseline is None:
            return None
        try:
            return stack.enter_context(self._open(baseline))
        except RunFailure as failure:
            self._warn(f"no comparison: the baseline does not run ({failure.reason})")
            return None

    def _time(self, session: SelfCheckingSession, baseline: SelfCheckingSession | None) -> None:
        """Compare with the baseline, or time alone without one. Raises ImpossibleTime and RunFailure."""
        evaluation, watch = self._evaluation, self._stopwatch()
        if baseline is not None:
            try:
                evaluation.comparison = watch.compare(session, BaselineSession(baseline))
                evaluation.timing = evaluation.comparison.candidate
                return
            except BaselineFailed as failure:
                self._warn(f"no comparison: the baseline does not run ({failure.reason})")
        evaluation.comparison = None
        evaluation.timing = watch.time_alone(session)

    def _stopwatch(self) -> Stopwatch:
        judge = self._judge
        return Stopwatch(
            judge.facts,
            None,
            judge.config.max_seconds_timing,
            reading=judge.device.reading,
            schedule=PerturbationSchedule(changing=False),
        )

    def _repeat(self, build: Build, baseline: Build, process_pairs: int) -> None:
        """Compare again in fresh processes and combine; only what seems faster."""
        evaluation = self._evaluation
        taken: list[Comparison] = []
        while evaluation.comparison is not None and evaluation.comparison not in taken:
            taken.append(evaluation.comparison)
            if taken[0].decision is not Decision.FASTER:
                return
            if len(taken) == process_pairs:
                evaluation.comparison = combined(taken)
                evaluation.timing = evaluation.comparison.candidate
                return
            with self._judge.holding(), self._judge.measuring():
                self._measure(build, baseline)

    def _profile(self, build: Build) -> None:
        """Counters of one call. A profiler that fails takes nothing back from a timed candidate."""
        device, timeout_s = self._judge.device, self._judge.config.timeout_s
        try:
            with self._stage("profile"):
                self._evaluation.profile = profile_once(device, build, NO_TENSORS, timeout_s=timeout_s)
        except RunFailure as failure:
            self._warn(f"no profile: {failure.reason}")

    def _open(self, build: Build) -> SelfCheckingSession:
        return self._judge.device.open_self_checking(build, timeout_s=self._judge.config.timeout_s)


def idle_passes(judge: EvaluationContext, problem: Problem) -> bool:
    """Whether the driver of a problem passes a launcher that does nothing. Raises DeviceError and ProblemError.

    Its output then holds what fresh memory does, mostly zeros.
    """
    source = idle_launcher(launcher_declaration(problem.driver_path.read_text(encoding="utf-8", errors="replace")))
    try:
        build = judge.device.build(source, judge.device.prepare(problem, judge.precision))
        with judge.device.open_self_checking(build, timeout_s=judge.config.timeout_s) as session:
            return _verdict(problem, session.finish()) is WeakVerdict.PASSED
    except BuildFailure as failure:
        raise ProblemError(f"no launcher as {problem.slug} declares it compiles", hint=failure.reason) from failure
    except RunFailure:
        return False  # what it computes with is not there; the driver noticed


def _verdict(problem: Problem, output: SelfCheckOutput) -> WeakVerdict:
    """What the driver said. Raises ProblemError when it did not say."""
    said = read_output(output.text, output.returncode)
    if said is WeakVerdict.UNCLEAR:
        raise ProblemError(
            f"the driver of {problem.slug} says neither passed nor failed: {_last_line(output.text)!r}",
            hint="have it print `passed` or `failed` on a line of its own",
        )
    return said


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else ""
