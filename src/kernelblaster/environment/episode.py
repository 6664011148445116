"""One episode after another: `reset` poses a problem, `step` judges a submission, until the episode is over.

An error uses no turn. A closed episode refuses everything; `close` waits for a running evaluation and may be called
again.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from uuid import uuid4

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.actions import EpisodeState, KernelAction, ResetRequest, requested
from kernelblaster.environment.baselines import ChosenBaseline, EpisodeBaseline, KnownTimes
from kernelblaster.environment.catalogue import Catalogue, ProblemPool, problem_identifier
from kernelblaster.environment.choosing import choose_baseline
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.observation import KernelObservation, at_reset, of_evaluation, without_source
from kernelblaster.environment.rewards import (
    REWARDS,
    SUSPICIOUS_SPEEDUP,
    Reward,
    RewardOptions,
    RewardScheme,
    for_problem,
    rewarded,
    slower_of,
    speedup_of,
)
from kernelblaster.environment.sanitizing import (
    ToldFinding,
    fails_for_an_unknown_reason,
    may_be_sanitized,
    told_findings,
)
from kernelblaster.environment.submission import Language, Submission, read_submission
from kernelblaster.environment.task_text import TaskText
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Evaluation
from kernelblaster.problems.dataset import parse_levels
from kernelblaster.problems.problem import Problem

ONE_SHOT = "one-shot"
"""The line of submissions that begin an episode of one turn: all take turns as one session would."""
CONFIRMING = 1000
"""Added to the number of a measurement, is that of its confirmation."""
_SEED_BITS = 63
_NO_TIMES: KnownTimes = {}


class EpisodeOver(UsageError):
    """A step was asked for when no episode runs: none was begun, it is over, or the environment is closed."""


@dataclass(frozen=True)
class EnvironmentSettings:
    """What the episodes of a server share.

    Attributes:
        reward: name of a scheme of `REWARDS`.
        options: of that scheme.
        baseline: of episodes that do not name one.
        sanitizes: run sanitizers over what fails for an unknown reason, where a step does not say.
        confirms: measure a speed-up that is hardly to be believed twice, and take the lower; modelled times are
            always the same.
    """

    reward: str = "seed"
    options: RewardOptions = field(default_factory=RewardOptions)
    baseline: EpisodeBaseline = EpisodeBaseline.START
    sanitizes: bool = True
    confirms: bool = True

    @property
    def recorded(self) -> dict[str, object]:
        """What tells one reward from another."""
        return {
            "reward": self.reward,
            "speedup_cap": self.options.speedup_cap,
            "reward_grid": self.options.grid,
            "baseline": str(self.baseline),
        }

    def scheme(self) -> RewardScheme:
        """The scheme. Raises UsageError for an unknown name."""
        return REWARDS.get(self.reward)(self.options)


class KernelEpisodes:
    """One session: its episodes, one after another.

    Args:
        catalogue: the problems.
        judge: shared with other sessions.
        settings: shared with other sessions.
        session: for whom turns are kept in the judge's queue; episodes of one session share its turns.
    """

    def __init__(
        self, catalogue: Catalogue, judge: SharedJudge, settings: EnvironmentSettings, session: str = ""
    ) -> None:
        self._session = self._line = session or uuid4().hex
        self._catalogue = catalogue
        self._judge = judge
        self._settings = settings
        self._scheme = settings.scheme()
        self._baseline, self._pytorch = ChosenBaseline(), _NO_TIMES
        self._common = {
            "modelled": judge.facts.kind is DeviceKind.EMULATED,
            "metadata": {**judge.conditions, **settings.recorded},
        }
        self._lock = threading.RLock()
        self._closed = False
        self._problem: Problem | None = None
        self._request = ResetRequest()
        self._state = EpisodeState()

    @property
    def state(self) -> EpisodeState:
        """A copy of where the episode stands."""
        return self._state.model_copy()

    def reset(self, **arguments: object) -> KernelObservation:
        """Begin an episode; arguments as of `ResetRequest`. After an error the episode before goes on.

        Raises UsageError, ProblemError, and where a baseline is judged or timed first DeviceError, EnvironmentBusy.
        """
        with self._lock:
            self._require_open()
            request = requested(arguments)
            problem, seed = self._choose(request)
            kind = request.baseline or self._settings.baseline
            baseline = choose_baseline(kind, problem, self._judge, self._session)
            pytorch = self._judge.pytorch(problem, kind.modes, self._session)
            task = self._judge.task(problem)
            self._problem, self._request, self._line = problem, request, self._session
            self._baseline, self._pytorch = baseline, pytorch
            self._scheme = for_problem(self._settings.scheme(), pytorch)
            self._state = EpisodeState(
                episode_id=request.episode_id or uuid4().hex,
                problem_id=problem_identifier(problem),
                max_turns=request.max_turns,
                seed=seed,
            )
            described = task.description + _python_part(task, request.languages)
            first = at_reset(problem, task, described, request.max_turns)
            return first.model_copy(update=self._shared)

    def step(self, action: KernelAction) -> KernelObservation:
        """Judge a submission. Raises UsageError, DeviceError, ProblemError, EnvironmentBusy, and then uses no turn."""
        with self._lock:
            if self._problem is None and action.problem_id is not None:
                self.reset(problem_id=action.problem_id, max_turns=1)
                self._line = ONE_SHOT
            problem = self._require_running()
            self._require_same(problem, action.problem_id)
            submission = read_submission(action.code, action.language, self._request.languages)
            evaluation = None
            if submission.source is not None:
                evaluation = self._evaluated(problem, submission.source, action)
            reward = rewarded(self._scheme, evaluation)
            findings = self._sanitized(problem, submission, evaluation, action.sanitize)
            observation = self._observe(problem, submission, evaluation, reward, findings)
            self._note(submission, evaluation, reward)
            state = self._state
            return observation.model_copy(
                update={
                    **self._shared,
                    "turn": state.step_count,
                    "max_turns": state.max_turns,
                    "done": state.done,
                }
            )

    def close(self) -> None:
        """Refuse whatever comes, once what runs has ended."""
        with self._lock:
            self._closed = True

    @property
    def _shared(self) -> dict[str, object]:
        """What all observations of an episode have in common."""
        times = {str(mode): time.us for mode, time in self._pytorch.items()}
        return {**self._common, "baseline": str(self._baseline.kind), "pytorch_us": times}

    def _evaluated(self, problem: Problem, source: str, action: KernelAction) -> Evaluation:
        """The judge's word, against the episode's baseline. Raises DeviceError, ProblemError, EnvironmentBusy."""

        def measured(number: int, *, profile: bool) -> Evaluation:
            found = self._judge.evaluate(
                problem,
                source,
                profile=profile,
                baseline=self._baseline.source,
                tier=action.tier or self._request.tier,
                session=self._line,
                repeat=number,
            )
            return self._baseline.compared(found)

        found = measured(action.measurement, profile=action.profile)
        measurable = self._settings.confirms and self._judge.facts.kind is DeviceKind.CUDA
        if not measurable or speedup_of(found) <= SUSPICIOUS_SPEEDUP:
            return found
        return slower_of(found, measured(CONFIRMING + action.measurement, profile=False))

    def _sanitized(
        self, problem: Problem, submission: Submission, evaluation: Evaluation | None, asked: bool | None
    ) -> tuple[ToldFinding, ...] | None:
        """What sanitizers find in a submission; None where they do not run. Raises EnvironmentBusy, DeviceError."""
        if submission.source is None or evaluation is None or not may_be_sanitized(evaluation):
            return None
        wanted = self._settings.sanitizes and fails_for_an_unknown_reason(evaluation) if asked is None else asked
        if not wanted:
            return None
        return told_findings(self._judge.sanitize(problem, submission.source, self._line), submission.source)

    def _observe(
        self,
        problem: Problem,
        submission: Submission,
        evaluation: Evaluation | None,
        reward: Reward,
        findings: tuple[ToldFinding, ...] | None,
    ) -> KernelObservation:
        if submission.source is None or evaluation is None:
            return without_source(problem, submission.reason, reward)
        against = self._baseline.kind.told
        return of_evaluation(problem, submission.source, evaluation, reward, self._judge, against, findings)

    def _note(self, submission: Submission, evaluation: Evaluation | None, reward: Reward) -> None:
        """Take a turn, and keep the best submission."""
        before = self._state
        turn = before.step_count + 1
        speedup = _speedup(evaluation)
        after: dict[str, object] = {"step_count": turn}
        if evaluation is not None and evaluation.correct:
            after["solved"] = True
        if speedup is not None and (before.best_speedup is None or speedup > before.best_speedup):
            after["best_speedup"] = speedup
        if before.best_reward is None or reward.value > before.best_reward:
            source = submission.source
            after |= {"best_reward": reward.value, "best_sha256": None if source is None else source_digest(source)}
        after["done"] = (
            turn >= before.max_turns
            or reward.hack
            or (self._request.stop_at_highest and reward.value >= self._scheme.highest)
            or (self._request.stop_at is not None and speedup is not None and speedup >= self._request.stop_at)
        )
        self._state = before.model_copy(update=after)

    def _choose(self, request: ResetRequest) -> tuple[Problem, int | None]:
        """The problem, and the seed that drew it. Raises UsageError."""
        if request.problem_id is not None:
            if request.split is not None or request.index is not None or request.levels is not None:
                raise UsageError("problem_id names the problem already", hint="drop split, index and levels")
            return self._catalogue.find(request.problem_id), None
        if request.index is not None:
            if request.split is None or request.levels is not None:
                raise UsageError("an index is the place in a split", hint="give split and index alone")
            return self._catalogue.at(request.split, request.index), None
        seed = secrets.randbits(_SEED_BITS) if request.seed is None else request.seed
        levels = () if request.levels is None else _levels(request.levels)
        return self._catalogue.draw(seed, ProblemPool(request.split, levels)), seed

    def _require_open(self) -> None:
        if self._closed:
            raise EpisodeOver("this environment is closed", hint="connect again")

    def _require_running(self) -> Problem:
        self._require_open()
        if self._problem is None:
            raise EpisodeOver(
                "no episode has begun",
                hint="call reset first, on the same websocket; over HTTP, which remembers nothing between requests, "
                "name problem_id in the action",
            )
        if self._state.done:
            raise EpisodeOver(
                f"the episode was over after {self._state.step_count} of {self._state.max_turns} turns",
                hint="call reset to begin another",
            )
        return self._problem

    def _require_same(self, problem: Problem, name: str | None) -> None:
        """Raise UsageError when a submission names another problem than the episode's."""
        if name is not None and self._catalogue.find(name) is not problem:
            raise UsageError(
                f"the episode's problem is {problem_identifier(problem)}, not {name}", hint="leave problem_id out"
            )


