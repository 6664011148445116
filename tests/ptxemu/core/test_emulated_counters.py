"""Counters against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.nvcc


def per_request(access: dict, key: str) -> float:
    return access[key] / access["requests"]


def test_coalesced_floats_take_four_sectors(runner):
    x = np.zeros(1024, np.float32)
    outcome = runner("vadd", "4", "256", [x, x], 4096, 1024)
    loads, (store,) = outcome.accesses("global", "load"), outcome.accesses("global", "store")
    assert [per_request(one, "sectors") for one in [*loads, store]] == [4, 4, 4]
    assert store["requests"] == 32
    assert store["source_file"].endswith("kernels.cu")
    assert outcome.record["unique_read_bytes"] == 8192
    assert outcome.record["unique_write_bytes"] == 4096
    assert outcome.record["l2_read_sectors"] == 256


def test_float4_takes_sixteen_sectors_and_four_lines(runner):
    x = np.zeros(1024, np.float32)
    (load,) = runner("copy_vectors", "1", "256", [x], 4096, 256).accesses("global", "load")
    assert load["bytes_per_lane"] == 16
    assert (per_request(load, "sectors"), per_request(load, "wavefronts")) == (16, 4)
    assert load["ideal_sectors"] == load["sectors"]


def test_large_stride_takes_a_sector_per_lane(runner):
    x = np.zeros(33 * 64, np.float32)
    (load,) = runner("copy_strided", "1", "64", [x], 256, 64).accesses("global", "load")
    assert per_request(load, "sectors") == 32
    assert load["ideal_sectors"] == 8


def test_transpose_has_bank_conflicts_that_padding_removes(runner):
    x = np.arange(1024, dtype=np.float32)
    for kernel, wavefronts in (("transpose_conflict", 32), ("transpose_padded", 1)):
        outcome = runner(kernel, "1", "32,32", [x], 4096)
        np.testing.assert_array_equal(outcome.array("f4").reshape(32, 32), x.reshape(32, 32).T)
        (load,) = outcome.accesses("shared", "load")
        assert per_request(load, "wavefronts") == wavefronts


def test_sixteen_byte_shared_accesses_are_served_in_quarter_warps(runner):
    x = np.zeros(128, np.float32)
    outcome = runner("shared_float4", "1", "32", [x], 512)
    (store,), (load,) = outcome.accesses("shared", "store"), outcome.accesses("shared", "load")
    assert per_request(store, "wavefronts") == 4
    # Each quarter reads float4s 0, 8, 16, 24 twice: 4 distinct words in each of 4 banks.
    assert per_request(load, "wavefronts") == 16


def test_second_read_hits_l1(runner):
    x = np.random.default_rng(0).standard_normal((1, 128)).astype(np.float32)
    loads = runner("softmax_rows", "1", "32", [x], 512, 128).accesses("global", "load")
    assert sum(one["l1_hit_sectors"] for one in loads) == 2 * 16
    assert sum(one["sectors"] for one in loads) == 3 * 16


def test_counts_do_not_depend_on_threads(runner):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float32)
    records = [runner("matmul_tiled", "4,4", "16,16", [a, b], 16384, 64, threads=k).record for k in (1, 3)]
    assert records[0] == records[1]
    assert records[0]["barriers"] == 16 * 8 * 8
    assert records[0]["divergent_branches"] == 0


def test_classes_add_up(runner):
    x = np.zeros(256, np.float32)
    record = runner("vadd", "1", "256", [x, x], 1024, 256).record
    assert sum(record["classes"].values()) == record["warp_instructions"]
    assert sum(record["thread_classes"].values()) == record["thread_instructions"] == 32 * record["warp_instructions"]
    assert record["classes"]["fp32"] == 8


def test_nothing_is_reported_when_nothing_is_counted(runner):
    x = np.zeros(256, np.float32)
    assert runner("vadd", "1", "256", [x, x], 1024, 256, count=False).record == {}


def test_copies_and_fills_are_reported(runner):
    x = np.zeros(1024, np.float32)
    transfers = runner("vadd", "4", "256", [x, x], 4096, 1024).transfers
    assert transfers.count({"transfer": "host_to_device", "bytes": 4096}) == 2
    assert {"transfer": "device_to_host", "bytes": 4096} in transfers
    assert any(one["transfer"] == "fill" for one in transfers)
    assert runner("vadd", "4", "256", [x, x], 4096, 1024, count=False).transfers == []


def test_atomics_take_a_pass_for_each_sector_and_each_lane_at_the_same_word(runner):
    one_word, apart = np.zeros(256, np.int32), np.arange(256, dtype=np.int32)
    crowded, spread = (runner("histogram", "1", "256", [x], 64, 256).record for x in (one_word, apart))
    assert crowded["hottest_atomic_passes"] == 256
    # Each warp goes twice to each of 16 words, which fill two sectors.
    assert spread["hottest_atomic_passes"] == 8 * 2 * 2


def test_atomics_of_512_bytes_take_turns(runner):
    """128-byte lines share their turns with the three others of 512 bytes, and with no more."""
    x = np.zeros(4096, np.float32)
    one_word, lines, spans = (
        runner("add_at", "1", "256", [np.repeat(np.arange(8), 32).astype(np.int32) * step, x], 16_384).record
        for step in (0, 32, 128)
    )
    found = [(one["hottest_atomic_passes"], one["hottest_line_passes"]) for one in (one_word, lines, spans)]
    assert found == [(8 * 32, 8 * 32), (4 * 32, 32), (32, 32)]


def test_lanes_in_one_bank_take_turns_at_shared_atomics(runner):
    lanes = np.arange(32, dtype=np.int32)
    for places, at_one_word, in_one_bank in (
        (lanes * 0, 32, 32),
        (lanes % 8 * 32, 4, 32),
        (lanes % 8, 4, 4),
        (lanes, 1, 1),
    ):
        outcome = runner("shared_sums", "1", "32", [places], 128, 3)
        (found,) = [*outcome.accesses("shared", "atomic"), *outcome.accesses("shared", "reduction")]
        assert (found["rounds"], found["bank_turns"]) == (at_one_word, in_one_bank)
        np.testing.assert_array_equal(outcome.array("i4"), 3 * np.bincount(places, minlength=1024)[places])


def test_warps_that_share_the_l1_push_out_what_each_comes_back_to(runner):
    """A row of 64 KB fits the L1 alone, and not beside those of the other blocks that an SM holds."""
    x = np.zeros((132 * 8, 16_384), np.float32)
    alone, together = (
        runner("softmax_rows", str(blocks), "32", [x[:blocks]], 65_536 * blocks, 16_384).accesses("global", "load")
        for blocks in (1, 132 * 8)
    )
    hits = [
        sum(one["l1_hit_sectors"] for one in loads) / sum(one["sectors"] for one in loads)
        for loads in (alone, together)
    ]
    assert hits[0] == pytest.approx(2 / 3, abs=0.01)
    assert hits[1] < 0.05


def test_hits_on_lines_of_other_warps_are_told_apart(runner):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float32)
    loads = runner("matmul_tiled", "4,4", "16,16", [a, b], 16384, 64).accesses("global", "load")
    assert all(0 < one["l1_shared_sectors"] <= one["l1_hit_sectors"] for one in loads if one["l1_hit_sectors"])
    x = np.random.default_rng(0).standard_normal((1, 128)).astype(np.float32)
    loads = runner("softmax_rows", "1", "32", [x], 512, 128).accesses("global", "load")
    assert [one["l1_shared_sectors"] for one in loads] == [0] * len(loads)
