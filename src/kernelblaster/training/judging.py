"""Turns completions into rewards. Each kernel is judged once, and its evaluation is kept on disk by content.

A failure that no candidate caused (a lost GPU, a full disk) gives no reward: the completion is left out of its group.
If that happens to many completions of a batch, training stops.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.agent.files import EvaluationKey, ProblemFiles
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.observation import NO_CODE
from kernelblaster.environment.rewards import RewardScheme, rewarded
from kernelblaster.errors import DeviceError, MachineError
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.problems.problem import Problem
from kernelblaster.training.replies import read_completion
from kernelblaster.training.rollouts import Judged, Rollout, RolloutStore
from kernelblaster.training.rows import PromptRow
from kernelblaster.version import __version__

MOST_LOST = 0.2
"""Share of a batch that may stay without a reward for the machine's sake."""
MACHINE = "machine_failure"
"""In the place of a verdict where the machine failed."""


@dataclass(frozen=True)
class Completion:
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
    def of_tokens(cls, row: PromptRow, text: str, ids: Sequence[int], ends: Collection[int]) -> Completion:
        """A completion from its tokens; one that ends with none of `ends` was truncated."""
        return cls(row, text, len(ids), truncated=not ids or ids[-1] not in ends)


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

    def evaluate(self, problem: Problem, source: str, baseline: str | None = None) -> tuple[str, Evaluation]:
        """The evaluation of a kernel against a correct one, or against the problem's start, with its name on disk.

        Raises DeviceError, ProblemError.
        """
        files = ProblemFiles(self._directory / str(problem.id))
        name = self._key(source, baseline).name
        found = files.find_evaluation(name)
        if found is None:
            found = self.shared.evaluate(problem, source, profile=False, baseline=baseline)
            files.put_candidate(source)
            files.put_evaluation(name, found)
            self.judged += 1
        return name, found

    def _key(self, source: str, baseline: str | None) -> EvaluationKey:
        conditions = self.shared.conditions
        return EvaluationKey(
            source=source_digest(source),
            baseline=None if baseline is None else source_digest(baseline),
            device=f"{conditions['device']}/{conditions['device_name']}",
            precision=conditions["precision"],
            workload=conditions["workload"],
            purpose=f"train/{__version__}",
        )


@dataclass(frozen=True)
class Scorer:
    """Gives completions their rewards.

    Attributes:
        judge: of the training run.
        scheme: turns an evaluation into a reward.
        relative: speed-ups are against the kernel that the prompt shows; else against the problem's start.
        threads: kernels judged at once.
    """

    judge: StoredJudge
    scheme: RewardScheme
    relative: bool
    threads: int = 1

    def score(self, completions: Sequence[Completion]) -> list[Judged]:
        """What became of each. Raises MachineError where the machine failed more than `MOST_LOST` of them."""
        with ThreadPoolExecutor(max(1, self.threads), thread_name_prefix="judge") as threads:
            judged = list(threads.map(self._score, completions))
        lost = sum(one.verdict == MACHINE for one in judged)
        if lost > MOST_LOST * len(judged):
            reason = next(one.reason for one in judged if one.verdict == MACHINE)
            raise MachineError(
                f"{lost} of {len(judged)} completions could not be judged: {reason}",
                hint="mend the machine and start the same command again: what was judged is kept",
            )
        return judged

    def _score(self, completion: Completion) -> Judged:
        row, started = completion.row, time.monotonic()
        submission = read_completion(completion.text, row)
        if submission.source is None:
            reward = rewarded(self.scheme, None)
            return Judged(verdict=NO_CODE, reason=submission.reason, reward=reward.value, parts=reward.parts)
        baseline = row.parent if self.relative and row.parent else None
        try:
            key, found = self.judge.evaluate(self.judge.problem(row.problem), submission.source, baseline)
        except DeviceError as error:
            return Judged(verdict=MACHINE, reason=error.message, reward=None)
        reward = rewarded(self.scheme, found)
        comparison = found.comparison if found.correct else None
        untimed = found.correct and comparison is None  # the baseline failed: no word on this candidate
        return Judged(
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


def judge_step(
    step: int, completions: Sequence[Completion], group_size: int, scorer: Scorer, store: RolloutStore
) -> list[Rollout]:
    """The rollout of each completion of a step; those that the store lacks are judged and stored first.

    Raises MachineError where the machine failed to judge many of them.
    """
    missing = [index for index in range(len(completions)) if store.rollout(step, index) is None]
    judged = scorer.score([completions[index] for index in missing])
    for index, outcome in zip(missing, judged, strict=True):
        completion = completions[index]
        store.keep(
            Rollout(
                **outcome.model_dump(),
                step=step,
                index=index,
                group=index // group_size,
                problem=completion.row.problem,
                prompt=completion.row.digest,
                completion=completion.text,
                tokens=completion.tokens,
                truncated=completion.truncated,
            )
        )
    found = (store.rollout(step, index) for index in range(len(completions)))
    return [rollout for rollout in found if rollout is not None]