@dataclass(frozen=True)
class KernelEnvironments:
    """What makes sessions: all share its judge.

    Attributes:
        catalogue: the problems.
        judge: of all sessions.
        settings: of all sessions.
    """

    catalogue: Catalogue
    judge: SharedJudge
    settings: EnvironmentSettings

    def session(self, name: str = "") -> KernelEpisodes:
        """A session for one client, under a name of its own if none is given; those of one name take turns as one."""
        return KernelEpisodes(self.catalogue, self.judge, self.settings, name)


def _python_part(task: TaskText, languages: list[Language]) -> str:
    """What the description says of Python; nothing where it was not asked for."""
    asked = set(languages)
    triton = task.python_alone if asked == {Language.TRITON} else task.python_form
    inline = task.inline_alone if asked == {Language.INLINE} else task.inline_form
    return (triton if Language.TRITON in asked else "") + (inline if Language.INLINE in asked else "")


def _levels(given: str | list[int | str]) -> tuple[int, ...]:
    return parse_levels(given if isinstance(given, str) else [str(level) for level in given])


def _speedup(evaluation: Evaluation | None) -> float | None:
    """Of a correct candidate that is decided faster or slower."""
    found = evaluation.comparison if evaluation is not None and evaluation.correct else None
    return None if found is None or found.decision is Decision.INCONCLUSIVE else found.speedup
