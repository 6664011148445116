"""Search policies: how what is believed of techniques becomes the choice of one.

A policy scores techniques; the best score is tried. What applies, what is pointless and what other chains have taken is
decided before (`selection.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from kernelblaster.knowledge.posterior import Posterior, expected_positive_part
from kernelblaster.registry import Registry

UCB_DEVIATIONS = 1.0
"""Standard deviations of the mean log speed-up by which the upper confidence bound is optimistic."""


class SearchPolicy(Protocol):
    """Scores techniques by what is believed of them. Deterministic for a given generator state."""

    def __call__(self, beliefs: Mapping[str, Posterior], rng: np.random.Generator) -> Mapping[str, float]:
        """A score for each technique in `beliefs`; `rng` is the only source of randomness."""
        ...


POLICIES: Registry[SearchPolicy] = Registry("search policy", SearchPolicy)


def thompson(beliefs: Mapping[str, Posterior], rng: np.random.Generator) -> Mapping[str, float]:
    """One draw from each posterior: tries what may be best as often as it is believed to be."""
    return {name: belief.draw(rng) for name, belief in beliefs.items()}


def greedy(beliefs: Mapping[str, Posterior], rng: np.random.Generator) -> Mapping[str, float]:
    """The expected worth of a step: always what seems best now."""
    return {name: _worth(belief, belief.mean) for name, belief in beliefs.items()}


def ucb(beliefs: Mapping[str, Posterior], rng: np.random.Generator) -> Mapping[str, float]:
    """The worth of a step if the mean speed-up is as good as it may well be: tries what is little known."""
    return {
        name: _worth(belief, belief.mean + UCB_DEVIATIONS * _uncertainty(belief)) for name, belief in beliefs.items()
    }


def uniform(beliefs: Mapping[str, Posterior], rng: np.random.Generator) -> Mapping[str, float]:
    """Chance alone: what is believed does not count."""
    return {name: float(rng.random()) for name in beliefs}


def _variance(belief: Posterior) -> float:
    """Expected variance of log speed-ups: the mean of the inverse gamma, or its scale where there is none."""
    return belief.scale / (belief.shape - 1) if belief.shape > 1 else belief.scale


def _uncertainty(belief: Posterior) -> float:
    """Standard deviation of the mean log speed-up."""
    return math.sqrt(_variance(belief) / belief.strength)


def _worth(belief: Posterior, mean: float) -> float:
    """P(correct) * E[max(0, log speed-up)] for a given mean."""
    return belief.p_correct * expected_positive_part(mean, math.sqrt(_variance(belief)))


POLICIES.register("thompson", thompson, "a draw from what is believed of each technique")
POLICIES.register("ucb", ucb, "the technique that may well be best")
POLICIES.register("greedy", greedy, "the technique that seems best")
POLICIES.register("uniform", uniform, "chance alone, for comparison")
