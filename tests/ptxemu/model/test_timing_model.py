"""The timing model as properties: what may never happen, and the size of a few known effects."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_records import Copy, access, launch, resources

from ptxemu.counters.launch import GLOBAL_SPACES, Access, LaunchRecord, MachineCounts, MemoryInstruction, Space
from ptxemu.counters.record import TransferKind, TransferRecord
from ptxemu.metrics.names import NsightMetric
from ptxemu.metrics.profile import kernel_launch
from ptxemu.model.architecture import gpu_model, gpu_names
from ptxemu.model.call import estimate_call
from ptxemu.model.kernel import GpuUnit, KernelEstimate, Unlaunchable, estimate, smooth_maximum
from ptxemu.model.load_latency import LoadLatency
from ptxemu.model.traffic import filled_bytes, sweeps

H200 = gpu_model("h200")
TINY = 1 + 1e-9
WIDTH = 1.07
"""In a launch of few blocks one SM makes the passes that four SMs share, one after the other with its waits."""
GPUS = st.sampled_from(gpu_names())


def model(record: LaunchRecord, *, registers: int = 32, gpu: str = "h200", spill_bytes: int = 0) -> KernelEstimate:
    return estimate(record, resources(registers=registers, spill_bytes=spill_bytes), gpu_model(gpu))


@given(blocks=st.integers(1, 40_000), threads=st.sampled_from([32, 64, 128, 256, 512, 1024]), gpu=GPUS)
def test_float4_with_a_quarter_of_the_blocks_is_never_slower(blocks: int, threads: int, gpu: str) -> None:
    scalar = model(Copy(4 * blocks, threads).record(), gpu=gpu)
    vector = model(Copy(blocks, threads, width=16).record(), gpu=gpu)
    assert vector.duration_s <= scalar.duration_s * WIDTH


@given(blocks=st.integers(1, 5_000), per_thread=st.integers(1, 64), threads=st.sampled_from([64, 256, 1024]), gpu=GPUS)
def test_float4_in_the_same_grid_is_never_slower(blocks: int, per_thread: int, threads: int, gpu: str) -> None:
    scalar = model(Copy(blocks, threads, per_thread=4 * per_thread).record(), gpu=gpu)
    vector = model(Copy(blocks, threads, width=16, per_thread=per_thread).record(), gpu=gpu)
    assert vector.duration_s <= scalar.duration_s * WIDTH


@given(
    blocks=st.integers(1, 3_000),
    extra=st.dictionaries(
        st.sampled_from(["fp32", "ffma", "int", "imad", "idiv", "fdiv", "xu", "cvt", "alu", "shfl", "bar", "branch"]),
        st.integers(1, 100_000),
        max_size=4,
    ),
)
def test_more_instructions_are_never_faster(blocks: int, extra: dict[str, int]) -> None:
    record = Copy(blocks).record()
    classes = {name: record.count(name) + extra.get(name, 0) for name in {*record.classes, *extra}}
    more = replace(record, classes=classes, warp_instructions=record.warp_instructions + sum(extra.values()))
    assert model(more).duration_s >= model(record).duration_s


@given(blocks=st.integers(1, 50_000), sectors=st.floats(4, 32))
def test_sparser_loads_are_never_faster(blocks: int, sectors: float) -> None:
    dense = model(Copy(blocks).record())
    sparse = model(Copy(blocks, sectors_per_load=sectors).record())
    assert sparse.duration_s * TINY >= dense.duration_s


@given(blocks=st.integers(1, 3_000), ways=st.integers(2, 32))
def test_bank_conflicts_are_never_faster(blocks: int, ways: int) -> None:
    assert model(_shared_kernel(blocks, ways)).duration_s >= model(_shared_kernel(blocks, 1)).duration_s


@given(blocks=st.integers(1, 3_000), registers=st.integers(16, 254))
def test_more_registers_are_never_faster(blocks: int, registers: int) -> None:
    record = Copy(blocks, per_thread=8).record()
    assert model(record, registers=registers + 1).duration_s >= model(record, registers=registers).duration_s


@given(times=st.lists(st.floats(0, 1e3), min_size=1, max_size=15), norm=st.floats(1, 10))
def test_smooth_maximum_is_bounded_by_maximum_and_sum(times: list[float], norm: float) -> None:
    combined = smooth_maximum(times, norm)
    assert max(times) <= combined * TINY
    assert combined <= sum(times) * TINY


def test_large_copy_is_bound_by_dram_at_the_measured_rate() -> None:
    record = Copy(65_536, width=16).record()
    found = model(record)
    assert found.bound is GpuUnit.DRAM
    assert record.unique_bytes / found.duration_s == pytest.approx(4.3e12, rel=0.08)


def test_one_element_per_thread_starves_the_memory_system() -> None:
    """Nsight Compute gives 195 us for this launch on an H200: blocks end before their slots are refilled."""
    found = model(Copy(262_144).record(), registers=16)
    assert found.bound in (GpuUnit.LATENCY, GpuUnit.LAUNCH)
    assert found.duration_s == pytest.approx(195e-6, rel=0.15)


def test_short_blocks_are_started_one_after_the_other() -> None:
    """Nsight Compute gives 37,600 active clocks for 31,250 blocks of 128 threads on an H200, and 36 % of occupancy."""
    found = model(Copy(31_250, 128).record(), registers=16)
    assert found.busy_s * H200.clock_hz == pytest.approx(37_600, rel=0.25)
    assert found.alive_s < found.busy_s
    metrics = kernel_launch(found, H200).metrics
    assert metrics[NsightMetric.ACHIEVED_OCCUPANCY] < 0.75 * metrics[NsightMetric.THEORETICAL_OCCUPANCY]


def test_warps_with_a_scheduler_each_wait_for_no_other() -> None:
    alone, together = (
        launch(blocks=132 * many, threads=128, classes={"ffma": 132 * many * 4 * 8000}) for many in (1, 8)
    )
    assert model(alone).busy_s == pytest.approx(model(alone).work_s[GpuUnit.LATENCY], rel=0.01)
    assert model(together).busy_s > 1.05 * model(together).work_s[GpuUnit.LATENCY]


def test_parts_of_sectors_are_completed_from_dram() -> None:
    """Stores of every second word: Nsight Compute reads 25.8 MB from DRAM where 32 MB of sectors are written."""
    whole, half = (_stores(1_000_000, lanes) for lanes in (32, 16))
    assert filled_bytes(whole) == 0
    assert filled_bytes(half) == pytest.approx(25.8e6 / 32e6 * half.unique_write_bytes, rel=0.15)
    assert model(half).duration_s > model(whole).duration_s


def _stores(requests: int, lanes: int) -> LaunchRecord:
    store = replace(access(Space.GLOBAL, Access.STORE, requests), lanes=lanes * requests)
    return launch(blocks=13_200, classes={"int": 4 * requests}, memory=(store,), unique_write_bytes=128 * requests)


@pytest.mark.parametrize(("kind", "clocks"), [("f32", 3.45), ("b32", 1.4)])
def test_atomics_at_one_word_take_longer_for_floats(kind: str, clocks: float) -> None:
    """100,003 lanes at one word: 177.6 us for floats and 75.6 us for integers, by Nsight Compute on an H200."""
    record = replace(
        launch(blocks=391, classes={"int": 3128}),
        hottest_atomic_passes=100_003,
        hottest_line_passes=100_003,
        operations={f"atom_add_{kind}": 3126},
    )
    assert model(record).work_s[GpuUnit.ATOMICS] == pytest.approx(100_003 * clocks / H200.clock_hz)


def test_sums_of_floats_do_not_hold_up_other_lines() -> None:
    record = replace(
        launch(blocks=391, classes={"int": 3128}),
        hottest_atomic_passes=100_000,
        hottest_line_passes=25_000,
        operations={"atom_add_f32": 3126},
    )
    assert model(record).work_s[GpuUnit.ATOMICS] == pytest.approx(100_000 * 1.4 / H200.clock_hz)


def test_thirty_two_way_conflict_costs_about_thirty_two_passes() -> None:
    """Beside them each warp takes a pass to read the index of its thread."""
    plain, conflicted = _shared_kernel(13_200, 1), _shared_kernel(13_200, 32)
    indices = plain.warps / 132 / H200.clock_hz
    busy = [model(one).work_s[GpuUnit.LSU] - indices for one in (conflicted, plain)]
    assert busy[0] / busy[1] == pytest.approx(32, rel=0.01)
    assert model(conflicted).bound is GpuUnit.LSU


def test_one_block_leaves_the_other_sms_idle() -> None:
    one = model(Copy(1, 1024, per_thread=1320).record())
    spread = model(Copy(132, 1024, per_thread=10).record())
    assert one.busy_s > 20 * spread.busy_s


def test_tensor_cores_beat_the_fma_pipe() -> None:
    warps = 132 * 64
    scalar = launch(blocks=132 * 8, classes={"ffma": warps * 4096 // 32})
    tensor = launch(blocks=132 * 8, classes={"tensor": warps}, tensor_fma=warps * 4096)
    assert model(tensor).work_s[GpuUnit.TENSOR] < model(scalar).work_s[GpuUnit.FMA] / 5


def test_spills_cost_time() -> None:
    record = Copy(2000, per_thread=4).record()
    assert model(record, spill_bytes=256).duration_s > model(record).duration_s


def test_block_that_fits_no_sm_is_refused() -> None:
    with pytest.raises(Unlaunchable):
        model(Copy(1, 1024).record(), registers=255)


def test_fusing_two_kernels_saves_a_launch_and_a_round_trip() -> None:
    single = Copy(1024).record()
    known = {"kernel": resources()}
    two = estimate_call([single, single], known, H200)
    one = estimate_call([single], known, H200)
    assert two.device_us - one.device_us >= H200.gpu.kernel_us
    warm = estimate(single, resources(), H200, warm_bytes=single.unique_bytes)
    assert warm.dram_read_bytes == 0
    assert two.device_us - one.device_us == pytest.approx(1e6 * warm.duration_s)


def test_every_kernel_of_a_profile_begins_with_an_empty_l2() -> None:
    single = Copy(1024).record()
    found = estimate_call([single, single], {"kernel": resources()}, H200)
    assert [kernel.dram_read_bytes for kernel in found.kernels] == 2 * [single.unique_read_bytes]


def test_second_kernel_is_cold_when_both_outgrow_the_l2() -> None:
    big = Copy(65_536).record()
    found = estimate_call([big, big], {"kernel": resources()}, H200)
    assert found.kernels[1].dram_read_bytes == big.unique_read_bytes


@pytest.mark.parametrize(
    ("kind", "least_us"),
    [
        (TransferKind.FILL, 1e6 * 43e6 / 4.3e12),
        (TransferKind.DEVICE_TO_DEVICE, 1e6 * 2 * 43e6 / 4.3e12),
        (TransferKind.HOST_TO_DEVICE, 1e6 * 43e6 / 2.5e10),
        (TransferKind.DEVICE_TO_HOST, 1e6 * 43e6 / 2.5e10),
    ],
)
def test_copies_are_not_free(kind: TransferKind, least_us: float) -> None:
    found = estimate_call([TransferRecord(transfer=kind, bytes=43_000_000)], {}, H200)
    assert found.transfers_us == pytest.approx(least_us, abs=13)
    assert found.device_us > found.transfers_us > least_us


def _shared_kernel(blocks: int, ways: int) -> LaunchRecord:
    warps = blocks * 8
    return launch(
        blocks=blocks,
        classes={"int": 4 * warps, "ld_shared": 8 * warps},
        memory=(access(Space.SHARED, Access.LOAD, 8 * warps, ways=ways),),
    )


def test_integer_products_have_half_of_the_fma_pipe() -> None:
    """CUDA C++ Programming Guide: 64 of them per clock on sm_90, and 128 products of floats."""
    products = 132 * 64
    counts = MachineCounts(
        instructions=products, alu=0, fma=products, fma_heavy=products, halves=0, xu=0, lsu=0, adu=0, tensor_halves=0,
        shared_passes=0, spill_loads=0, spill_stores=0,
    )  # fmt: skip
    found = model(replace(Copy(132).record(), machine=counts))
    assert found.work_s[GpuUnit.FMA_HEAVY] == pytest.approx(2 * found.work_s[GpuUnit.FMA])
    assert found.work_s[GpuUnit.FMA_HEAVY] == pytest.approx(products * 32 / 64 / 132 / H200.clock_hz)


def test_loads_that_hit_do_not_wait_for_those_that_miss() -> None:
    """Of two loads, one from the L1 and one from DRAM, the mean waits half as long."""
    missing = access(Space.GLOBAL, Access.LOAD, 1000)
    hitting = access(Space.GLOBAL, Access.LOAD, 1000, hits=1.0)
    latency = H200.architecture.latency
    one = LoadLatency.of(_loads(missing), GLOBAL_SPACES, 128_000, 1.0, H200.architecture).mean
    both = LoadLatency.of(_loads(missing, hitting), GLOBAL_SPACES, 128_000, 1.0, H200.architecture).mean
    assert one == pytest.approx(latency.dram)
    assert both == pytest.approx((latency.dram + latency.l1) / 2)


def test_hits_on_lines_of_other_warps_wait_in_the_first_round() -> None:
    own = access(Space.GLOBAL, Access.LOAD, 1000, hits=0.75)
    others = replace(own, l1_shared_sectors=own.l1_hit_sectors, shared_requests=own.requests - own.missed_requests)
    waits = [
        LoadLatency.of(_loads(one), GLOBAL_SPACES, 128_000, rounds, H200.architecture).mean
        for one, rounds in ((own, 1.0), (others, 8.0), (others, 1.0))
    ]
    assert waits == sorted(waits)
    assert waits[0] < waits[2]


def test_sectors_that_a_block_asks_for_again_are_in_the_l2() -> None:
    record = replace(_loads(access(Space.GLOBAL, Access.LOAD, 1000)), l2_read_sectors=4000, repeated_read_sectors=3000)
    latency = H200.architecture.latency
    mean = LoadLatency.of(record, GLOBAL_SPACES, 128_000, 1.0, H200.architecture).mean
    assert mean == pytest.approx(0.25 * latency.dram + 0.75 * latency.l2)


def test_half_of_the_misses_of_a_walk_along_lines_find_what_dram_brought_with_the_sector_before() -> None:
    """Seven of eight loads hit: misses are the first or the second half of 64 bytes."""
    walk = _loads(replace(access(Space.GLOBAL, Access.LOAD, 8000, hits=7 / 8), ptx_line=3))
    (arrival,) = LoadLatency.of(walk, GLOBAL_SPACES, 10**9, 1.0, H200.architecture).by_line().values()
    assert arrival.beyond == pytest.approx(1 / 8)
    assert arrival.farthest / arrival.beyond == pytest.approx(1 - 7 / 8 / 2)


def test_sectors_that_many_sms_read_come_from_the_l2() -> None:
    """A sector is brought once: of few reads all wait for it, of many most find it there."""
    load = _loads(access(Space.GLOBAL, Access.LOAD, 1000))
    few, many = (
        LoadLatency.of(load, GLOBAL_SPACES, 128_000 / reads, 1.0, H200.architecture).mean for reads in (2, 1000)
    )
    latency = H200.architecture.latency
    assert few == pytest.approx(latency.dram)
    assert many == pytest.approx(latency.l2, rel=0.05)


def test_lines_beyond_those_that_the_bytes_fill_take_further_passes() -> None:
    straight = _loads(access(Space.GLOBAL, Access.LOAD, 1000, hits=1.0))
    scattered = _loads(access(Space.GLOBAL, Access.LOAD, 1000, hits=1.0, ways=32))
    passes = [model(one).work_s[GpuUnit.LSU] * H200.clock_hz / model(one).spread.share for one in (straight, scattered)]
    assert passes[1] - passes[0] == pytest.approx(1000 * 31 * H200.architecture.timing.passes_per_line)


def _loads(*memory: MemoryInstruction) -> LaunchRecord:
    return launch(blocks=132, classes={"int": 10_000}, memory=memory, unique_read_bytes=128_000)


@pytest.mark.parametrize(
    ("read_by", "repeated", "waves", "times"),
    [(16, 0.0, 1.0, 1.0), (16, 0.0, 3.0, 3.0), (2, 0.0, 8.0, 2.0), (1, 2.0, 1.0, 3.0), (4, 1.0, 1.0, 2.0)],
)
def test_blocks_that_run_at_the_same_time_read_a_sector_together(
    read_by: int, repeated: float, waves: float, times: float
) -> None:
    """Each sector is read by so many blocks, and by each of them again so many times."""
    sectors = 4_000_000
    reads = int(sectors * read_by * (1 + repeated))
    record = replace(
        _loads(access(Space.GLOBAL, Access.LOAD, 1000)),
        unique_read_bytes=32 * sectors,
        l2_read_sectors=reads,
        repeated_read_sectors=reads - sectors * read_by,
    )
    assert sweeps(record, waves) == pytest.approx(times)


def test_tensor_cores_slow_the_clock_by_how_busy_they_are() -> None:
    shares = (0.0, 0.01, 0.1, 0.5, 1.0)
    clocks = [H200.clock_under_load(share) for share in shares]
    assert clocks == sorted(clocks, reverse=True)
    assert clocks[0] == H200.clock_hz
    # The clock of a launch on an H200 whose tensor cores were busy for 79 % of 53.2 us (level2/086, fp16, medium).
    assert H200.clock_under_load(0.79) == pytest.approx(1.51e9, rel=0.03)
