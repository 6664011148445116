"""What all sessions share: one evaluator, a task per problem, and evaluations by content.

The same source on the same problem is judged once per process, whoever submits it; sessions that submit it at the same
time wait for one evaluation. The judge's seeds stay the evaluator's own: no argument of a session reaches them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, runtime_checkable

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceFacts, DeviceKind, Library
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.environment.baselines import KnownTimes, PytorchClock
from kernelblaster.environment.fair_queue import FairQueue, QueueLoad
from kernelblaster.environment.single_flight import SingleFlight
from kernelblaster.environment.task_text import PosedProblem, TaskText, posed, task_text
from kernelblaster.errors import DeviceError, ProblemError, UsageError
from kernelblaster.evaluation.against_pytorch import known_times
from kernelblaster.evaluation.attainable import attainable
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.evaluation.timing.pytorch_times import PytorchTimes, TimesKey
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.cores import known_kernel
from kernelblaster.knowledge.decisions import Classification
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.sound_reference import require_sound_reference
from kernelblaster.problems.start import read_start
from kernelblaster.version import __version__

MOST_EVALUATIONS = 4096
"""Kept by content; the one that was used longest ago goes first."""

_EvaluationId = tuple[str, str, str, bool, Tier, int]
"""Problem, source, baseline, whether it is profiled, tier, repeat."""


class KnownDevice(Protocol):
    """What must be known of a device."""

    @property
    def facts(self) -> DeviceFacts:
        """Its name, architecture and limits."""
        ...


class Judge(Protocol):
    """Judges candidates of one workload: an `Evaluator`, or `RemoteJudge` for one elsewhere. Safe for many threads."""

    precision: Precision
    workload: str
    libraries: tuple[Library, ...]

    @property
    def device(self) -> KnownDevice:
        """Where candidates run."""
        ...

    def evaluate(
        self,
        problem: Problem,
        source: str,
        *,
        baseline: str | None = None,
        profile: bool = True,
        tier: Tier = Tier.FULL,
    ) -> Evaluation:
        """A verdict for a bad candidate. Raises DeviceError, ProblemError for what no candidate caused."""
        ...

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        """What the device's sanitizers find in one call; nothing where it has none. Raises DeviceError."""
        ...


@runtime_checkable
class Watched(Protocol):
    """A judge that is watched, see `WatchedJudge`."""

    @property
    def failure(self) -> DeviceError | None:
        """Why it cannot be believed; None where nothing says so."""
        ...


@runtime_checkable
class SamplingJudge(Protocol):
    """A judge that says whether it executes large sizes whole."""

    @property
    def samples_blocks(self) -> bool:
        """As in `agent.task.Task`."""
        ...


