"""Candidate in, `Evaluation` out: build, verify, time against a rival, profile.

A bad candidate is a verdict, never an exception; what no candidate caused (a lost GPU, a full disk, a broken
reference) is an exception, never a verdict. Safe for many threads: builds overlap, and everything that runs on a real
GPU holds the device, because a kernel that is verified would disturb one that is timed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Generic, TypeVar

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.base import (
    NO_TENSORS,
    BuildFailure,
    Device,
    DeviceFacts,
    DeviceKind,
    Job,
    Library,
    RunFailure,
    SanitizerFinding,
)
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.bench import Bench
from kernelblaster.evaluation.case import Case
from kernelblaster.evaluation.checks import TimedChecks, choose_checks
from kernelblaster.evaluation.foreign import ForeignCase, idle_passes
from kernelblaster.evaluation.inputs import InputStore
from kernelblaster.evaluation.plan import InputPlan, plan_inputs, secret_seed
from kernelblaster.evaluation.roofline import floor_us
from kernelblaster.evaluation.types import Evaluation
from kernelblaster.problems.problem import Precision, Problem, Size
from kernelblaster.problems.unseen import unseen

Value = TypeVar("Value")


class _OncePerProblem(Generic[Value]):
    """What is computed for each problem when it is first asked for; other threads wait meanwhile."""

    def __init__(self, compute: Callable[[Problem], Value]) -> None:
        self._compute = compute
        self._known: dict[Problem, Value] = {}
        self._lock = threading.Lock()

    def of(self, problem: Problem) -> Value:
        """Its value. Raises what computing it raises, and then knows nothing."""
        with self._lock:
            if problem not in self._known:
                self._known[problem] = self._compute(problem)
            return self._known[problem]


class Evaluator:
    """Judges candidates on one device, at one precision and size.

    Args:
        device: where candidates run.
        inputs: draws and keeps input sets; owned by the caller.
        config: how hard candidates are checked and timed.
        size: the size that is timed and profiled.
        libraries: libraries that candidates may link.
        precision: storage type of floating-point tensors.
        seed: makes the input sets the same again; None draws a secret one.
    """

    def __init__(
        self,
        device: Device,
        inputs: InputStore,
        config: EvaluationConfig,
        size: Size,
        libraries: Sequence[Library] = (),
        *,
        precision: Precision,
        seed: int | None = None,
    ) -> None:
        self.device = device
        self.precision = precision
        self.size = size
        self.seed = secret_seed() if seed is None else seed
        self.inputs = inputs
        self.config = config
        self.libraries = tuple(libraries)
        self._floors = _OncePerProblem(lambda problem: floor_us(problem, self.size, self.precision, self.facts))
        self._checks = _OncePerProblem(self._choose_checks)
        self._idle_passes = _OncePerProblem(lambda problem: idle_passes(self, problem))
        self._unseen = _OncePerProblem(lambda problem: unseen(problem) if self.config.input_sets > 1 else None)

    @property
    def facts(self) -> DeviceFacts:
        """The device that candidates run on."""
        return self.device.facts

    def evaluate(
        self, problem: Problem, source: str, *, rival: str | None = None, profile: bool = True, sessions: int = 1
    ) -> Evaluation:
        """Build, verify, measure and profile one candidate.

        Args:
            problem: what it solves.
            source: its CUDA source.
            rival: source to compare with, sampled in turns; verified earlier, and not again here.
            profile: collect hardware counters.
            sessions: pairs of fresh processes in which a candidate that seems faster is compared. Times of a modelled
                device do not depend on the process: there it is one.

        Raises:
            DeviceError: the device failed.
            ProblemError: the problem's reference or driver failed.
            UsageError: a weakly verified problem on a modelled device.
        """
        if problem.weakly_verified:
            return ForeignCase(self, problem, source).run(rival, profile=profile, sessions=sessions)
        self._check_size(problem)
        return Case(self, problem, source).run(rival, profile=profile, sessions=sessions)

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        """Run the device's sanitizers on one call at the cheap size.

        A candidate that does not build or run is a finding. Raises DeviceError.
        """
        try:
            build = self.device.build(source, self.device.prepare(problem, self.precision), self.libraries)
            with self.holding(), self._cheap_job(problem) as job:
                return self.device.sanitize(build, job, timeout_s=self.config.timeout_s)
        except (BuildFailure, RunFailure) as failure:
            return [SanitizerFinding(tool=failure.kind.value, message=failure.reason)]

    @contextmanager
    def _cheap_job(self, problem: Problem) -> Iterator[Job]:
        """One call at the cheap size."""
        if problem.weakly_verified:
            yield NO_TENSORS
            return
        self._check_size(problem)
        plan = self.plan(problem)
        key = plan.small[0] if plan.small else plan.timed
        with self.inputs.use(key) as drawn, Bench(self.inputs.directory, drawn) as bench:
            yield bench.job

    def plan(self, problem: Problem) -> InputPlan:
        """The input sets that every candidate of a problem must pass. Raises ProblemError."""
        other = self._unseen.of(problem)
        sets, judged = self.config.input_sets, not self.sampling
        return plan_inputs(problem, self.precision, self.size, sets, self.seed, other, judge_timed=judged)

    @property
    def sample(self) -> int:
        """Warp instructions of a launch that are enough where outputs are not judged, see `Job`."""
        return int(1e6 * self.config.emulated_sample)

    @property
    def sampling(self) -> bool:
        """Whether blocks are sampled at a timed size that is not the cheap one; only a modelled device does that."""
        return self.facts.kind is DeviceKind.EMULATED and self.config.emulated_sample > 0

    def holding(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """The device, for as long as a real GPU is at work; whether it is held. A modelled one needs no guard."""
        return nullcontext(True) if self.facts.kind is DeviceKind.EMULATED else self.device.exclusive(wait=wait)

    def floor_us(self, problem: Problem) -> float:
        """Roofline floor of the timed size, computed once per problem."""
        return self._floors.of(problem)

    def checks(self, problem: Problem) -> TimedChecks:
        """Which timed calls are judged, chosen once per problem. The caller holds the device."""
        return self._checks.of(problem)

    def idle_passes(self, problem: Problem) -> bool:
        """Whether a weakly verified problem's driver passes a launcher that does nothing. The caller holds the device.

        Raises DeviceError and ProblemError.
        """
        return self._idle_passes.of(problem)

    def _choose_checks(self, problem: Problem) -> TimedChecks:
        timed = self.plan(problem).timed
        return choose_checks(self.inputs, timed, self.facts, self.seed, self.config.error_factor)

    def _check_size(self, problem: Problem) -> None:
        if self.size not in problem.sizes:
            raise UsageError(
                f"{problem.slug} declares no size {self.size}", cure=f"choose among {', '.join(problem.sizes)}"
            )
