"""Nsight-named metrics of synthetic launches, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from launch_records import Copy, access, launch, resources

from ptxemu.counters.launch import Access, LaunchRecord, LineCounts, MachineCounts, Space
from ptxemu.metrics.names import NsightMetric
from ptxemu.metrics.profile import KernelLaunch, kernel_launch
from ptxemu.model.architecture import gpu_model
from ptxemu.model.kernel import estimate
from ptxemu.model.traffic import bulk_written_sectors

H200 = gpu_model("h200")


def profile(record: LaunchRecord, *, registers: int = 16, spill_bytes: int = 0) -> KernelLaunch:
    known = resources(registers=registers, spill_bytes=spill_bytes)
    return kernel_launch(estimate(record, known, H200), H200)


def test_coalesced_copy_has_four_sectors_a_request() -> None:
    found = profile(Copy(1024).record()).metrics
    assert found[NsightMetric.GLOBAL_LOAD_REQUESTS] == 1024 * 8
    assert found[NsightMetric.GLOBAL_LOAD_SECTORS] == 4 * 1024 * 8
    assert found[NsightMetric.GLOBAL_STORE_SECTORS] == 4 * 1024 * 8
    assert found[NsightMetric.LOAD_SECTOR_USE] == 100
    # and 3 KB that no thread asks for
    assert found[NsightMetric.DRAM_READ] == 1024 * 256 * 4 + 3072
    assert found[NsightMetric.DRAM_WRITE] == pytest.approx(0, abs=1e3)  # one megabyte stays in the L2
    assert found[NsightMetric.L1_HIT_RATE] == 0
    # reads miss, writes allocate: Nsight shows 50 % for a copy, too
    assert found[NsightMetric.L2_HIT_RATE] == pytest.approx(50, abs=0.3)


def test_computed_constants_can_be_what_keeps_an_sm_busy() -> None:
    """The ADU takes two clocks a warp instruction: nine in ten clocks of this launch's SMs."""
    record = Copy(132 * 64).record()
    quiet = MachineCounts(
        instructions=record.warp_instructions, alu=0, fma=0, fma_heavy=0, halves=0, xu=0, lsu=0, adu=0, tensor_halves=0,
        shared_passes=0, spill_loads=0, spill_stores=0,
    )  # fmt: skip
    found = estimate(replace(record, machine=quiet), resources(), H200)
    clocks = found.duration_s * H200.clock_hz * 132
    busy = replace(found.record, machine=replace(quiet, adu=0.45 * clocks))
    metrics = kernel_launch(estimate(busy, resources(), H200), H200).metrics
    assert metrics[NsightMetric.SM_THROUGHPUT] == pytest.approx(90, abs=1)


def test_constants_written_by_tensor_cores_keep_them_busy() -> None:
    """Nsight Compute on an H200 shows two clocks of each of an SM's four tensor cores for every such instruction."""
    record = Copy(132 * 64).record()
    counts = MachineCounts(
        instructions=record.warp_instructions, alu=0, fma=0, fma_heavy=0, halves=0, xu=0, lsu=0, adu=0,
        tensor_halves=record.warps, shared_passes=0, spill_loads=0, spill_stores=0,
    )  # fmt: skip
    found = estimate(replace(record, machine=counts), resources(), H200)
    share = kernel_launch(found, H200).metrics[NsightMetric.PIPE_TENSOR] / 100
    assert share == pytest.approx(record.warps * 2 / 4 / 132 / (found.busy_s * H200.clock_hz), rel=1e-3)


def test_large_copy_writes_back_what_the_l2_cannot_keep() -> None:
    """Nsight Compute on an H200 gives 20 MB for a copy of 40 MB, and 53 MB for a fill of 80 MB."""
    copied, filled = Copy(39_063).record(), Copy(78_125).record()
    only_writes = replace(filled, memory=filled.memory[1:], l2_read_sectors=0, unique_read_bytes=0)
    assert profile(copied).metrics[NsightMetric.DRAM_WRITE] == pytest.approx(20e6, rel=0.1)
    assert profile(only_writes).metrics[NsightMetric.DRAM_WRITE] == pytest.approx(53e6, rel=0.1)


def test_far_half_of_the_l2_counts_twice() -> None:
    """Nsight Compute on an H200 gives one and a half times the sectors of a copy; an L40S has one L2."""
    record = Copy(1024).record()
    for gpu, factor in (("h200", 1.5), ("l40s", 1.0)):
        model = gpu_model(gpu)
        found = kernel_launch(estimate(record, resources(), model), model).metrics
        assert found[NsightMetric.L2_READ_SECTORS] == factor * record.l2_read_sectors + 1000
        assert found[NsightMetric.L2_WRITE_SECTORS] == factor * record.l2_write_sectors


