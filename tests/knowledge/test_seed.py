"""The shipped knowledge base: complete, sound, and right about kernels profiled on an H200."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from knowledge_samples import context, facts, profile, timed

from kernelblaster.cuda_source.features import Feature
from kernelblaster.devices.facts import Library
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import ProfileSource
from kernelblaster.knowledge.derived import NSIGHT, SOURCE, Derived
from kernelblaster.knowledge.expressions import conditions
from kernelblaster.knowledge.schema import FREE_FORM
from kernelblaster.knowledge.selection import is_pointless
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

FIXTURE = Path(__file__).parents[1] / "fixtures" / "ncu" / "h200_probe.csv"

FIRST_RELEASE = {
    "memory_bandwidth_saturated": "vectorized_memory_access memory_coalescing_optimization shared_memory_tiling "
    "data_layout_transformation compression_techniques",
    "memory_latency_bound": "shared_memory_blocking register_blocking prefetching_strategies cache_aware_algorithms "
    "texture_memory_usage",
    "memory_bank_conflicts": "bank_conflict_padding access_pattern_swizzling broadcast_optimization "
    "memory_layout_permutation",
    "cache_inefficient": "cache_blocking_algorithms temporal_locality_optimization l2_cache_persistence "
    "read_only_cache_optimization",
    "compute_throughput_saturated": "tensor_core_utilization instruction_level_parallelism fast_math_optimization "
    "specialized_instruction_usage vectorized_operations SIMD_operations",
    "instruction_mix_suboptimal": "instruction_scheduling_optimization functional_unit_balancing "
    "loop_fusion_optimization mathematical_transformation",
    "thread_divergence_high": "predicated_execution branch_reduction_techniques warp_level_primitives "
    "stream_compaction work_distribution_optimization",
    "low_occupancy_register_pressure": "register_pressure_reduction variable_scoping_optimization spill_elimination "
    "launch_bounds_tuning algorithmic_register_reduction",
    "low_occupancy_shared_memory": "shared_memory_optimization dynamic_shared_memory shared_memory_reuse "
    "block_size_adaptation",
    "insufficient_parallelism": "work_per_thread_increase thread_coarsening persistent_kernel_pattern "
    "grid_size_optimization cooperative_groups",
    "hybrid_bound": "memory_compute_overlap adaptive_block_sizing algorithmic_optimization fused_operations "
    "SIMD_operations",
    "memory_compute_balanced": "memory_compute_overlap adaptive_tiling fused_operations algorithmic_rebalancing",
    "latency_memory_bound": "occupancy_memory_codesign hierarchical_tiling resource_balanced_design "
    "workload_restructuring",
    "high_level_inefficiency": "algorithmic_changes dynamic_programming data_structure_optimizations",
    "api_overhead_dominant": "kernel_fusion cuda_graphs persistent_kernels asynchronous_execution dynamic_parallelism",
    "transfer_bandwidth_limited": "transfer_optimization data_compression zero_copy_memory "
    "unified_memory_optimization pipeline_parallelism",
}

NSIGHT_RULES = (
    "UncoalescedGlobalAccess", "UncoalescedSharedAccess", "SharedMemoryConflicts", "ThreadDivergence",
    "LaunchConfiguration",
)  # fmt: skip
"""As `ncu --list-rules` names them."""


@pytest.fixture(scope="module")
def seed():
    return KnowledgeStore(seed_path()).load()


def captured() -> dict[str, dict[str, float]]:
    """Kernel -> metrics of the captured profile."""
    rows = list(csv.reader(line for line in FIXTURE.read_text().splitlines() if line.startswith('"')))
    kernels = {}
    for cells in rows[2:]:
        named = dict(zip(rows[0], cells, strict=True))
        metrics = {str(metric): float(named[metric].replace(",", "")) for metric in Metric if metric in named}
        kernels[named["Kernel Name"].split("(")[0]] = metrics
    return kernels


def test_states_and_techniques_of_the_first_release_are_there_under_their_names(seed):
    assert set(seed.states) >= set(FIRST_RELEASE)
    for state, techniques in FIRST_RELEASE.items():
        assert set(techniques.split()) <= set(seed.states[state].techniques), state


def test_every_state_can_be_recognised_and_acted_on(seed):
    for name, state in seed.states.items():
        assert state.rules, name
        assert FREE_FORM in state.techniques, name
        assert len(state.techniques) >= 4, name
        assert len(set(state.techniques)) == len(state.techniques), name


def test_every_technique_is_described_and_reachable(seed):
    reachable = {technique for state in seed.states.values() for technique in state.techniques}
    assert reachable == set(seed.techniques)
    for name, technique in seed.techniques.items():
        assert technique.summary, name
        assert len(technique.how_to) <= 8, name
        assert all(len(line) <= 250 for line in technique.how_to), name
        assert name == FREE_FORM or technique.how_to, name


def test_rules_and_bounds_speak_of_metrics_that_exist(seed):
    known = {str(metric) for metric in Metric} | {str(derived) for derived in Derived}
    known |= {f"{SOURCE}{feature}" for feature in Feature}
    known |= {f"{NSIGHT}{rule}" for rule in NSIGHT_RULES}
    rules = [rule.when for state in seed.states.values() for rule in state.rules]
    bounds = [bound for technique in seed.techniques.values() for bound in technique.applicability.pointless_when]
    assert {condition.metric for when in rules + bounds for condition in conditions(when)} <= known


def test_it_names_no_run_or_path(seed):
    text = seed_path().read_text()
    assert not re.search(r"/(home|tmp|work|root)/", text)


@pytest.mark.parametrize(
    ("kernel", "state"),
    [
        ("copy_scalar", "memory_latency_bound"),
        ("copy_strided", "memory_bandwidth_saturated"),
        ("transpose_conflict", "memory_bank_conflicts"),
        ("matmul_naive", "cache_inefficient"),
    ],
)
def test_it_recognises_kernels_measured_on_an_h200(seed, kernel, state):
    classified = seed.classify(profile(captured()[kernel]), facts(), None)
    assert (classified.state, classified.decided) == (state, True)
    assert classified.evidence


BASE = {
    Metric.DURATION: 1e6,
    Metric.SM_THROUGHPUT: 20.0,
    Metric.MEMORY_THROUGHPUT: 20.0,
    Metric.DRAM_THROUGHPUT: 20.0,
    Metric.L1_THROUGHPUT: 20.0,
    Metric.L2_THROUGHPUT: 20.0,
    Metric.THREADS_PER_INSTRUCTION: 32.0,
    Metric.ACHIEVED_OCCUPANCY: 80.0,
    Metric.THEORETICAL_OCCUPANCY: 100.0,
    Metric.GRID_SIZE: 4000.0,
    Metric.WAVES: 8.0,
    Metric.ISSUE_ACTIVE: 30.0,
    Metric.PIPE_FMA: 10.0,
    Metric.PIPE_ALU: 10.0,
    Metric.PIPE_XU: 5.0,
    Metric.PIPE_TENSOR: 0.0,
    Metric.STALL_LONG_SCOREBOARD: 1.0,
    Metric.STALL_LG_THROTTLE: 0.0,
    Metric.STALL_BARRIER: 0.0,
    Metric.STALL_WAIT: 2.0,
}


@pytest.mark.parametrize(
    ("changes", "headroom", "state"),
    [
        ({Metric.DRAM_THROUGHPUT: 88, Metric.MEMORY_THROUGHPUT: 88}, 1.15, "memory_bandwidth_saturated"),
        ({Metric.DRAM_THROUGHPUT: 88, Metric.MEMORY_THROUGHPUT: 88}, 3.0, "high_level_inefficiency"),
        ({Metric.SM_THROUGHPUT: 70, Metric.PIPE_FMA: 65}, 3.0, "compute_throughput_saturated"),
        ({Metric.PIPE_FP64: 12}, None, "instruction_mix_suboptimal"),
        ({Metric.PIPE_XU: 70, Metric.SM_THROUGHPUT: 70, Metric.MEMORY_THROUGHPUT: 75}, None, "memory_compute_balanced"),
        ({Metric.THREADS_PER_INSTRUCTION: 9}, None, "thread_divergence_high"),
        ({Metric.GRID_SIZE: 16, Metric.WAVES: 0.1}, None, "insufficient_parallelism"),
        ({Metric.SM_THROUGHPUT: 55, Metric.MEMORY_THROUGHPUT: 55}, None, "hybrid_bound"),
        ({Metric.STALL_LONG_SCOREBOARD: 4, Metric.ACHIEVED_OCCUPANCY: 20}, None, "latency_memory_bound"),
        (
            {
                Metric.LIMIT_BLOCKS: 32,
                Metric.LIMIT_WARPS: 8,
                Metric.LIMIT_REGISTERS: 2,
                Metric.LIMIT_SHARED: 20,
                Metric.THEORETICAL_OCCUPANCY: 25,
                Metric.ACHIEVED_OCCUPANCY: 24,
            },
            None,
            "low_occupancy_register_pressure",
        ),
        (
            {
                Metric.LIMIT_BLOCKS: 32,
                Metric.LIMIT_WARPS: 8,
                Metric.LIMIT_REGISTERS: 8,
                Metric.LIMIT_SHARED: 1,
                Metric.THEORETICAL_OCCUPANCY: 12.5,
                Metric.ACHIEVED_OCCUPANCY: 12,
            },
            None,
            "low_occupancy_shared_memory",
        ),
    ],
)
def test_textbook_profiles_reach_their_state(seed, changes, headroom, state):
    classified = seed.classify(profile(BASE | changes), facts(), timed(headroom=headroom))
    assert (classified.state, classified.decided) == (state, True)


def test_many_small_kernels_are_api_overhead(seed):
    small = BASE | {Metric.DURATION: 3000.0}
    classified = seed.classify(profile(small, small, small, small), facts(), timed(60.0, 5.0))
    assert classified.state == "api_overhead_dominant"


def test_time_outside_a_single_kernel_is_transfer(seed):
    classified = seed.classify(profile(BASE | {Metric.DURATION: 50e3}), facts(), timed(400.0, 5.0))
    assert classified.state == "transfer_bandwidth_limited"


def test_without_counters_only_a_suspicion_is_left(seed):
    events = profile({Metric.DURATION: 50e3}, source=ProfileSource.EVENTS)
    classified = seed.classify(events, facts(), timed(headroom=1.15))
    assert classified.state == "memory_bandwidth_saturated"
    assert not classified.decided
    assert Metric.DRAM_THROUGHPUT in classified.unknown


def test_with_nothing_at_all_the_fallback_is_named_and_undecided(seed):
    classified = seed.classify(profile(source=ProfileSource.EVENTS), facts(), None)
    assert (classified.state, classified.confidence, classified.decided) == ("high_level_inefficiency", 0.0, False)


def test_a_full_bus_leaves_no_point_in_parallelism(seed):
    ilp = seed.techniques["instruction_level_parallelism"].applicability
    assert is_pointless(ilp, {Metric.DRAM_THROUGHPUT: 92.0})
    assert not is_pointless(ilp, {Metric.DRAM_THROUGHPUT: 40.0})
    assert not is_pointless(ilp, {})


@pytest.mark.parametrize("state", sorted(FIRST_RELEASE))
@pytest.mark.parametrize("family", list(OpFamily))
def test_something_can_be_tried_in_every_state_and_family(seed, state, family):
    where = context(op_family=family, precision=Precision.FP32)
    for draw in range(5):
        selection = seed.select(state, where, np.random.default_rng(draw))
        assert "tensor_core" not in selection.technique
        assert selection.technique != "library_gemm"


def test_a_library_is_offered_only_where_it_is_allowed(seed):
    allowed = frozenset({"library_gemm"})
    where = context(op_family=OpFamily.MATMUL, libraries=(Library.CUBLAS,))
    assert seed.select("compute_throughput_saturated", where, np.random.default_rng(0), allowed=allowed).how_to