class SharedJudge:
    """The evaluator of all sessions, with what it has found.

    Args:
        judge: builds, verifies and times; owned by the caller.
        queue: in which sessions wait for it; all are judged at once without one.
        pytorch: PyTorch's times; those that ship if None.
        clock: times PyTorch where it has none yet; nothing does if None.
    """

    def __init__(
        self,
        judge: Judge,
        queue: FairQueue | None = None,
        pytorch: Mapping[TimesKey, PytorchTimes] | None = None,
        clock: PytorchClock | None = None,
    ) -> None:
        self._judge = judge
        self._queue = queue
        self._pytorch, self._clock = pytorch, clock
        self._evaluations: SingleFlight[_EvaluationId, Evaluation] = SingleFlight(MOST_EVALUATIONS)
        self._findings: SingleFlight[tuple[str, str], tuple[SanitizerFinding, ...]] = SingleFlight(MOST_EVALUATIONS)
        self._tasks: SingleFlight[str, TaskText] = SingleFlight(MOST_EVALUATIONS)
        self._starts: SingleFlight[str, str] = SingleFlight(MOST_EVALUATIONS)
        self._experts: SingleFlight[str, str] = SingleFlight(MOST_EVALUATIONS)
        self._attainable: SingleFlight[str, float] = SingleFlight(MOST_EVALUATIONS)
        self._timed: SingleFlight[tuple[str, frozenset[TorchMode]], KnownTimes] = SingleFlight(MOST_EVALUATIONS)
        self._knowledge: SingleFlight[str, KnowledgeBase] = SingleFlight(1)

    @property
    def facts(self) -> DeviceFacts:
        """The device that candidates run on."""
        return self._judge.device.facts

    @property
    def load(self) -> QueueLoad | None:
        """How many submissions are judged and wait; None without a queue."""
        return None if self._queue is None else self._queue.load

    @property
    def failure(self) -> DeviceError | None:
        """Why nothing that is judged here can be believed; None where nothing says so."""
        return self._judge.failure if isinstance(self._judge, Watched) else None

    @property
    def conditions(self) -> dict[str, str]:
        """What evaluations rest on: device, precision, workload, version."""
        facts, judge = self.facts, self._judge
        return {
            "device": str(facts.kind),
            "device_name": facts.name,
            "arch": facts.arch,
            "precision": str(judge.precision),
            "workload": judge.workload,
            "version": __version__,
        }

    def pytorch(self, problem: Problem, wanted: frozenset[TorchMode] = frozenset(), session: str = "") -> KnownTimes:
        """PyTorch's times of a problem on this very GPU; none on an emulated one.

        Modes that are `wanted` are timed here, once, where that is possible. Raises DeviceError, EnvironmentBusy.
        """
        found = known_times(problem, self.facts, self.precision, self.workload, self._pytorch)
        times: KnownTimes = {} if found is None else found.times
        missing, clock = frozenset(wanted - times.keys()), self._clock
        if not missing or clock is None:
            return times

        def timed() -> KnownTimes:
            with self._turn(session):
                return clock(problem, missing)

        return {**times, **self._timed.get((str(problem.directory), missing), timed)}

    def attainable_us(self, problem: Problem) -> float:
        """What a well-written kernel is expected to reach at the timed size. Raises ProblemError."""
        precision = problem.precision_for(self.precision)
        return self._attainable.get(
            str(problem.directory), lambda: attainable(problem, self.workload, precision, self.facts).us
        )

    def task(self, problem: Problem) -> TaskText:
        """What is told of a problem. Raises ProblemError."""
        return self._tasks.get(str(problem.directory), lambda: task_text(self.pose(problem)))

    def evaluate(
        self,
        problem: Problem,
        source: str,
        *,
        profile: bool,
        baseline: str | None = None,
        tier: Tier = Tier.FULL,
        session: str = "",
        repeat: int = 0,
    ) -> Evaluation:
        """The judge's word on a source, timed in turns with a baseline.

        Args:
            problem: what it solves.
            source: the candidate.
            profile: collect hardware counters.
            baseline: a kernel that was judged correct; the problem's start if None.
            tier: how far it is judged.
            session: who waits for it, where there is a queue.
            repeat: which of several evaluations of the same source; each is made in fresh processes.

        Raises DeviceError, ProblemError, EnvironmentBusy.
        """
        profile = profile and tier is Tier.FULL
        baseline_digest = "" if baseline is None else source_digest(baseline)
        key = (str(problem.directory), source_digest(source), baseline_digest, profile, tier, repeat)

        def judged() -> Evaluation:
            with self._turn(session):
                against = (baseline or self.start(problem)) if tier.times else None
                return self._judge.evaluate(problem, source, baseline=against, profile=profile, tier=tier)

        return self._evaluations.get(key, judged)

    def sanitize(self, problem: Problem, source: str, session: str = "") -> tuple[SanitizerFinding, ...]:
        """What sanitizers find in a source, once for all sessions. Raises DeviceError, EnvironmentBusy."""

        def found() -> tuple[SanitizerFinding, ...]:
            with self._turn(session):
                return tuple(self._judge.sanitize(problem, source))

        return self._findings.get((str(problem.directory), source_digest(source)), found)

    def evaluate_anew(
        self,
        problem: Problem,
        source: str,
        *,
        profile: bool,
        baseline: str | None,
        tier: Tier,
        session: str,
    ) -> Evaluation:
        """As `evaluate`, but nothing is remembered, and without a baseline nothing is compared."""
        with self._turn(session):
            return self._judge.evaluate(problem, source, baseline=baseline, profile=profile, tier=tier)

    def _turn(self, session: str) -> AbstractContextManager[None]:
        return nullcontext() if self._queue is None else self._queue.turn(session)

    @property
    def libraries(self) -> tuple[Library, ...]:
        """That candidates may call."""
        return self._judge.libraries

    @property
    def precision(self) -> Precision:
        """That candidates are judged in, unless their problem has its own."""
        return self._judge.precision

    @property
    def workload(self) -> str:
        """Size that is timed."""
        return self._judge.workload

    @property
    def knowledge(self) -> KnowledgeBase:
        """The knowledge base that ships."""
        return self._knowledge.get(self.facts.arch, lambda: KnowledgeStore(seed_path(), owned=False).load())

    def classify(self, evaluation: Evaluation) -> Classification | None:
        """What limits a correct candidate, by the shipped knowledge base; None without counters."""
        profile = evaluation.profile
        if profile is None or not profile.kernels:
            return None
        return self.knowledge.classify(profile, self.facts, evaluation.timing)

    def pose(self, problem: Problem) -> PosedProblem:
        """A problem as this device poses it. Raises ProblemError."""
        judge = self._judge
        # One elsewhere does not say: an emulated device samples unless it is told not to.
        sampled = judge.samples_blocks if isinstance(judge, SamplingJudge) else self.facts.kind is DeviceKind.EMULATED
        return posed(problem, judge.precision, judge.workload, judge.libraries, self.facts, samples_blocks=sampled)

    def expert(self, problem: Problem, session: str) -> str:
        """The fastest verified kernel of a problem that the knowledge base holds, once it was judged correct here.

        Raises UsageError where it holds none that is, DeviceError, EnvironmentBusy.
        """
        return self._experts.get(str(problem.directory), lambda: self._checked_expert(problem, session))

    def _checked_expert(self, problem: Problem, session: str) -> str:
        cores = self.knowledge.document.cores
        precision = problem.precision_for(self.precision)
        known = known_kernel(problem, cores, self.facts, precision, self.libraries, self.attainable_us(problem))
        if known is None:
            here = [core for core in cores if core.arch == self.facts.arch and core.precision is precision]
            names = sorted({core.problem for core in here if core.whole is not None})
            raise UsageError(
                f"the knowledge base holds no kernel of {problem.slug} for {self.facts.arch} in {precision}",
                hint=f"it holds {', '.join(names) or 'none'}; every problem has the baselines start and attainable",
            )
        with self._turn(session):
            found = self._judge.evaluate(problem, known, baseline=None, profile=False, tier=Tier.CORRECT)
        if not found.correct:
            raise UsageError(
                f"the kernel of {problem.slug} that the knowledge base holds is {found.verdict} here: {found.reason}",
                hint="take the baseline start or attainable",
            )
        return known

    def start(self, problem: Problem) -> str:
        """The problem's start, once it was judged correct. Raises DeviceError, ProblemError."""
        return self._starts.get(str(problem.directory), lambda: self._checked_start(problem))

    def _checked_start(self, problem: Problem) -> str:
        start = read_start(problem)
        require_sound_reference(problem)
        require_sound_start(problem, self._judge.evaluate(problem, start, baseline=None, profile=False))
        return start


def require_sound_start(problem: Problem, found: Evaluation) -> None:
    """Raise DeviceError or ProblemError where this evaluation of a problem's start says that it is no baseline."""
    if found.verdict is Verdict.NOT_EMULATABLE:
        raise DeviceError(f"the start of {problem.slug} cannot be emulated: {found.reason}", hint="use a GPU")
    if not found.correct:
        raise ProblemError(
            f"the start of {problem.slug} is {found.verdict}: {found.reason}",
            hint="`kernelblaster problems check` shows which problems can serve",
        )