def test_division_becomes_many_machine_instructions() -> None:
    plain = profile(launch(blocks=132, classes={"fp32": 10_000})).metrics[NsightMetric.INSTRUCTIONS]
    divided = profile(launch(blocks=132, classes={"fdiv": 10_000})).metrics[NsightMetric.INSTRUCTIONS]
    assert 10_000 < plain < 20_000
    assert divided - plain > 50_000


def test_strided_copy_uses_an_eighth_of_each_sector() -> None:
    found = profile(Copy(1024, sectors_per_load=32).record())
    assert found.metrics[NsightMetric.LOAD_SECTOR_USE] == 12.5
    assert found.notes["sparse_access"] == "load at PTX line None: 32.0 sectors per request, 4.0 would do"


def test_occupancy_and_launch_figures() -> None:
    found = profile(Copy(2112).record(), registers=40)
    assert found.notes["occupancy_limiter"] == "registers"
    assert found.metrics[NsightMetric.LIMIT_REGISTERS] == 6
    assert found.metrics[NsightMetric.LIMIT_WARPS] == 8
    assert found.metrics[NsightMetric.LIMIT_BLOCKS] == 32
    assert found.metrics[NsightMetric.THEORETICAL_OCCUPANCY] == 75
    assert found.metrics[NsightMetric.WAVES] == pytest.approx(2112 / (132 * 6))
    assert found.metrics[NsightMetric.GRID_SIZE] == 2112
    assert found.metrics[NsightMetric.BLOCK_SIZE] == 256
    assert found.metrics[NsightMetric.SHARED_PER_BLOCK] == 1024


def test_duration_cycles_and_throughput_agree() -> None:
    found = profile(Copy(65_536, width=16).record()).metrics
    seconds = found[NsightMetric.DURATION] * 1e-9
    assert found[NsightMetric.ELAPSED_CYCLES] == pytest.approx(seconds * 1.98e9, abs=1)
    moved = found[NsightMetric.DRAM_READ] + found[NsightMetric.DRAM_WRITE]
    assert found[NsightMetric.DRAM_THROUGHPUT] == pytest.approx(100 * moved / seconds / 4.8e12)
    assert found[NsightMetric.MEMORY_THROUGHPUT] >= found[NsightMetric.DRAM_THROUGHPUT]


def test_bank_conflicts_are_passes_beyond_one() -> None:
    record = launch(
        blocks=132,
        classes={"ld_shared": 105_600, "st_shared": 105_600, "int": 100},
        memory=(
            access(Space.SHARED, Access.LOAD, 105_600, ways=32),
            access(Space.SHARED, Access.STORE, 105_600),
        ),
    )
    found = profile(record)
    assert found.metrics[NsightMetric.SHARED_WAVEFRONTS] == 33 * 105_600 + record.warps
    assert found.metrics[NsightMetric.SHARED_LOAD_CONFLICTS] == 31 * 105_600
    assert found.metrics[NsightMetric.SHARED_STORE_CONFLICTS] == 0
    assert found.metrics[NsightMetric.STALL_MIO_THROTTLE] > found.metrics[NsightMetric.STALL_LONG_SCOREBOARD]
    assert found.notes["bank_conflicts"].endswith("32.0 passes per request")


def test_wide_shared_loads_are_not_conflicts() -> None:
    record = launch(
        blocks=132,
        classes={"ld_shared": 1056},
        memory=(access(Space.SHARED, Access.LOAD, 1056, bytes_per_lane=16),),
    )
    assert profile(record).metrics[NsightMetric.SHARED_LOAD_CONFLICTS] == 0


@pytest.mark.parametrize(("blocks", "measured"), [(1, 13_817), (16, 91_668), (132, 294_783)])
def test_sms_that_want_the_same_ask_once(blocks: int, measured: int) -> None:
    """Blocks that all read the same 256 KB: lts__t_sectors_op_read of Nsight Compute on an H200."""
    record = Copy(blocks).record()
    read = replace(
        record, l2_read_sectors=blocks * 8192, unique_read_bytes=262_144, l2_write_sectors=0, unique_write_bytes=0
    )
    assert profile(read).metrics[NsightMetric.L2_READ_SECTORS] == pytest.approx(measured, rel=0.3)


def test_blocks_of_later_waves_ask_again() -> None:
    """Of 16 waves of blocks that read the same, the first asks less often."""
    first = profile(Copy(132).record()).metrics
    fitting = round(132 / first[NsightMetric.WAVES])
    for waves, least, most in ((1, 0.0, 0.3), (16, 0.9, 1.1)):
        record = Copy(waves * fitting).record()
        same = replace(record, l2_read_sectors=record.blocks * 1024, unique_read_bytes=32_768)
        found = profile(same).metrics[NsightMetric.L2_READ_SECTORS]
        assert least < found / same.l2_read_sectors < most


