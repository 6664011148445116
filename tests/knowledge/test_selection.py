from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_samples import DRAM, context, document, gains, recorded, row, technique, transition

from kernelblaster.devices.facts import DeviceKind, Library
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.decisions import NoTechnique
from kernelblaster.knowledge.derived import Derived
from kernelblaster.knowledge.evidence import Level, by_level
from kernelblaster.knowledge.posterior import CURATED_PRIOR, expected_positive_part, posterior
from kernelblaster.knowledge.schema import ImportedPrior, Prior
from kernelblaster.knowledge.selection import compute_capability
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

PRIOR = Prior(p_correct=0.5, attempts=4, mean_log_gain=0.0, gains=2)


def believed(*rows, imported=(), **where):
    return posterior(PRIOR, imported, by_level(rows, "busy", context(**where)))


def choices(base: KnowledgeBase, state: str = "busy", draws: int = 60, **where) -> set[str]:
    rng = np.random.default_rng(0)
    return {base.select(state, context(**where), rng).technique for _ in range(draws)}


def with_applicability(**applicability) -> KnowledgeBase:
    techniques = {name: technique() for name in ("fuse", "narrow", "free_form")}
    return KnowledgeBase(document(techniques={"widen": technique(**applicability), **techniques}))


# The posterior


def test_without_evidence_the_prior_speaks():
    belief = believed()
    assert (belief.p_correct, belief.expected_speedup) == (0.5, 1.0)
    assert (belief.attempts, belief.backed_off_to) == (0, CURATED_PRIOR)


def test_exact_evidence_takes_over():
    belief = believed(row("widen", gains(*[math.log(2)] * 50)))
    assert belief.expected_speedup == pytest.approx(2, rel=0.05)
    assert belief.p_correct > 0.9
    assert belief.backed_off_to == Level.EXACT.label


def test_failures_lower_the_chance_and_leave_the_gain_alone():
    belief = believed(row("widen", gains(failed=20)))
    assert belief.p_correct < 0.15
    assert belief.expected_speedup == 1.0


@pytest.mark.parametrize(
    ("cell", "level"),
    [
        ({}, Level.EXACT),
        ({"precision": Precision.FP32}, Level.STATE_ARCH),
        ({"op_family": OpFamily.MATMUL}, Level.STATE_ARCH),
    ],
)
def test_evidence_of_the_state_is_used_under_its_level(cell, level):
    belief = believed(row("widen", gains(0.5, 0.5), **cell))
    assert belief.backed_off_to == level.label
    assert 0 < belief.mean < 0.5
    assert belief.attempts == 2


@pytest.mark.parametrize(("cell", "level"), [({"state": "slow"}, Level.ARCH), ({"arch": "sm_80"}, Level.TECHNIQUE)])
def test_other_states_and_gpus_lend_correctness_and_no_gains(cell, level):
    belief = believed(row("widen", gains(0.5, 0.5), **cell))
    assert belief.backed_off_to == level.label
    assert belief.mean == believed().mean
    assert belief.p_correct > believed().p_correct


def test_the_closer_the_evidence_the_more_it_weighs():
    cells = ({"state": "slow"}, {"precision": Precision.FP32}, {})
    means = [believed(row("widen", gains(0.5, 0.5), **cell)).mean for cell in cells]
    assert means == sorted(means)
    assert len(set(means)) == 3


def test_no_draw_and_no_promise_exceeds_the_headroom():
    base = KnowledgeBase(document(statistics=[row("widen", gains(*[2.0] * 30)).model_dump()]))
    where = context(observed={Derived.HEADROOM: 1.2})
    drawn = [base.select("busy", where, np.random.default_rng(seed)) for seed in range(20)]
    assert max(one.sampled_score for one in drawn) <= math.log(1.2)
    assert max(one.expected_speedup for one in drawn) <= 1.2 + 1e-9


def test_a_mountain_of_remote_evidence_does_not_bury_the_exact():
    remote = row("widen", gains(*[1.0] * 1000), arch="sm_80")
    exact = row("widen", gains(*[-0.3] * 10))
    assert believed(remote, exact).mean < 0


