"""Turns completions into rewards. Each kernel is judged once, and its evaluation is kept on disk by content.

A failure that no candidate caused (a lost GPU, a full disk) gives no reward: the completion is left out of its group.
If that happens to many completions of a batch, training stops.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from kernelblaster.agent.files import EvaluationKey, ProblemFiles
from kernelblaster.config.training import Baseline
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge, require_sound_start
from kernelblaster.environment.observation import NO_CODE
from kernelblaster.environment.rewards import SUSPICIOUS_SPEEDUP, RewardScheme, rewarded, speedup_of
from kernelblaster.environment.staged_rewards import ProfileAware
from kernelblaster.errors import DeviceError, MachineError
from kernelblaster.evaluation.against_pytorch import against_pytorch
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.evaluation.timing.pytorch_times import ModeTime
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.start import read_start
from kernelblaster.training.comparing import lacks_signs
from kernelblaster.training.replies import read_completion
from kernelblaster.training.rollouts import JudgedCompletion, Rollout, RolloutStore
from kernelblaster.training.rows import PromptRow
from kernelblaster.version import __version__

MOST_LOST = 0.2
"""Share of a batch that may stay without a reward for the machine's sake."""
MACHINE = "machine_failure"
"""In the place of a verdict where the machine failed."""
COMPARED_WITH = {
    Baseline.START: "the start",
    Baseline.PARENT: "the kernel of the first prompt",
    Baseline.PYTORCH: "the start",
}
"""What the judge's own comparison is with, in words: it never times a candidate beside PyTorch."""


@dataclass(frozen=True)
class PolicyCompletion:
    """What a policy wrote.

    Attributes:
        row: the prompt.
        text: the reply.
        tokens: of the reply.
        truncated: it ends for want of tokens.
    """

    row: PromptRow
    text: str
    tokens: int
    truncated: bool = False

    @classmethod
    def of_tokens(cls, row: PromptRow, text: str, ids: Sequence[int], ends: Collection[int]) -> PolicyCompletion:
        """A completion from its tokens; one that ends with none of `ends` was truncated."""
        return cls(row, text, len(ids), truncated=not ids or ids[-1] not in ends)


@dataclass(frozen=True)
class Place:
    """Where a completion belongs within a step; see `Rollout`."""

    index: int
    group: int
    turn: int = 0
    dialogue: int | None = None
    follows: tuple[int, int] | None = None


class StoredJudge:
    """The judge of a training run, with its evaluations on disk.

    Args:
        judge: judges and remembers within this process.
        catalogue: the problems.
        directory: evaluations and kernels lie below it, by problem.
    """

    def __init__(self, judge: SharedJudge, catalogue: Catalogue, directory: Path) -> None:
        self.shared = judge
        self._catalogue = catalogue
        self._directory = directory
        self.judged = 0
        """Evaluations made by this process, beside those that were found."""

    def problem(self, name: str) -> Problem:
        """A problem by its id. Raises UnknownProblem."""
        return self._catalogue.find(name)

    def start(self, problem: Problem) -> str:
        """The problem's start, once it was judged correct. Raises DeviceError, ProblemError."""
        source = read_start(problem)
        require_sound_start(problem, self.evaluate(problem, source, source)[1])
        return source

    def evaluate(
        self, problem: Problem, source: str, baseline: str | None = None, *, profile: bool = False, repeat: int = 0
    ) -> tuple[str, Evaluation]:
        """The evaluation of a kernel against a correct one, or against the problem's start, with its name on disk.

        `profile` collects hardware counters of a correct one; `repeat` tells several evaluations of the same apart.

        Raises DeviceError, ProblemError.
        """
        files = ProblemFiles(self._directory / str(problem.id))
        purpose = f"train{'-profiled' if profile else ''}{'-again' * repeat}/{__version__}"
        name = self._key(source, baseline, purpose).name
        found = files.find_evaluation(name)
        if found is None:
            against = self.start(problem) if baseline is None else baseline
            found = self.shared.evaluate(problem, source, profile=profile, baseline=against, repeat=repeat)
            files.put_candidate(source)
            files.put_evaluation(name, found)
            self.judged += 1
        return name, found

    def recall(self, rollout: Rollout) -> Evaluation | None:
        """The evaluation that a rollout rests on; None where nothing was evaluated, or by another version."""
        if not rollout.evaluation:
            return None
        directory = self._directory / str(self.problem(rollout.problem).id)
        return ProblemFiles(directory).find_evaluation(rollout.evaluation)

    def _key(self, source: str, baseline: str | None, purpose: str) -> EvaluationKey:
        conditions = self.shared.conditions
        return EvaluationKey(
            source=source_digest(source),
            baseline=None if baseline is None else source_digest(baseline),
            device=f"{conditions['device']}/{conditions['device_name']}",
            precision=conditions["precision"],
            workload=conditions["workload"],
            purpose=purpose,
        )