def test_a_launch_reads_what_no_thread_asks_for() -> None:
    """Nsight Compute gave 997 sectors read, 35 written, a hit rate of 34.5 % and 3.3 KB of DRAM for such a launch."""
    found = profile(Copy(1, threads=128).record()).metrics
    assert found[NsightMetric.L2_READ_SECTORS] == pytest.approx(1000, rel=0.05)
    assert found[NsightMetric.L2_HIT_RATE] == pytest.approx(34.5, abs=4)
    assert found[NsightMetric.DRAM_READ] == pytest.approx(3328, rel=0.1)


def test_what_cannot_be_known_is_absent() -> None:
    arithmetic_only = launch(blocks=132, classes={"ffma": 132 * 8 * 100})
    found = profile(arithmetic_only).metrics
    assert NsightMetric.L1_HIT_RATE not in found
    assert NsightMetric.LOAD_SECTOR_USE not in found
    assert NsightMetric.BRANCH_UNIFORMITY not in found


def test_spilling_kernel_does_not_claim_to_know_its_local_traffic() -> None:
    found = profile(Copy(132).record(), spill_bytes=64)
    assert NsightMetric.LOCAL_LOADS not in found.metrics
    assert found.notes["spills"] == "64 bytes stored, 64 bytes loaded"
    assert profile(Copy(132).record()).metrics[NsightMetric.LOCAL_LOADS] == 0


def test_divergence_shows_in_branches_and_threads() -> None:
    record = launch(blocks=132, classes={"int": 1000}, branches=200, divergent_branches=50)
    half = replace(record, thread_instructions=16 * 1000)
    found = profile(half).metrics
    assert found[NsightMetric.BRANCH_UNIFORMITY] == 75
    assert found[NsightMetric.THREADS_PER_INSTRUCTION] == 16


def test_fma_bound_kernel_shows_its_pipe() -> None:
    found = profile(launch(blocks=1056, classes={"ffma": 1056 * 8 * 100_000})).metrics
    assert found[NsightMetric.PIPE_FMA] > 80
    assert found[NsightMetric.SM_THROUGHPUT] > 80
    assert found[NsightMetric.MEMORY_THROUGHPUT] < 1
    assert found[NsightMetric.STALL_MATH_THROTTLE] > found[NsightMetric.STALL_LONG_SCOREBOARD]


def test_percentages_never_pass_a_hundred() -> None:
    for blocks in (1, 131, 133, 5000):
        metrics = profile(Copy(blocks, sectors_per_load=32).record()).metrics
        assert all(0 <= metrics[name] <= 100 for name in NsightMetric if name in metrics and name.unit == "%")


def test_copy_resembles_what_nsight_measured() -> None:
    """One float per thread, 2^26 of them, on an H200: DRAM 55 %, occupancy 71 %, long scoreboard far ahead."""
    found = profile(Copy(262_144).record()).metrics
    assert found[NsightMetric.DRAM_THROUGHPUT] == pytest.approx(55, abs=8)
    assert found[NsightMetric.ACHIEVED_OCCUPANCY] == pytest.approx(71, abs=8)
    stalls = {name: found[name] for name in NsightMetric if "issue_stalled" in name and name in found}
    assert max(stalls, key=stalls.__getitem__) == NsightMetric.STALL_LONG_SCOREBOARD


def test_hot_lines_name_file_and_share() -> None:
    record = replace(
        launch(blocks=132, classes={"int": 1000}),
        lines=(
            LineCounts(source_file="/tmp/a/candidate.cu", source_line=7, warp_instructions=250),
            LineCounts(source_file="/tmp/a/candidate.cu", source_line=9, warp_instructions=600),
        ),
    )
    assert profile(record).notes["hot_lines"] == "candidate.cu:9 60%, candidate.cu:7 25%"


def test_bulk_copies_are_what_no_load_or_store_asked_for() -> None:
    plain = Copy(1024).record()
    assert NsightMetric.TMA_READ not in profile(plain).metrics
    in_bulk = replace(
        plain,
        l2_read_sectors=plain.l2_read_sectors + 5000,
        l2_write_sectors=plain.l2_write_sectors + 300,
    )
    found = profile(in_bulk).metrics
    assert found[NsightMetric.TMA_READ] == 5000 * 32
    assert found[NsightMetric.TMA_WRITE] == 300 * 32
    local = access(Space.LOCAL, Access.STORE, 10)
    assert bulk_written_sectors(replace(in_bulk, memory=(*in_bulk.memory, local))) == 0  # how many is not known


def test_wavefronts_of_shared_memory_by_what_made_them() -> None:
    accesses = (access(Space.SHARED, Access.LOAD, 700, ways=2), access(Space.SHARED, Access.STORE, 500))
    found = profile(launch(blocks=132, classes={"int": 2000}, memory=accesses)).metrics
    assert found[NsightMetric.SHARED_LOAD_WAVEFRONTS] == 1400
    assert found[NsightMetric.SHARED_STORE_WAVEFRONTS] == 500