def test_weakly_verified_evidence_weighs_less():
    strong = believed(row("widen", gains(0.5, 0.5)))
    weak = believed(row("widen", gains(0.5, 0.5), weakly_verified=True))
    assert 0 < weak.mean < strong.mean


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5), st.integers(0, 9))
def test_emulated_evidence_says_nothing_about_a_gpu(logs, failed):
    emulated = row("widen", gains(*logs, failed=failed), device_kind=DeviceKind.EMULATED)
    assert believed(emulated) == believed()


def test_an_imported_belief_nudges_but_counts_as_no_attempt():
    imported = [ImportedPrior(state="busy", technique="widen", mean_log_gain=0.6, weight=0.5, source="x.json")]
    belief = believed(imported=imported)
    assert 0 < belief.mean < 0.2
    assert belief.attempts == 0


@given(st.floats(-2, 2), st.floats(0.01, 2))
def test_the_positive_part_has_its_closed_form(mean, deviation):
    draws = np.maximum(0, np.random.default_rng(0).normal(mean, deviation, 20_000))
    assert expected_positive_part(mean, deviation) == pytest.approx(draws.mean(), abs=0.05 * max(1, deviation))


@given(st.integers(0, 2**32 - 1))
def test_a_draw_is_never_negative(seed):
    belief = believed(row("widen", gains(-1.0, -0.9)))
    assert belief.draw(np.random.default_rng(seed)) >= 0


# Pruning


@pytest.mark.parametrize(
    ("applicability", "where"),
    [
        ({"min_arch": 90}, {"arch": "sm_80"}),
        ({"precisions": ["fp32"]}, {"precision": Precision.FP16}),
        ({"op_families": ["matmul"]}, {"op_family": OpFamily.SOFTMAX}),
        ({"library": "cublas"}, {"libraries": (Library.CUDNN,)}),
        ({"fp32_needs_tf32": True}, {"precision": Precision.FP32}),
        ({"pointless_when": [{"metric": DRAM, "op": ">=", "value": 85}]}, {"observed": {DRAM: 90.0}}),
    ],
)
def test_what_does_not_apply_is_never_drawn(applicability, where):
    assert choices(with_applicability(**applicability), **where) == {"fuse", "narrow"}


@pytest.mark.parametrize(
    ("applicability", "where"),
    [
        ({"min_arch": 80}, {"arch": "sm_90"}),
        ({"library": "cublas"}, {"libraries": (Library.CUBLAS,)}),
        ({"fp32_needs_tf32": True}, {"precision": Precision.FP16}),
        ({"pointless_when": [{"metric": DRAM, "op": ">=", "value": 85}]}, {}),
    ],
)
def test_what_applies_or_is_unknown_is_drawn(applicability, where):
    assert "widen" in choices(with_applicability(**applicability), **where)


def test_bounds_give_way_before_nothing_is_left():
    bound = {"pointless_when": [{"metric": DRAM, "op": ">=", "value": 85}]}
    base = KnowledgeBase(document(techniques={name: technique(**bound) for name in document().techniques}))
    assert choices(base, observed={DRAM: 95.0}) == {"widen", "fuse", "narrow"}


def test_tabu_and_allowed_are_kept():
    base = KnowledgeBase(document())
    rng = np.random.default_rng(0)
    drawn = {base.select("busy", context(), rng, tabu=frozenset({"widen"})).technique for _ in range(40)}
    assert drawn == {"fuse", "narrow"}
    drawn = {base.select("busy", context(), rng, allowed=frozenset({"fuse"})).technique for _ in range(5)}
    assert drawn == {"fuse"}


def test_allowed_reaches_beyond_the_state():
    base = KnowledgeBase(document())
    assert base.select("slow", context(), np.random.default_rng(0), allowed=frozenset({"narrow"})).technique == "narrow"


def test_when_nothing_is_left_it_says_so():
    base = KnowledgeBase(document())
    with pytest.raises(NoTechnique) as caught:
        base.select("slow", context(), np.random.default_rng(0), tabu=frozenset({"fuse", "free_form"}))
    assert caught.value.hint
    with pytest.raises(NoTechnique):
        base.select("slow", context(), np.random.default_rng(0), allowed=frozenset())
    with pytest.raises(KeyError):
        base.select("nowhere", context(), np.random.default_rng(0))