@dataclass(frozen=True)
class Scorer:
    """Gives completions their rewards.

    Attributes:
        judge: of the training run.
        scheme: turns an evaluation into a reward.
        baseline: what speed-ups are against.
        threads: kernels judged at once.
        profile: collect hardware counters of correct kernels.
        pytorch: PyTorch's time of each problem, for that baseline.
        deadline_s: seconds after which no kernel of a step begins to be judged; those that wait are the machine's loss.
    """

    judge: StoredJudge
    scheme: RewardScheme
    baseline: Baseline = Baseline.START
    threads: int = 1
    profile: bool = False
    pytorch: Mapping[str, ModeTime] = field(default_factory=dict, hash=False)
    deadline_s: float = math.inf

    def score(self, completions: Sequence[PolicyCompletion]) -> list[JudgedCompletion]:
        """What became of each. Raises MachineError where the machine failed more than `MOST_LOST` of them."""
        with ThreadPoolExecutor(max(1, self.threads), thread_name_prefix="judge") as threads:
            judged = list(threads.map(partial(self._score, time.monotonic() + self.deadline_s), completions))
        lost = sum(one.verdict == MACHINE for one in judged)
        if lost > MOST_LOST * len(judged):
            reason = next(one.reason for one in judged if one.verdict == MACHINE)
            raise MachineError(
                f"{lost} of {len(judged)} completions could not be judged: {reason}",
                hint="mend the machine and start the same command again: what was judged is kept",
            )
        return judged

    def compared_again(self, row: PromptRow, source: str, repeat: int) -> Evaluation:
        """A kernel compared once more, in fresh processes. Raises DeviceError."""
        problem = self.judge.problem(row.problem)
        return self._compared(problem, source, self._parent(row), repeat=repeat)[1]

    def _parent(self, row: PromptRow) -> str | None:
        return row.parent if self.baseline is Baseline.PARENT and row.parent else None

    def _score(self, latest: float, completion: PolicyCompletion) -> JudgedCompletion:
        row, started = completion.row, time.monotonic()
        submission = read_completion(completion.text, row)
        if submission.source is None:
            reward = rewarded(self.scheme, None)
            return JudgedCompletion(verdict=NO_CODE, reason=submission.reason, reward=reward.value, parts=reward.parts)
        if started > latest:
            reason = f"it was not its turn within {self.deadline_s / 60:g} minutes (train.judge_minutes)"
            return JudgedCompletion(verdict=MACHINE, reason=reason, reward=None)
        baseline = self._parent(row)
        try:
            problem = self.judge.problem(row.problem)
            key, found = self._evaluated(problem, submission.source, baseline)
        except DeviceError as error:
            return JudgedCompletion(verdict=MACHINE, reason=error.message, reward=None)
        reward = rewarded(self._scheme_for(row, submission.source, found), found)
        comparison = found.comparison if found.correct else None
        untimed = found.correct and comparison is None  # the baseline failed: no word on this candidate
        return JudgedCompletion(
            verdict=found.verdict,
            reason=found.reason,
            reward=None if reward.device_limit or untimed else reward.value,
            parts=reward.parts,
            hack=reward.hack,
            suspicious=reward.suspicious,
            device_limit=reward.device_limit,
            decision="" if comparison is None else comparison.decision,
            speedup=None if comparison is None else comparison.speedup,
            speedup_low=None if comparison is None else comparison.low,
            speedup_high=None if comparison is None else comparison.high,
            source_sha256=source_digest(submission.source),
            evaluation=key,
            judge_seconds=time.monotonic() - started,
        )

    def _evaluated(self, problem: Problem, source: str, baseline: str | None) -> tuple[str, Evaluation]:
        """An evaluation; of a gain that is hardly to be believed a second one, in fresh processes, if that is worse."""
        key, found = self._compared(problem, source, baseline)
        if speedup_of(found) <= SUSPICIOUS_SPEEDUP:
            return key, found
        again, second = self._compared(problem, source, baseline, repeat=1)
        return (again, second) if speedup_of(second) < speedup_of(found) else (key, found)

    def _compared(
        self, problem: Problem, source: str, baseline: str | None, *, repeat: int = 0
    ) -> tuple[str, Evaluation]:
        """An evaluation with what speed-ups are against."""
        key, found = self.judge.evaluate(problem, source, baseline, profile=self.profile, repeat=repeat)
        if self.baseline is Baseline.PYTORCH:
            found = against_pytorch(found, self.pytorch.get(str(problem.id)))
        return key, found

    def _scheme_for(self, row: PromptRow, source: str, found: Evaluation) -> RewardScheme:
        if not isinstance(self.scheme, ProfileAware):
            return self.scheme
        return replace(self.scheme, technique_missing=lacks_signs(row, source, found))


def judge_step(
    step: int, completions: Sequence[tuple[Place, PolicyCompletion]], scorer: Scorer, store: RolloutStore
) -> list[Rollout]:
    """The rollout of each completion of a step; those that the store lacks are judged and stored first.

    Raises MachineError where the machine failed to judge many of them.
    """
    missing = [(place, one) for place, one in completions if store.rollout(step, place.index) is None]
    judged = scorer.score([one for _, one in missing])
    for (place, completion), outcome in zip(missing, judged, strict=True):
        store.keep(
            Rollout(
                **outcome.model_dump(),
                step=step,
                **asdict(place),
                problem=completion.row.problem,
                prompt=completion.row.digest,
                completion=completion.text,
                tokens=completion.tokens,
                truncated=completion.truncated,
            )
        )
    found = (store.rollout(step, place.index) for place, _ in completions)
    return [rollout for rollout in found if rollout is not None]
