"""What is believed of a technique in a context: a two-part posterior with hierarchical back-off.

Part one: P(a candidate is correct), Beta. Part two: log speed-up given correct, normal with unknown mean and variance
(Normal-Inverse-Gamma). Both start from the curated prior and are updated with every row of the technique on the same
device kind, each row weighted by how closely its cell matches the context (`Level`). Borrowed evidence is capped per
level, so that many remote observations never outvote a few exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from kernelblaster.knowledge.decisions import SelectionContext
from kernelblaster.knowledge.schema import Cell, ImportedPrior, Prior, StatisticsRow, Sums

CURATED_PRIOR = "curated_prior"
WEAK_VERIFICATION = 0.25
"""Weight of rows whose problem judges itself."""
PRIOR_SHAPE = 2.0
"""alpha of the inverse gamma: a vague belief about the variance."""
PRIOR_DEVIATION = 0.25
"""Expected standard deviation of log speed-ups of one technique over problems."""


class Level(Enum):
    """How closely a cell matches a context, from exact to remote: name, weight, cap on weighted attempts.

    One observation in another state, operator or architecture says less; the weights halve (or worse) per step.
    """

    EXACT = "state_technique_arch_op_precision", 1.0, math.inf
    STATE_ARCH = "state_technique_arch", 0.5, 8.0
    ARCH = "technique_arch", 0.25, 4.0
    TECHNIQUE = "technique", 0.1, 2.0

    def __init__(self, label: str, weight: float, cap: float) -> None:
        self.label = label
        self.weight = weight
        self.cap = cap


def level_of(cell: Cell, state: str, context: SelectionContext) -> Level:
    """The most specific level that a cell shares with (state, context)."""
    if cell.arch != context.arch:
        return Level.TECHNIQUE
    if cell.state != state:
        return Level.ARCH
    if (cell.op_family, cell.precision) != (context.op_family, context.precision):
        return Level.STATE_ARCH
    return Level.EXACT


@dataclass(frozen=True)
class Posterior:
    """Parameters of both parts.

    Attributes:
        correct, incorrect: Beta parameters.
        mean, strength: location of the mean log speed-up, and pseudo-observations behind it.
        shape, scale: inverse-gamma parameters of the variance.
        attempts: attempts looked at, unweighted.
        backed_off_to: label of the most specific level that had attempts.
    """

    correct: float
    incorrect: float
    mean: float
    strength: float
    shape: float
    scale: float
    attempts: int
    backed_off_to: str

    @property
    def p_correct(self) -> float:
        """Posterior mean."""
        return self.correct / (self.correct + self.incorrect)

    @property
    def expected_speedup(self) -> float:
        """exp of the posterior mean of log speed-up."""
        return math.exp(self.mean)

    def draw(self, rng: np.random.Generator) -> float:
        """One Thompson draw of the worth of a step: p * E[max(0, log speed-up)].

        A slower candidate is dropped and its parent kept, hence the positive part.
        """
        p = rng.beta(self.correct, self.incorrect)
        variance = self.scale / rng.gamma(self.shape)
        mean = rng.normal(self.mean, math.sqrt(variance / self.strength))
        return p * expected_positive_part(mean, math.sqrt(variance))


def expected_positive_part(mean: float, deviation: float) -> float:
    """E[max(0, X)] of X ~ N(mean, deviation^2): deviation * pdf(z) + mean * cdf(z) with z = mean / deviation."""
    z = mean / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return deviation * density + mean * 0.5 * math.erfc(-z / math.sqrt(2))


@dataclass(frozen=True)
class _Evidence:
    """Weighted sums."""

    attempts: float = 0.0
    failed: float = 0.0
    n: float = 0.0
    sum_log: float = 0.0
    sum_sq_log: float = 0.0

    def plus(self, other: _Evidence | Sums, weight: float) -> _Evidence:
        """This and `weight` times the other."""
        return _Evidence(
            self.attempts + weight * other.attempts,
            self.failed + weight * other.failed,
            self.n + weight * other.n,
            self.sum_log + weight * other.sum_log,
            self.sum_sq_log + weight * other.sum_sq_log,
        )


def posterior(
    prior: Prior,
    imported: Iterable[ImportedPrior],
    rows: Iterable[StatisticsRow],
    state: str,
    context: SelectionContext,
) -> Posterior:
    """Prior updated with the weighted rows of one technique. Rows of another device kind are ignored."""
    levels: dict[Level, list[StatisticsRow]] = {level: [] for level in Level}
    for row in rows:
        if row.cell.device_kind is context.device_kind and row.sums.attempts:
            levels[level_of(row.cell, state, context)].append(row)
    evidence = _Evidence()
    for level, members in levels.items():
        evidence = evidence.plus(_pooled(level, members), 1.0)
    mean0, strength0 = _with_imported(prior, imported)
    strength = strength0 + evidence.n
    mean = (strength0 * mean0 + evidence.sum_log) / strength
    spread = evidence.sum_sq_log + strength0 * mean0**2 - strength * mean**2
    return Posterior(
        correct=prior.attempts * prior.p_correct + evidence.attempts - evidence.failed,
        incorrect=prior.attempts * (1 - prior.p_correct) + evidence.failed,
        mean=mean,
        strength=strength,
        shape=PRIOR_SHAPE + evidence.n / 2,
        scale=PRIOR_DEVIATION**2 * (PRIOR_SHAPE - 1) + max(0.0, spread) / 2,
        attempts=sum(row.sums.attempts for members in levels.values() for row in members),
        backed_off_to=next((level.label for level in Level if levels[level]), CURATED_PRIOR),
    )


def _pooled(level: Level, rows: Iterable[StatisticsRow]) -> _Evidence:
    """Rows of one level, weighted, then scaled down to the level's cap on attempts."""
    pooled = _Evidence()
    for row in rows:
        pooled = pooled.plus(row.sums, level.weight * (WEAK_VERIFICATION if row.cell.weakly_verified else 1.0))
    if pooled.attempts <= level.cap:
        return pooled
    return _Evidence().plus(pooled, level.cap / pooled.attempts)


def _with_imported(prior: Prior, imported: Iterable[ImportedPrior]) -> tuple[float, float]:
    """Mean and strength of the prior log speed-up, with imported beliefs averaged in at their weight."""
    strength = prior.gains
    weighted = prior.gains * prior.mean_log_gain
    for belief in imported:
        strength += belief.weight
        weighted += belief.weight * belief.mean_log_gain
    return weighted / strength, strength
