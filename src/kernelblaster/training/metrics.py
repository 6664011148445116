"""Figures of rollouts, always of all completions: a failure is in every denominator.

What the machine failed to judge is counted apart and in no rate.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel

from kernelblaster.environment.observation import NO_CODE
from kernelblaster.environment.rewards import NOT_BUILT
from kernelblaster.environment.scores import SPEEDUPS, decided_speedup
from kernelblaster.evaluation.results import Verdict
from kernelblaster.training.judging import MACHINE
from kernelblaster.training.rollouts import JudgedCompletion, Rollout

Key = TypeVar("Key")


class Metrics(BaseModel):
    """Figures of a set of completions. Rates are shares of `completions`; None where there was none."""

    completions: int
    machine_failures: int
    valid_rate: float | None
    """With a source that was judged."""
    build_rate: float | None
    correct_rate: float | None
    fast: dict[str, float]
    """p -> fast_p; `0` is the correct rate. Empty where there was no completion."""
    hack_rate: float | None
    suspicious_rate: float | None
    truncated_rate: float | None
    reward: float | None
    """Mean over completions that have one."""
    geomean: float | None
    """Of speed-ups, failures and what is not decided faster as 1."""
    geomean_correct: float | None
    """Of speed-ups of correct completions alone, as measured."""
    dialogues: int = 0
    """That the completions belong to: as many, unless a kernel was answered in several turns."""
    solved_rate: float | None = None
    """Share of dialogues with a correct kernel in any turn."""
    informative_groups: float | None
    """Share of groups whose rewards differ: the others teach nothing."""
    tokens: float | None
    """Mean per completion."""
    tokens_per_correct: float | None = None
    """Of all completions, per correct kernel; None where there was none."""
    tokens_per_faster: float | None = None
    judge_seconds: float
    """In all."""
    judge_seconds_per_correct: float | None = None


def metrics_of(rollouts: Iterable[Rollout]) -> Metrics:
    """Figures of completions."""
    every = list(rollouts)
    judged = [one for one in every if one.verdict != MACHINE]
    correct = [one for one in judged if one.verdict == Verdict.CORRECT]
    rewards = [one.reward for one in judged if one.reward is not None]
    tokens, seconds = sum(one.tokens for one in judged), math.fsum(one.judge_seconds for one in every)
    best = best_of_dialogues(judged)
    fast = {"0": len(correct)} | {f"{p:g}": sum(speedup(one) > p for one in judged) for p in SPEEDUPS}
    return Metrics(
        completions=len(judged),
        machine_failures=len(every) - len(judged),
        valid_rate=_share(sum(one.verdict != NO_CODE for one in judged), judged),
        build_rate=_share(sum(one.verdict != NO_CODE and one.verdict not in NOT_BUILT for one in judged), judged),
        correct_rate=_share(len(correct), judged),
        fast={name: count / len(judged) for name, count in fast.items()} if judged else {},
        hack_rate=_share(sum(one.hack for one in judged), judged),
        suspicious_rate=_share(sum(one.suspicious for one in judged), judged),
        truncated_rate=_share(sum(one.truncated for one in judged), judged),
        reward=statistics.fmean(rewards) if rewards else None,
        geomean=_geomean([speedup(one) for one in judged]),
        geomean_correct=_geomean([one.speedup for one in correct if one.speedup is not None and one.speedup > 0]),
        dialogues=len(best),
        solved_rate=_share(sum(one.verdict == Verdict.CORRECT for one in best), best),
        informative_groups=_informative(judged),
        tokens=statistics.fmean(one.tokens for one in judged) if judged else None,
        tokens_per_correct=_per(tokens, len(correct)),
        tokens_per_faster=_per(tokens, fast["1"]),
        judge_seconds=seconds,
        judge_seconds_per_correct=_per(seconds, len(correct)),
    )


def by_step(rollouts: Iterable[Rollout]) -> Mapping[int, Metrics]:
    """Figures of each step."""
    return {step: metrics_of(found) for step, found in _grouped(rollouts, lambda one: one.step).items()}


def by_problem(rollouts: Iterable[Rollout]) -> Mapping[str, Metrics]:
    """Figures of each problem."""
    return {name: metrics_of(found) for name, found in _grouped(rollouts, lambda one: one.problem).items()}


def speedup(judged: JudgedCompletion) -> float:
    """Of a correct completion that is decided faster; 1 for any other."""
    return decided_speedup(judged.verdict, judged.decision, judged.speedup)


def is_informative(group: Iterable[JudgedCompletion]) -> bool:
    """Whether the rewards of a group differ: else it has no gradient."""
    return len({one.reward for one in group if one.reward is not None}) > 1


def best_of_dialogues(rollouts: Iterable[Rollout]) -> list[Rollout]:
    """The turn of each dialogue with the greatest reward, the first of equal ones, as an answer to the first prompt.

    It counts as a cheat where any turn was one.
    """
    every = list(rollouts)
    found = [one for one in every if one.dialogue is None]
    dialogues = _grouped((one for one in every if one.dialogue is not None), lambda one: (one.step, one.dialogue))
    for turns in dialogues.values():
        turns.sort(key=lambda one: one.turn)
        best = max(turns, key=lambda one: -math.inf if one.reward is None else one.reward)
        found.append(best.model_copy(update={"prompt": turns[0].prompt, "hack": any(one.hack for one in turns)}))
    return found


def _informative(judged: Sequence[Rollout]) -> float | None:
    groups = _grouped(judged, lambda one: (one.step, one.group)).values()
    return sum(map(is_informative, groups)) / len(groups) if groups else None


def _share(count: int, judged: Sequence[Rollout]) -> float | None:
    return count / len(judged) if judged else None


def _per(total: float, count: int) -> float | None:
    return total / count if count else None


def _geomean(values: Sequence[float]) -> float | None:
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def _grouped(rollouts: Iterable[Rollout], key: Callable[[Rollout], Key]) -> dict[Key, list[Rollout]]:
    groups: defaultdict[Key, list[Rollout]] = defaultdict(list)
    for one in rollouts:
        groups[key(one)].append(one)
    return dict(groups)
