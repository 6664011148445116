"""What is believed of a technique in a context: a two-part posterior with hierarchical back-off.

Part one: P(a candidate is correct), Beta. Part two: credit given correct (`credit.py`), normal with unknown mean and
variance (Normal-Inverse-Gamma). Both start from the curated prior and are updated with every attempt of the technique
on the same device kind, weighted by how closely its cell matches the context (`Level`). Borrowed evidence is capped per
level, so that many remote observations never outvote a few exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kernelblaster.knowledge.evidence import Level, LevelTotals, TechniqueTotals
from kernelblaster.knowledge.schema import ImportedPrior, Prior

CURATED_PRIOR = "curated_prior"
WEAK_VERIFICATION = 0.25
"""Weight of rows whose problem judges itself."""
PRIOR_SHAPE = 2.0
"""alpha of the inverse gamma: a vague belief about the variance."""
PRIOR_DEVIATION = 0.25
"""Expected standard deviation of log speed-ups of one technique over problems."""


@dataclass(frozen=True)
class Posterior:
    """Parameters of both parts.

    Attributes:
        correct, incorrect: Beta parameters.
        mean, strength: location of the mean log speed-up, and pseudo-observations behind it.
        shape, scale: inverse-gamma parameters of the variance.
        attempts: attempts looked at, unweighted.
        backed_off_to: label of the most specific level that had attempts.
        ceiling: logarithm of the parent's headroom; infinite where that is not known.
    """

    correct: float
    incorrect: float
    mean: float
    strength: float
    shape: float
    scale: float
    attempts: int
    backed_off_to: str
    ceiling: float = math.inf

    @property
    def p_correct(self) -> float:
        """Posterior mean."""
        return self.correct / (self.correct + self.incorrect)

    @property
    def expected_speedup(self) -> float:
        """exp of the posterior mean of credit: the speed-up against other attempts on the same parent."""
        return math.exp(min(self.mean, self.ceiling))

    def draw(self, rng: np.random.Generator) -> float:
        """One Thompson draw of the worth of a step: p * E[max(0, credit)], no more than the headroom allows.

        A slower candidate is dropped and its parent kept, hence the positive part.
        """
        p = rng.beta(self.correct, self.incorrect)
        variance = self.scale / rng.gamma(self.shape)
        mean = rng.normal(self.mean, math.sqrt(variance / self.strength))
        return p * min(expected_positive_part(mean, math.sqrt(variance)), self.ceiling)


def expected_positive_part(mean: float, deviation: float) -> float:
    """E[max(0, X)] of X ~ N(mean, deviation^2): deviation * pdf(z) + mean * cdf(z) with z = mean / deviation."""
    z = mean / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return deviation * density + mean * 0.5 * math.erfc(-z / math.sqrt(2))


def posterior(
    prior: Prior, imported: Iterable[ImportedPrior], evidence: Iterable[LevelTotals], *, ceiling: float = math.inf
) -> Posterior:
    """Prior updated with the weighted totals of one technique on one kind of device."""
    levels: dict[Level, list[LevelTotals]] = {level: [] for level in Level}
    for found in evidence:
        if found.totals.attempts:
            levels[found.level].append(found)
    pooled = TechniqueTotals()
    for level, members in levels.items():
        pooled = pooled.plus(_pooled(level, members))
    mean0, strength0 = _with_imported(prior, imported)
    strength = strength0 + pooled.n
    mean = (strength0 * mean0 + pooled.sum_log) / strength
    spread = pooled.sum_sq_log + strength0 * mean0**2 - strength * mean**2
    return Posterior(
        correct=prior.attempts * prior.p_correct + pooled.attempts - pooled.failed,
        incorrect=prior.attempts * (1 - prior.p_correct) + pooled.failed,
        mean=mean,
        strength=strength,
        shape=PRIOR_SHAPE + pooled.n / 2,
        scale=PRIOR_DEVIATION**2 * (PRIOR_SHAPE - 1) + max(0.0, spread) / 2,
        attempts=int(sum(found.totals.attempts for members in levels.values() for found in members)),
        backed_off_to=next((level.label for level in Level if levels[level]), CURATED_PRIOR),
        ceiling=ceiling,
    )


def _pooled(level: Level, members: Iterable[LevelTotals]) -> TechniqueTotals:
    """Totals of one level, weighted, then scaled down to the level's cap on attempts."""
    pooled = TechniqueTotals()
    for found in members:
        lent = found.totals if level.lends_gains else found.totals.without_gains()
        pooled = pooled.plus(lent, level.weight * (WEAK_VERIFICATION if found.weakly_verified else 1.0))
    if pooled.attempts <= level.cap:
        return pooled
    return TechniqueTotals().plus(pooled, level.cap / pooled.attempts)


def _with_imported(prior: Prior, imported: Iterable[ImportedPrior]) -> tuple[float, float]:
    """Mean and strength of the prior log speed-up, with imported beliefs averaged in at their weight."""
    strength = prior.gains
    weighted = prior.gains * prior.mean_log_gain
    for belief in imported:
        strength += belief.weight
        weighted += belief.weight * belief.mean_log_gain
    return weighted / strength, strength
