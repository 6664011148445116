"""One candidate under evaluation: the stages that fill in its `Evaluation`, until one of them refuses it.

All its processes, the profiled one among them, start together, on a GPU while it is being compiled, and end while
something else goes on; in company the profiled one starts last. What is left of a start counts for the stage that waits
for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from kernelblaster.devices.base import Build, Candidate
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import RunFailure
from kernelblaster.errors import DeviceMemoryFull
from kernelblaster.evaluation.context import EvaluationContext
from kernelblaster.evaluation.correctness.input_store import InputSet
from kernelblaster.evaluation.correctness.verify import Verification, Verifier
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.integrity.timed_checks import Looks
from kernelblaster.evaluation.processes.candidate_process import CandidateProcess, Compiling, StillCompiling, compiling
from kernelblaster.evaluation.processes.timed_pair import TimedPair
from kernelblaster.evaluation.results import Comparison, Decision, Evaluation, Verdict
from kernelblaster.evaluation.stages import EvaluationStages
from kernelblaster.evaluation.tiers import QUICK_SECONDS, Tier
from kernelblaster.evaluation.timing.baseline_session import BaselineFailed
from kernelblaster.evaluation.timing.batch_clock import BatchClock, slot_bytes
from kernelblaster.evaluation.timing.batch_rule import Allowance, calls_for_batches
from kernelblaster.evaluation.timing.clock_agreement import ImpossibleTime
from kernelblaster.evaluation.timing.stopwatch import Stopwatch, combined
from kernelblaster.problems.problem import Problem

REPEATED_SECONDS = 1.5
"""Wall seconds of each comparison after the first, where several pairs of processes are asked for."""
EARLY_BYTES = 1 << 30
"""Larger inputs are loaded only for a candidate that passed the cheap size: a wrong one should not wait for them."""
ROOM = 8
"""Times that inputs must fit the device for the profiler to load its own while a candidate is verified and timed."""


_STREAMS = "a kernel with streams of its own, whose work can begin before the start event, is credited with no more"
_WAITS = "the launcher waits for the GPU, so that calls cannot be launched ahead and host time counts"


class EvaluationPipeline(EvaluationStages):
    """Evaluates one candidate, once.

    Args:
        judge: device, inputs, configuration and plan.
        problem: what the candidate solves.
        source: its source, in CUDA C++ or Python.
        tier: how far it goes.
    """

    def __init__(self, judge: EvaluationContext, problem: Problem, source: str, tier: Tier = Tier.FULL) -> None:
        super().__init__(judge, problem, source)
        self._evaluation.tier = tier
        self._seconds = QUICK_SECONDS if tier is Tier.QUICK else math.inf
        self._plan = judge.plan(problem)
        config = judge.config
        self._verifier = Verifier(
            judge.device, judge.inputs, config.error_factor, config.timeout_s, all_sets=config.all_sets
        )
        self._evaluation.outputs_judged = self._plan.timed.judged
        self._evaluation.input_sets = self._plan.judged_sets
        self._final = False
        self._baseline_failed = ""

    def run(self, baseline: str | None, *, profile: bool, process_pairs: int = 1) -> Evaluation:
        """Go through the stages, the last one in as many pairs of processes. Raises DeviceError and ProblemError."""
        self._final = process_pairs > 1
        if not self._translated():
            return self._evaluation
        harness = self._judge.device.prepare(self._problem, self._judge.precision_of(self._problem))
        if self._evaluation.tier is Tier.COMPILE:
            if self._built(lambda: self._build(harness)) is not None:
                self._refuse(Verdict.BUILT, "it builds; the tier `compile` runs nothing")
        elif harness.program is not None:
            with compiling(lambda: self._build(harness), harness, self._judge.libraries) as candidate:
                self._evaluate_against(candidate, baseline, profile=profile, process_pairs=process_pairs)
        elif (build := self._built(lambda: self._build(harness))) is not None:
            self._evaluate_against(build, baseline, profile=profile, process_pairs=process_pairs)
        return self._evaluation

    def _evaluate_against(
        self, candidate: Compiling | Build, baseline: str | None, *, profile: bool, process_pairs: int
    ) -> None:
        baseline_build = None if baseline is None else self._build_baseline(baseline, candidate.harness)
        correct = self._examine(candidate, baseline_build, profile=profile)
        if correct and baseline_build is not None and process_pairs > 1:
            self._repeat(candidate.built(), baseline_build, process_pairs)

    def _examine(self, candidate: Compiling | Build, baseline: Build | None, *, profile: bool) -> bool:
        """One hold of the device: verify, time, profile. Whether it is correct.

        Where nobody else measures, the device is held while the candidate is still being compiled: its processes load
        their inputs meanwhile. It is given back before counts are read.
        """
        with self._stage("inputs"):
            self._checks = self._judge.checks(self._problem, self._guarded)
        if self._judge.in_company:
            built = isinstance(candidate, Build) or self._built(candidate.finished) is not None
            return built and self._stages(candidate, baseline, ExitStack(), profile=profile)
        if isinstance(candidate, Compiling):
            with ExitStack() as hold, suppress(StillCompiling):
                if hold.enter_context(self._alone(self._judge.holding(wait=False))):
                    return self._stages(candidate, baseline, hold, profile=profile)
            if self._built(candidate.finished) is None:
                return False
        with ExitStack() as hold:
            self._judge.inputs.tell(f"waiting for the device with a kernel for {self._problem.id}")
            hold.enter_context(self._alone(self._judge.holding()))
            return self._stages(candidate, baseline, hold, profile=profile)

    def _stages(self, candidate: Candidate, baseline: Build | None, hold: ExitStack, *, profile: bool) -> bool:
        judge, plan = self._judge, self._plan
        with ExitStack() as stack:
            with self._guarded(judge.verifying()):
                with self._stage("inputs"):
                    judge.inputs.draw(plan.verified)  # there, unless others needed the room meanwhile
                    drawn = stack.enter_context(judge.inputs.use(plan.timed))
                pair = stack.enter_context(self._pair(drawn))
                if not self._passes(pair, candidate, baseline, profile=profile and not judge.in_company):
                    return False
                with self._stage("time"):
                    pair.settle()
            if self._evaluation.tier is Tier.CORRECT:
                return True
            if not self._measure(pair, most_seconds=self._seconds):
                return False
            if profile:
                self._profile(candidate, pair, hold)
            return True

    def _passes(
        self, pair: TimedPair[InputSet], candidate: Candidate, baseline: Build | None, *, profile: bool
    ) -> bool:
        """Verify the cheap size with all distributions, undeclared sizes, then the timed one.

        Only processes of the timed size are left afterwards: nothing disturbs what is timed.
        """
        verifier, plan = self._verifier, self._plan
        apart = plan.timed not in plan.small
        early = apart and pair.drawn.file_bytes <= EARLY_BYTES
        with ExitStack() as stack:
            if early and profile:
                pair.start_profiler(candidate)  # it takes longest
            cheap = stack.enter_context(verifier.start(candidate, plan.small[0])) if plan.small else None
            others = [stack.enter_context(verifier.start(candidate, keys[0])) for keys in plan.unseen]
            if early:
                pair.start(candidate, baseline)
            if self._built(candidate.built) is None:
                return False
            if cheap is not None and not self._verify(lambda: verifier.verify(cheap, plan.small)):
                return False
            for other, keys in zip(others, plan.unseen, strict=True):
                if not self._verify(partial(self._verify_unseen, other, keys)):
                    return False
        if not early:
            if apart and profile and pair.drawn.file_bytes <= self._judge.facts.memory_bytes / ROOM:
                pair.start_profiler(candidate)
            pair.start(candidate, baseline)
        pair.started()
        if not apart or not plan.timed.judged:
            return True
        return self._verify(lambda: verifier.verify_timed(pair))

    def _repeat(self, build: Build, baseline: Build, process_pairs: int) -> None:
        """Compare again in fresh processes and combine; only what seems faster, and only where times are measured."""
        judge, found = self._judge, self._evaluation.comparison
        if judge.facts.kind is DeviceKind.EMULATED or found is None or found.decision is not Decision.FASTER:
            return
        taken = [found]
        while len(taken) < process_pairs:
            with self._alone(judge.holding()), ExitStack() as stack:
                with self._guarded(judge.verifying()):
                    drawn = stack.enter_context(judge.inputs.use(self._plan.timed))
                    pair = stack.enter_context(self._pair(drawn))
                    pair.start(build, baseline)
                    pair.started()
                if not self._measure(pair, most_seconds=REPEATED_SECONDS):
                    return
            if self._evaluation.comparison is taken[-1] or self._evaluation.comparison is None:
                return
            taken.append(self._evaluation.comparison)
        self._evaluation.comparison = combined(taken)
        self._evaluation.timing = self._evaluation.comparison.candidate

    def _pair(self, drawn: InputSet) -> TimedPair[InputSet]:
        judge = self._judge
        budget = 0 if self._plan.timed.judged else judge.instruction_budget
        return TimedPair(judge.device, judge.inputs.directory, drawn, judge.config.timeout_s, budget)

    def _verify_unseen(self, process: CandidateProcess, keys: Sequence[InputKey]) -> Verification:
        """Call a candidate at extents that no prompt shows. Raises DeviceError and ProblemError."""
        found = self._verifier.verify(process, keys)
        if found.verdict is not Verdict.CORRECT:
            key = keys[0]
            values = {**key.problem.workloads[key.workload], **key.problem.scalars}
            told = ", ".join(f"{name} = {value:g}" for name, value in values.items())
            found.reason = f"at a size that is not declared ({told}): {found.reason}"
        return found

    def _verify(self, verification: Callable[[], Verification]) -> bool:
        with self._stage("verify"):
            found = verification()
        return self._take(found)

    def _measure(self, pair: TimedPair[InputSet], most_seconds: float = math.inf) -> bool:
        """Time the candidate, against its baseline if there is one. Whether it is still correct."""
        try:
            with self._stage("time"):
                looks = self._checks.looks(pair)
                with self._alone(self._judge.measuring()):
                    self._time(self._stopwatch(looks, most_seconds), pair, looks)
                with self._guarded(self._judge.verifying()):
                    looks.finish()
                    pair.retire()
                    return self._take(self._checks.judge(self._verifier, pair)) and self._let_live(pair)
        except ImpossibleTime as impossible:
            self._refuse(Verdict.REWARD_HACK, impossible.reason)
        except RunFailure as failure:
            self._refuse(Verdict(failure.kind.value), f"while being timed: {failure.reason}", failure.log)
        return False

    def _let_live(self, pair: TimedPair[InputSet]) -> bool:
        """Whether a baseline that failed beside the candidate fails without it, too. Raises DeviceError."""
        if not self._baseline_failed or not pair.baseline_runs_alone():
            return True
        reason = "it leaves no room for others: beside its process the baseline fails, alone it runs"
        self._refuse(Verdict.RUNTIME_ERROR, f"{reason} ({self._baseline_failed})")
        return False

    def _stopwatch(self, looks: Looks, most_seconds: float) -> Stopwatch:
        judge = self._judge
        return Stopwatch(
            judge.facts,
            judge.floor_us(self._problem),
            min(judge.config.max_seconds_timing, most_seconds),
            reading=judge.device.reading,
            schedule=looks.schedule,
            look=looks,
            attainable_us=judge.attainable(self._problem).us,
        )

    def _time(self, watch: Stopwatch, pair: TimedPair[InputSet], looks: Looks) -> None:
        """Compare with the baseline, or time alone without one. Raises ImpossibleTime and RunFailure."""
        evaluation, candidate = self._evaluation, pair.candidate()
        try:
            baseline = pair.baseline()
            if baseline is not None:
                evaluation.comparison = self._confirmed(watch.compare(candidate, baseline), pair, looks)
                evaluation.timing = evaluation.comparison.candidate
                return
        except BaselineFailed as failure:
            pair.dismiss_baseline()
            self._baseline_failed = failure.reason
            self._warn(f"no comparison: the baseline does not run ({failure.reason})")
        evaluation.comparison = None
        evaluation.timing = watch.time_alone(candidate)

    def _confirmed(self, claimed: Comparison, pair: TimedPair[InputSet], looks: Looks) -> Comparison:
        """A comparison that batches of calls do not contradict, by a clock out of the candidate's reach.

        Raises ImpossibleTime, RunFailure, BaselineFailed and DeviceError.
        """
        clock = BatchClock(self._judge.facts, slot_bytes(pair.drawn.specs), self._checks.perturbations, pair.look)
        asked = self._checks.changing and clock.has_room and calls_for_batches(claimed, final=self._final)
        batches = pair.batches() if asked else None
        if batches is None:
            return claimed
        looks.finish()
        found = clock.confirm(claimed, *batches, Allowance.of(self._own_streams))
        if found.speedup < claimed.speedup:
            reason = self._why_less(found)
            self._warn(f"{found.speedup:.2f}x instead of the {claimed.speedup:.2f}x that the events say: {reason}")
        return found

    def _why_less(self, found: Comparison) -> str:
        """Why batches credit a claim with less than the events say."""
        if found.batches is None or not found.batches.launches_hidden:
            return _WAITS
        if not self._own_streams:
            return "calls in a row gain no more by the judge's clock"
        return f"calls in a row gain that by the judge's clock, and {_STREAMS} ({', '.join(self._own_streams)})"

    def _profile(self, candidate: Candidate, pair: TimedPair[InputSet], hold: ExitStack) -> None:
        """Counters of one call. A profiler that fails takes nothing back from a correct, timed candidate.

        In company it starts only now: counters serve one program, however long that waits.
        """
        judge = self._judge
        try:
            with self._stage("profile"):
                with self._guarded(judge.counting()):
                    if judge.in_company:
                        with self._guarded(judge.verifying()):
                            pair.start_profiler_last(candidate)
                    with self._alone(judge.measuring()):
                        read = pair.profile(candidate)
                hold.close()
                self._evaluation.profile = read()
        except RunFailure as failure:
            self._warn(f"no profile: {failure.reason}")
        except DeviceMemoryFull as failure:
            self._warn(f"no profile: {failure.message}")

    def _take(self, found: Verification) -> bool:
        """Add a verification to the evaluation. Whether the candidate passed."""
        self._evaluation.errors += found.errors
        for warning in found.warnings:
            self._warn(warning)
        if found.verdict is Verdict.CORRECT:
            return True
        self._refuse(found.verdict, found.reason, found.log)
        return False
