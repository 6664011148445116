"""Search policies, and registries by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.errors import UsageError
from kernelblaster.knowledge.evidence import Level, LevelTotals, TechniqueTotals
from kernelblaster.knowledge.policies import POLICIES
from kernelblaster.knowledge.posterior import Posterior, posterior
from kernelblaster.knowledge.schema import Prior
from kernelblaster.registry import Registry


def belief(attempts: int, log_gain: float) -> Posterior:
    """After so many correct attempts of one measured gain."""
    totals = TechniqueTotals(attempts, 0, attempts, attempts * log_gain, attempts * log_gain**2)
    return posterior(Prior(p_correct=0.7, mean_log_gain=0.1), (), [LevelTotals(Level.EXACT, False, totals)])


BELIEFS = {"good": belief(50, 0.4), "bad": belief(50, -0.4), "unknown": belief(0, 0.0)}


@pytest.mark.parametrize("name", list(POLICIES))
@given(seed=st.integers(0, 2**32 - 1))
def test_a_policy_scores_every_technique_and_is_repeatable(name: str, seed: int) -> None:
    scores = [POLICIES.get(name)(BELIEFS, np.random.default_rng(seed)) for _ in range(2)]
    assert scores[0] == scores[1]
    assert scores[0].keys() == BELIEFS.keys()
    assert all(np.isfinite(score) for score in scores[0].values())


def shares(name: str) -> dict[str, float]:
    """How often each technique has the best score."""
    rng, policy, draws = np.random.default_rng(0), POLICIES.get(name), 600
    best = [max((scores := policy(BELIEFS, rng)), key=lambda one: scores[one]) for _ in range(draws)]
    return {one: best.count(one) / draws for one in BELIEFS}


def test_policies_differ_in_what_they_try() -> None:
    assert shares("greedy") == {"good": 1.0, "bad": 0.0, "unknown": 0.0}
    assert all(abs(share - 1 / 3) < 0.08 for share in shares("uniform").values())
    thompson = shares("thompson")
    assert thompson["good"] > thompson["unknown"] > thompson["bad"]


def test_an_upper_bound_prefers_what_is_little_known() -> None:
    beliefs = {"known": belief(200, 0.1), "unknown": belief(0, 0.0)}
    optimistic = POLICIES.get("ucb")(beliefs, np.random.default_rng(0))
    assert optimistic["unknown"] > optimistic["known"]


def test_a_registry_gives_what_was_registered_and_loads_lazily() -> None:
    registry: Registry[object] = Registry("thing")
    registry.register("one", 1, "the number")
    registry.register("lazy", "json:dumps", "a function")
    registry.register("broken", "no_such_module:nothing", "never loaded")
    assert registry.get("one") == 1
    assert registry.get("lazy") is __import__("json").dumps
    assert list(registry) == ["one", "lazy", "broken"]
    assert registry.about("broken")
    with pytest.raises(UsageError, match="one"):
        registry.register("one", 2, "again")
    registry.unregister("one")
    with pytest.raises(UsageError, match="unknown thing 'one'"):
        registry.get("one")
