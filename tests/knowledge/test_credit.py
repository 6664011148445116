"""Credit: gains among siblings, for what was really done."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge_samples import document, technique, transition

from kernelblaster.cuda_source.features import Feature
from kernelblaster.devices.metrics import Metric
from kernelblaster.knowledge.credit import credits, declared_techniques, done_technique, executed, gain_of, grown
from kernelblaster.knowledge.relearn import relearn
from kernelblaster.knowledge.schema import FREE_FORM
from kernelblaster.knowledge.store import KnowledgeStore, seed_path

SHIPPED = KnowledgeStore(seed_path(), owned=False).load().techniques
GAINS = st.dictionaries(st.text(min_size=1, max_size=4), st.floats(-5, 5), min_size=2, max_size=9)


@given(GAINS, st.floats(-3, 3))
def test_credit_is_the_advantage_over_the_other_siblings(gains: dict[str, float], easier: float) -> None:
    found = credits(gains)
    for name, credit in found.items():
        others = [gain for other, gain in gains.items() if other != name]
        assert credit == pytest.approx(gains[name] - sum(others) / len(others), abs=1e-9)
    shifted = credits({name: gain + easier for name, gain in gains.items()})
    assert shifted == pytest.approx(found, abs=1e-9)


def test_growth_needs_twice_as_many_instructions_and_both_counts() -> None:
    before, after = {"vector_access": 2, "shuffle": 5}, {"vector_access": 4, "shuffle": 6, "wgmma": 8, "unheard_of": 9}
    assert grown(before, after) == {Feature.VECTOR_ACCESS, Feature.WGMMA}
    assert grown(None, after) == grown(before, None) == frozenset()


def test_growth_confirms_what_was_asked_for_or_declared_and_nothing_else() -> None:
    techniques = document(
        techniques={
            name: technique() | {"signs": [Feature.VECTOR_ACCESS] if name == "widen" else []}
            for name in ("widen", "fuse", "narrow", "free_form")
        }
    ).techniques
    more = frozenset({Feature.VECTOR_ACCESS})
    assert done_technique("fuse", ["widen"], frozenset(), techniques, more) == "widen"
    assert done_technique("widen", [], frozenset(), techniques, more) == "widen"
    assert done_technique("fuse", [], frozenset(), techniques, more) == "fuse"


def test_an_only_child_earns_nothing() -> None:
    assert credits({"a": 2.0}) == {}


def test_a_gain_is_capped_by_the_headroom_of_the_parent() -> None:
    assert gain_of(transition(speedup=3.0, headroom=2.0)) == pytest.approx(math.log(2))
    assert gain_of(transition(speedup=3.0)) == pytest.approx(math.log(3))


@pytest.mark.parametrize(
    ("asked", "declared", "gained", "credited"),
    [
        ("tma_loads", (), {Feature.TMA_LOAD, Feature.MBARRIER}, "tma_loads"),
        ("tma_loads", (), {Feature.TMA_LOAD, Feature.WGMMA}, "wgmma_tensor_cores"),
        ("tma_loads", ("tma_multicast",), {Feature.MULTICAST, Feature.MBARRIER}, "tma_multicast"),
        ("tma_loads", (), {Feature.LAUNCH_BOUNDS, Feature.SHUFFLE}, FREE_FORM),
        ("tma_loads", ("warp_level_primitives",), {Feature.LAUNCH_BOUNDS, Feature.SHUFFLE}, "warp_level_primitives"),
        (
            "fused_operations",
            ("launch_bounds_tuning",),
            {Feature.LAUNCH_BOUNDS, Feature.MBARRIER},
            "launch_bounds_tuning",
        ),
        ("single_pass_scan", ("single_pass_scan", "launch_bounds_tuning"), {Feature.LAUNCH_BOUNDS}, "single_pass_scan"),
        (
            "single_pass_scan",
            ("single_pass_scan", "warp_level_primitives"),
            {Feature.CP_ASYNC, Feature.SHUFFLE, Feature.LAUNCH_BOUNDS},
            "single_pass_scan",
        ),
        ("single_pass_scan", ("single_pass_scan", "tma_loads"), {Feature.TMA_LOAD}, "tma_loads"),
        ("tma_loads", ("wgmma_tensor_cores",), {Feature.WGMMA}, "wgmma_tensor_cores"),
        ("tma_loads", ("tma_loads",), set(), FREE_FORM),
        ("block_size_adaptation", (), {Feature.WGMMA, Feature.MBARRIER}, "wgmma_tensor_cores"),
        ("fused_operations", (), {Feature.VECTOR_ACCESS}, "fused_operations"),
        ("fused_operations", ("unheard_of", "block_size_adaptation"), set(), "block_size_adaptation"),
        ("fused_operations", ("block_size_adaptation", "fused_operations"), set(), "fused_operations"),
        ("fused_operations", ("tma_loads",), set(), "fused_operations"),
        ("vectorized_memory_access", (), {Feature.VECTOR_ACCESS}, "vectorized_memory_access"),
    ],
)
def test_credit_goes_to_what_shows(asked: str, declared: tuple[str, ...], gained: set[Feature], credited: str) -> None:
    assert done_technique(asked, declared, gained, SHIPPED) == credited


_VECTORS = "vectorized_memory_access"


@pytest.mark.parametrize(
    ("asked", "declared", "gained", "credited"),
    [
        pytest.param(
            _VECTORS,
            ("tensor_core_utilization", "warp_specialization", "kernel_fusion", "shared_memory_tiling", _VECTORS),
            "atomics cache_hints launch_bounds mbarrier persistent vector_access wgmma",
            "wgmma_tensor_cores",
            id="level3/008, 321 times as fast",
        ),
        pytest.param(
            _VECTORS,
            ("split_k", "warp_specialization", _VECTORS),
            "atomics cluster distributed_shared launch_bounds mbarrier multicast prefetch shuffle tma_load "
            "vector_access wgmma",
            "wgmma_tensor_cores",
            id="level3/003, 41 times",
        ),
        pytest.param(
            _VECTORS, (_VECTORS,), "bulk_copy launch_bounds mbarrier", "mbarrier_pipeline", id="level1/082, 32 times"
        ),
        pytest.param(
            FREE_FORM,
            ("kernel_fusion", "register_blocking", "launch_bounds_tuning"),
            "fast_math launch_bounds mma_sync persistent",
            "mma_tensor_core_tiling",
            id="level2/058, 1.8 times",
        ),
    ],
)
def test_side_effects_of_recorded_rewrites_earn_nothing(
    asked: str, declared: tuple[str, ...], gained: str, credited: str
) -> None:
    assert done_technique(asked, declared, frozenset(map(Feature, gained.split())), SHIPPED) == credited


FEATURES = st.frozensets(st.sampled_from(Feature))
NAMES = st.sampled_from(sorted(SHIPPED))
DECLARED = st.lists(NAMES, max_size=4)
TENSOR_CORES = frozenset({Feature.WGMMA, Feature.MMA_SYNC})
SIDE_EFFECTS = frozenset(
    {
        *(Feature.VECTOR_ACCESS, Feature.LAUNCH_BOUNDS, Feature.CACHE_HINTS, Feature.PREFETCH),
        *(Feature.SHUFFLE, Feature.FAST_MATH, Feature.ATOMICS, Feature.PERSISTENT),
    }
)


@given(NAMES, DECLARED, FEATURES, FEATURES)
def test_what_is_credited_shows_or_cannot_be_refuted(
    asked: str, declared: list[str], gained: frozenset[Feature], more: frozenset[Feature]
) -> None:
    credited = done_technique(asked, declared, gained, SHIPPED, more)
    signs = set(SHIPPED[credited].signs)
    assert signs <= gained | more
    if not signs or not signs <= gained - SIDE_EFFECTS:
        assert credited in {asked, *declared, FREE_FORM}


@given(NAMES, DECLARED, FEATURES, FEATURES)
def test_products_on_tensor_cores_come_first_whatever_else_was_gained_and_named(
    asked: str, declared: list[str], gained: frozenset[Feature], more: frozenset[Feature]
) -> None:
    first = TENSOR_CORES & gained
    if first:
        assert first & set(SHIPPED[done_technique(asked, declared, gained, SHIPPED, more)].signs)


@given(NAMES, DECLARED, FEATURES, FEATURES.map(SIDE_EFFECTS.intersection), FEATURES)
def test_side_effects_and_growth_take_nothing_from_a_technique_that_more_than_they_confirm(
    asked: str,
    declared: list[str],
    gained: frozenset[Feature],
    beside: frozenset[Feature],
    more: frozenset[Feature],
) -> None:
    alone = done_technique(asked, declared, gained, SHIPPED)
    if set(SHIPPED[alone].signs) & (gained - SIDE_EFFECTS):
        assert done_technique(asked, declared, gained | beside, SHIPPED, more) == alone


def test_tensor_cores_that_were_never_busy_refute_products_on_them() -> None:
    written = {Feature.WGMMA, Feature.MMA_SYNC, Feature.TMA_LOAD}
    assert executed(written, {str(Metric.PIPE_TENSOR): 0.0}) == {Feature.TMA_LOAD}
    assert executed(written, {str(Metric.PIPE_TENSOR): 0.3}) == written
    assert executed(written, {}) == written


def test_statistics_are_reckoned_anew_from_stored_transitions() -> None:
    made = [transition("a", technique="widen", speedup=2.0), transition("b", technique="fuse", speedup=1.0)]
    found = relearn(document(), [*made, transition("c", state="of another file"), made[0]])
    assert (found.counted, sorted(found.refused.values())) == (2, [1, 1])
    assert {row.cell.technique: row.sums.sum_log for row in found.document.statistics} == pytest.approx(
        {"widen": math.log(2), "fuse": -math.log(2)}
    )


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("tma_multicast, l2_prefetch", ("tma_multicast", "l2_prefetch")),
        ("TMA multicast of the weights, L2-prefetch (64 KB, tma, next tile)", ("tma_multicast", "l2_prefetch")),
        ("`split_k`, from 3 tiles to 4, split_k", ("split_k",)),
        ("", ()),
    ],
)
def test_a_reply_declares_the_techniques_that_are_known(line: str, named: tuple[str, ...]) -> None:
    known = {"tma", "tma_multicast", "l2_prefetch", "split_k", "tiles"}
    assert declared_techniques(f"EXPECTED_SPEEDUP: 2\nTECHNIQUES: {line}\n```cuda\n```", known) == named
    assert declared_techniques("no such line", known) == ()
