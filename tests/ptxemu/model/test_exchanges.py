"""Contended additions of 16-bit floats: how often their loops go round, and how long the lanes take turns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from launch_records import Copy, access

from ptxemu.counters.launch import Access, LaunchRecord, MemoryInstruction, Space
from ptxemu.counters.retries import exchange_rounds


def additions(requests: int, words: int, resident: int) -> tuple[LaunchRecord, MemoryInstruction]:
    """Whole warps, each of whose lanes adds to one of so many words of its own choice, evenly."""
    one = replace(
        access(Space.GLOBAL, Access.ATOMIC, requests),
        bytes_per_lane=2,
        lanes=32 * requests,
        rounds=32 * requests // words,
    )
    launch = replace(
        Copy(1).record(), memory=(one,), hottest_word_lanes=32 * requests // words, resident_warps=resident
    )
    return launch, one


def test_a_warp_alone_goes_round_once_for_each_lane_at_its_word() -> None:
    assert exchange_rounds(*additions(1, 1, 1)) == 32
    assert exchange_rounds(*additions(1, 32, 1)) == 1


def test_warps_that_come_together_all_wait_for_all() -> None:
    warps = 8
    # 32 rounds with 8 warps, 32 with 7, and so on
    exact = 32 * warps * (warps + 1) / 2
    assert exchange_rounds(*additions(warps, 1, warps)) == pytest.approx(exact, rel=0.15)


def test_failures_are_bounded_by_what_the_l2_does() -> None:
    few, many = (exchange_rounds(*additions(1000, 1, resident)) for resident in (10, 1000))
    assert few == pytest.approx(32 * 1000 * 10, rel=0.02)
    assert many == pytest.approx(32 * 1000 * 20, rel=0.02)


def test_words_that_few_lanes_share_cost_nothing() -> None:
    launch, one = additions(1000, 1, 1000)
    spread = replace(one, rounds=1000)
    assert exchange_rounds(replace(launch, hottest_word_lanes=4), spread) == 1000
