"""Arms of several trainings beside each other: seeds pooled, the search without training among them.

An arm is what `train eval` has sampled of some weights. Trainings that differ in their seed alone are one arm. Figures
are means over seeds and problems. Intervals come from resampling both, problems jointly for two arms whose difference
is told, or families and the problems within them.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from kernelblaster.errors import UsageError
from kernelblaster.evaluation.timing.statistics import RESAMPLES
from kernelblaster.training.arms import FEWEST_PROBLEMS, Estimate

FIGURES = ("correct", "fast_1", "log_speedup", "best", "winner")
"""Shares of samples that are correct and faster, mean logarithm of the speed-up with failures as 0, and that of the
fastest of all that were judged on a problem; that of the fastest as it was measured again, 0 where it does not hold."""


class Resampled(StrEnum):
    """What the bootstrap draws."""

    PROBLEM = "problem"
    FAMILY = "family"
    """Families, and the problems within each that is drawn: problems of one family are much alike."""


@dataclass(frozen=True)
class ArmSamples:
    """What was sampled of one arm with one seed.

    Attributes:
        label: of the arm; the same for all its seeds.
        seed: of the training, or of the sampling where nothing was trained.
        rests_on: what all arms of a table share, by name.
        values: figure -> problem -> value.
        judged: problem -> candidates.
    """

    label: str
    seed: int
    rests_on: Mapping[str, object]
    values: Mapping[str, Mapping[str, float]]
    judged: Mapping[str, int]


class TableRow(BaseModel):
    """An arm of a table."""

    label: str
    seeds: list[int]
    problems: int
    judged_per_problem: float
    """Candidates, of one seed."""
    estimates: dict[str, Estimate]
    """Of `FIGURES`, as far as they are known."""
    differences: dict[str, Estimate] = {}
    """This arm minus the reference, on the problems of both."""
    by_problem: dict[str, dict[str, float]]
    """Problem -> figure -> mean over seeds."""


class ArmTable(BaseModel):
    """All arms on the prompts of a stage."""

    stage: str
    split: str
    rests_on: dict[str, object]
    against: str
    """The reference of differences; empty where there is one arm alone."""
    resampled: Resampled
    rows: list[TableRow]


def table_of(
    samples: Sequence[ArmSamples],
    *,
    stage: str,
    split: str,
    against: str,
    families: Mapping[str, str],
    resampled: Resampled = Resampled.PROBLEM,
) -> ArmTable:
    """The table of all arms.

    Args:
        samples: of all arms and seeds.
        stage, split: of the prompts.
        against: label of the reference.
        families: problem -> family.
        resampled: what the bootstrap draws.

    Raises UsageError where arms rest on different things, and where the reference is none of them.
    """
    rests_on = _shared(samples)
    arms: defaultdict[str, dict[int, ArmSamples]] = defaultdict(dict)
    for one in samples:
        arms[one.label].setdefault(one.seed, one)
    if against not in arms:
        raise UsageError(f"there is no arm {against!r}", hint=f"choose from {', '.join(arms)}")
    bootstrap = _Bootstrap(families, resampled)
    reference = list(arms[against].values())
    rows = [
        _row(label, list(seeds.values()), reference if label != against else [], bootstrap)
        for label, seeds in arms.items()
    ]
    return ArmTable(
        stage=stage, split=split, rests_on=rests_on, against=against, resampled=resampled, rows=rows,
    )  # fmt: skip


def _shared(samples: Sequence[ArmSamples]) -> dict[str, object]:
    if not samples:
        raise UsageError("nothing was sampled there", hint="run `train eval` first, on the same --stage and --split")
    first = samples[0]
    for other in samples[1:]:
        differing = [
            f"{name} {first.rests_on[name]!r} and {other.rests_on[name]!r}"
            for name in first.rests_on.keys() & other.rests_on.keys()
            if first.rests_on[name] != other.rests_on[name]
        ]
        if differing:
            raise UsageError(
                f"{first.label} and {other.label} rest on different things: {', '.join(sorted(differing))}",
                hint="evaluate all with the same device, size, precision, baseline, samples and temperature",
            )
    return dict(first.rests_on)


def _row(label: str, seeds: Sequence[ArmSamples], reference: Sequence[ArmSamples], bootstrap: _Bootstrap) -> TableRow:
    shared = _problems(seeds)
    both = [name for name in shared if name in set(_problems(reference))] if reference else []
    figures = [figure for figure in FIGURES if all(figure in one.values for one in seeds)]
    known = [figure for figure in figures if all(figure in one.values for one in reference)]
    return TableRow(
        label=label,
        seeds=sorted(one.seed for one in seeds),
        problems=len(shared),
        judged_per_problem=statistics.fmean(one.judged[name] for one in seeds for name in shared),
        estimates={figure: bootstrap.mean(shared, _matrix(seeds, figure, shared)) for figure in figures},
        differences={
            figure: bootstrap.mean(both, _matrix(seeds, figure, both), _matrix(reference, figure, both))
            for figure in known
            if both
        },
        by_problem={
            name: {figure: statistics.fmean(one.values[figure][name] for one in seeds) for figure in figures}
            for name in shared
        },
    )


def _problems(seeds: Sequence[ArmSamples]) -> list[str]:
    """Those that every seed has figures of."""
    if not seeds:
        return []
    every = [set.intersection(*(set(values) for values in one.values.values())) for one in seeds]
    found = sorted(set.intersection(*every))
    if not found:
        raise UsageError(f"the seeds of {seeds[0].label} share no problem", hint="evaluate them on the same prompts")
    return found


def _matrix(seeds: Sequence[ArmSamples], figure: str, problems: Sequence[str]) -> NDArray[np.float64]:
    """Seeds by problems."""
    return np.asarray([[one.values[figure][name] for name in problems] for one in seeds], dtype=np.float64)


@dataclass(frozen=True)
class _Bootstrap:
    """Means with percentile intervals, the same draws each time."""

    families: Mapping[str, str]
    resampled: Resampled

    def mean(
        self, problems: Sequence[str], values: NDArray[np.float64], others: NDArray[np.float64] | None = None
    ) -> Estimate:
        """Mean of seeds by problems, or its difference to that of others on the same problems."""
        mean = float(values.mean()) - (0.0 if others is None else float(others.mean()))
        clusters = self._clusters(problems)
        if len(problems) < FEWEST_PROBLEMS or len(clusters) < FEWEST_PROBLEMS:
            return Estimate(value=mean, low=None, high=None)
        rng = np.random.default_rng(0)
        weights = self._weights(rng, clusters, len(problems))
        drawn = _means(rng, values, weights)
        if others is not None:
            drawn -= _means(rng, others, weights)
        low, high = np.percentile(drawn, (2.5, 97.5))
        return Estimate(value=mean, low=float(low), high=float(high))

    def _clusters(self, problems: Sequence[str]) -> list[list[int]]:
        if self.resampled is Resampled.PROBLEM:
            return [[place] for place in range(len(problems))]
        found: defaultdict[str, list[int]] = defaultdict(list)
        for place, name in enumerate(problems):
            found[self.families.get(name, name)].append(place)
        return list(found.values())

    @staticmethod
    def _weights(rng: np.random.Generator, clusters: Sequence[list[int]], problems: int) -> NDArray[np.float64]:
        """How often each resample holds each problem: resamples by problems."""
        drawn = rng.multinomial(len(clusters), [1 / len(clusters)] * len(clusters), size=RESAMPLES)
        found = np.zeros((RESAMPLES, problems))
        for times, cluster in zip(drawn.T, clusters, strict=True):
            found[:, cluster] = rng.multinomial(times * len(cluster), [1 / len(cluster)] * len(cluster))
        return found


def _means(rng: np.random.Generator, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each resample, of seeds drawn for it and of its problems."""
    seeds = len(values)
    drawn = rng.multinomial(seeds, [1 / seeds] * seeds, size=RESAMPLES) / seeds
    means: NDArray[np.float64] = ((drawn @ values) * weights).sum(axis=1) / weights.sum(axis=1)
    return means
