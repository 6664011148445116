"""From the name of a baseline to the kernel or the time that it is on a problem, or to why there is none."""

from __future__ import annotations

from kernelblaster.environment.baselines import (
    ChosenBaseline,
    EpisodeBaseline,
    fastest_of,
    no_time_of,
    require_possible,
)
from kernelblaster.environment.catalogue import problem_identifier
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.evaluation.against_pytorch import baseline_time
from kernelblaster.evaluation.against_time import BaselineTime
from kernelblaster.problems.problem import Problem


def choose_baseline(kind: EpisodeBaseline, problem: Problem, judge: SharedJudge, session: str) -> ChosenBaseline:
    """A baseline on a problem; the first time it may be measured or judged.

    Raises UsageError where there is none, ProblemError, DeviceError, EnvironmentBusy.
    """
    require_possible(kind, judge.facts)
    if kind is EpisodeBaseline.START:
        return ChosenBaseline(kind)
    if kind is EpisodeBaseline.EXPERT:
        return ChosenBaseline(kind, source=judge.expert(problem, session))
    if kind is EpisodeBaseline.ATTAINABLE:
        return ChosenBaseline(kind, time=BaselineTime.point(judge.attainable_us(problem)))
    time = fastest_of(kind, judge.pytorch(problem, kind.modes, session))
    if time is None:
        raise no_time_of(kind, problem_identifier(problem), judge.facts, judge.workload)
    return ChosenBaseline(kind, time=baseline_time(time))
