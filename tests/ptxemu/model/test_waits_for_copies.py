"""Blocks wait for tiles of which shared memory holds few, and printing warps take turns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from launch_records import launch, resources

from ptxemu.counters.launch import LaunchRecord
from ptxemu.model.architecture import gpu_model
from ptxemu.model.bulk_copies import clocks_with_copies
from ptxemu.model.kernel import estimate

H200 = gpu_model("h200")
TILES, TILE = 32, 8192
CLOCKS = 16_000.0


def copying(stages: int) -> LaunchRecord:
    """132 blocks, each of which brings 32 tiles of 8 KB."""
    record = launch(blocks=132, threads=128, classes={"int": 132 * 4 * 1000}, static_shared=stages * TILE + 1024)
    sectors = 132 * TILES * TILE // 32
    operations = {**record.operations, "mbarrier_arrive_expect_tx": 132 * TILES}
    return replace(record, operations=operations, l2_read_sectors=sectors)


def test_a_block_with_room_for_one_tile_waits_for_each() -> None:
    latency = H200.architecture.latency
    transfer = TILE / (H200.gpu.l2_bandwidth / H200.gpu.sms / H200.clock_hz)
    found = clocks_with_copies(copying(1), CLOCKS, 0.0, H200)
    assert found == pytest.approx(CLOCKS + TILES * (latency.l2 + transfer))
    from_dram = clocks_with_copies(copying(1), CLOCKS, 132 * TILES * TILE, H200)
    assert from_dram - found == pytest.approx(TILES * (latency.dram - latency.l2))


def test_more_tiles_hide_the_wait() -> None:
    one, two, eight = (clocks_with_copies(copying(stages), CLOCKS, 1e9, H200) for stages in (1, 2, 8))
    assert one == pytest.approx(2 * two)
    assert eight == CLOCKS


def test_a_launch_without_copies_waits_for_none() -> None:
    plain = launch(blocks=132, classes={"int": 1000})
    assert clocks_with_copies(plain, CLOCKS, 0.0, H200) == CLOCKS
    assert clocks_with_copies(replace(copying(1), operations={}), CLOCKS, 0.0, H200) == CLOCKS


def test_warps_that_print_take_turns() -> None:
    record = launch(blocks=132, classes={"int": 132 * 8 * 100})
    silent, few, many = (
        estimate(replace(record, operations={**record.operations, "vprintf": count}), resources(), H200).duration_s
        for count in (0, 100, 200)
    )
    assert many - few == pytest.approx(100 * 2.4e-6, rel=0.02)
    assert silent < 10e-6 < few
