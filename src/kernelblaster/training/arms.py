"""What the arms of a comparison came to, with intervals over problems, and what is between two of them.

An arm is a set of weights that was sampled on the prompts of a split. Its figures are means over problems, each problem
counting the same; completions of one problem are not independent, so that problems are what the bootstrap resamples.
All completions are in every denominator, but for those that the machine failed to judge. Where kernels are answered in
several turns, a dialogue counts as one completion, its best turn: what such figures cost is told by `overall`.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ValidationError

from kernelblaster.environment.scores import SPEEDUPS, best_at, pass_at
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Verdict
from kernelblaster.evaluation.timing.statistics import RESAMPLES
from kernelblaster.training.judging import MACHINE
from kernelblaster.training.metrics import Metrics, best_of_dialogues, by_problem, metrics_of, speedup
from kernelblaster.training.rollouts import Rollout
from kernelblaster.training.stages import Stage
from kernelblaster.training.winners import Winner

FEWEST_PROBLEMS = 3
"""With fewer there is no interval: resampling them says nothing."""
_TAKEN = (1, 2, 4, 8, 16, 32)
"""k of pass@k, as far as every prompt has so many samples."""

Passed = Callable[[Rollout], bool]


FIGURES_FILE = "eval.json"
BASE = "base"
"""The weights without training."""


@dataclass(frozen=True)
class Arm:
    """What is sampled.

    Attributes:
        weights: `base`, or the stage whose weights are sampled.
        stage: whose prompts are asked.
        split: of the prompts.
        greedy: one completion per prompt, the likeliest token at each place, in place of samples.
    """

    weights: str
    stage: Stage
    split: str
    greedy: bool = False

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{self.weights}-{self.stage}-{self.split}{'-greedy' if self.greedy else ''}"


class Estimate(BaseModel):
    """A mean over problems with its 95 % interval; without one where there are fewer than `FEWEST_PROBLEMS`."""

    value: float
    low: float | None
    high: float | None

    @property
    def decided(self) -> bool:
        """For a difference: whether its interval leaves zero out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class ArmFigures(BaseModel):
    """`eval.json`: what an arm came to."""

    overall: Metrics
    """Each completion counts the same."""
    problems: dict[str, Metrics]
    estimates: dict[str, Estimate]
    """`correct`, `hack`, `fast_P`, `pass@K`, `fast_1@K`, `log_speedup`, the natural logarithm of the speed-up with
    failures as 0, and `log_speedup@K`, that of the best of K. Each problem counts the same."""
    winners: list[Winner] | None = None
    """The fastest kernel of each problem, measured again; None where none was. `log_winner` in `estimates` is the mean
    over problems of the logarithm of what they gain, 0 for problems without one."""
    against: str = ""
    """The other arm; empty where there is none."""
    differences: dict[str, Estimate] = {}
    """This arm minus the other on the problems of both, paired by problem."""


def read_figures(directory: Path) -> ArmFigures:
    """The figures of an evaluation. Raises UsageError where it has not ended."""
    path = directory / FIGURES_FILE
    try:
        return ArmFigures.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"{path} cannot be read", hint="the same `train eval` makes it") from error


def figures_of(rollouts: Sequence[Rollout]) -> ArmFigures:
    """Figures of an arm."""
    values = values_of(rollouts)
    return ArmFigures(
        overall=metrics_of(rollouts),
        problems=dict(sorted(by_problem(rollouts).items())),
        estimates={name: estimate(list(found.values())) for name, found in values.items() if found},
    )


def differences_of(rollouts: Sequence[Rollout], others: Sequence[Rollout]) -> dict[str, Estimate]:
    """Figures of an arm minus those of another, on the problems that both have."""
    left, right = values_of(rollouts), values_of(others)
    found = {}
    for name in left.keys() & right.keys():
        shared = sorted(left[name].keys() & right[name].keys())
        if shared:
            found[name] = estimate([left[name][problem] - right[name][problem] for problem in shared])
    return dict(sorted(found.items()))


def estimate(values: Sequence[float], *, seed: int = 0) -> Estimate:
    """Mean with its percentile-bootstrap interval. Raises ValueError without values."""
    if not values:
        raise ValueError("no values")
    mean = statistics.fmean(values)
    if len(values) < FEWEST_PROBLEMS:
        return Estimate(value=mean, low=None, high=None)
    known = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(seed).integers(0, known.size, size=(RESAMPLES, known.size))
    low, high = np.percentile(known[picks].mean(axis=1), (2.5, 97.5))
    return Estimate(value=mean, low=float(low), high=float(high))


@dataclass(frozen=True)
class _Problem:
    """Completions on one problem, by prompt."""

    prompts: tuple[tuple[Rollout, ...], ...]

    def share(self, passed: Passed) -> float:
        return self.mean(lambda one: float(passed(one)))

    def mean(self, value: Callable[[Rollout], float]) -> float:
        return statistics.fmean(value(one) for prompt in self.prompts for one in prompt)

    def pass_at(self, k: int, passed: Passed) -> float:
        return statistics.fmean(pass_at(k, len(prompt), sum(map(passed, prompt))) for prompt in self.prompts)

    def best_at(self, k: int, value: Callable[[Rollout], float]) -> float:
        return statistics.fmean(best_at(k, [value(one) for one in prompt]) for prompt in self.prompts)


def values_of(rollouts: Sequence[Rollout]) -> dict[str, dict[str, float]]:
    """Figure -> problem -> value: `correct`, `log_speedup` and the others that `ArmFigures` tells."""
    problems = _problems(rollouts)
    samples = min((len(prompt) for one in problems.values() for prompt in one.prompts), default=0)
    return {
        name: {problem: figure(one) for problem, one in problems.items()} for name, figure in _figures(samples).items()
    }


def _problems(rollouts: Sequence[Rollout]) -> Mapping[str, _Problem]:
    found: defaultdict[str, defaultdict[str, list[Rollout]]] = defaultdict(lambda: defaultdict(list))
    for one in best_of_dialogues(one for one in rollouts if one.verdict != MACHINE):
        found[one.problem][one.prompt].append(one)
    return {name: _Problem(tuple(map(tuple, prompts.values()))) for name, prompts in sorted(found.items())}


def _figures(samples: int) -> dict[str, Callable[[_Problem], float]]:
    """Figures of a problem whose prompts have at least so many samples."""
    figures: dict[str, Callable[[_Problem], float]] = {
        "correct": lambda problem: problem.share(_correct),
        "hack": lambda problem: problem.share(lambda one: one.hack),
        "log_speedup": lambda problem: problem.mean(_log_speedup),
    }
    figures |= {f"fast_{p:g}": partial(_share_beyond, p) for p in SPEEDUPS}
    taken = [k for k in _TAKEN if k <= samples]
    figures |= {f"pass@{k}": partial(_pass_at, k, _correct) for k in taken}
    figures |= {f"fast_1@{k}": partial(_pass_at, k, _faster) for k in taken}
    return figures | {f"log_speedup@{k}": partial(_best_at, k) for k in taken}


def _share_beyond(p: float, problem: _Problem) -> float:
    return problem.share(lambda one: speedup(one) > p)


def _pass_at(k: int, passed: Passed, problem: _Problem) -> float:
    return problem.pass_at(k, passed)


def _best_at(k: int, problem: _Problem) -> float:
    return problem.best_at(k, _log_speedup)


def _log_speedup(one: Rollout) -> float:
    return math.log(speedup(one))


def _correct(one: Rollout) -> bool:
    return one.verdict == Verdict.CORRECT


def _faster(one: Rollout) -> bool:
    return speedup(one) > SPEEDUPS[0]