def test_the_same_generator_draws_the_same():
    base = KnowledgeBase(document())
    first, second = (
        [base.select("busy", context(), rng) for _ in range(5)]
        for rng in (np.random.default_rng(3), np.random.default_rng(3))
    )
    assert first == second
    assert {alternative.technique for alternative in first[0].alternatives} | {first[0].technique} == {
        "widen",
        "fuse",
        "narrow",
    }


@pytest.mark.parametrize("text", ["sm_90", "sm_90a"])
def test_architectures_are_read(text):
    assert compute_capability(text) == 90


@pytest.mark.parametrize("text", ["", "90", "sm_", "hopper", "sm_90ab"])
def test_what_is_no_architecture_is_refused(text):
    with pytest.raises(ValueError, match="architecture"):
        compute_capability(text)


# Learning

ARMS = {"widen": (0.9, math.log(1.6)), "fuse": (0.5, math.log(1.1)), "narrow": (0.8, math.log(0.8))}
"""Technique -> P(correct), mean log speed-up given correct, in the simulated world."""


def simulate(seed: int, steps: int, *, uniform: bool) -> tuple[list[str], float]:
    """Techniques tried in order, and the gain kept (losses are dropped, as the search keeps the parent)."""
    rng = np.random.default_rng(seed)
    seen, kept, tried = [], 0.0, []
    for step in range(steps):
        base = KnowledgeBase(recorded(document(), *seen))
        name = str(rng.choice(list(ARMS))) if uniform else base.select("busy", context(), rng).technique
        p_correct, mean = ARMS[name]
        tried.append(name)
        if rng.random() < p_correct:
            gain = rng.normal(mean, 0.1)
            kept += max(0.0, gain)
            made = transition(f"s{step}", technique=name, speedup=math.exp(gain))
        else:
            made = transition(f"s{step}", technique=name, verdict="wrong_values")
        seen.append(made)
    return tried, kept


def test_it_converges_to_the_better_arm_and_beats_uniform_choice():
    runs = [simulate(seed, 60, uniform=False) for seed in range(3)]
    late = [name for tried, _ in runs for name in tried[30:]]
    assert late.count("widen") / len(late) > 0.85
    uniform = [simulate(seed, 60, uniform=True)[1] for seed in range(3)]
    assert np.mean([kept for _, kept in runs]) > 1.4 * np.mean(uniform)


def test_a_better_arm_elsewhere_is_tried_first_here():
    """What was learned on another operator directs the first draws on a new one."""
    learned = document(
        statistics=[
            row("widen", gains(*[0.6] * 20), op_family=OpFamily.NORMALIZATION).model_dump(),
            row("narrow", gains(*[-0.3] * 20), op_family=OpFamily.NORMALIZATION).model_dump(),
            row("fuse", gains(failed=20), op_family=OpFamily.NORMALIZATION).model_dump(),
        ]
    )
    base, rng = KnowledgeBase(learned), np.random.default_rng(0)
    first = [base.select("busy", context(), rng) for _ in range(50)]
    assert sum(selection.technique == "widen" for selection in first) > 40
    assert {selection.backed_off_to for selection in first} == {Level.STATE_ARCH.label}


def test_chains_side_by_side_draw_without_replacement():
    base = KnowledgeBase(document())
    names = set(base.states["busy"].techniques)
    taken: Counter[str] = Counter()
    rng = np.random.default_rng(0)
    for _ in range(2 * len(names)):
        taken[base.select("busy", context(), rng, taken=taken).technique] += 1
    assert taken == dict.fromkeys(names, 2)


def test_what_others_have_taken_gives_way_to_what_is_forbidden():
    base = KnowledgeBase(document())
    first, *others = sorted(base.states["busy"].techniques)
    chosen = base.select("busy", context(), np.random.default_rng(0), tabu=set(others), taken={first: 3})
    assert chosen.technique == first
