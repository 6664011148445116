"""Contenders whose launches take different times are all timed behind fills that hide the slowest launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from fake_device import facts
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.devices.base import TimingSample
from kernelblaster.evaluation.inputs.perturbations import PerturbationSchedule
from kernelblaster.evaluation.timing.conditions import Readings
from kernelblaster.evaluation.timing.round_robin import (
    APART,
    APART_CYCLES,
    LEAST_CYCLES,
    MOST_COVER_FILLS,
    Participant,
    RoundRobin,
    cover_fills_for,
    fill_us,
)

EVENT_US, WAIT_US = 1.0, 9.0


@dataclass
class Contender:
    """A GPU that begins a call when the fills are over and the host has launched it."""

    gpu_us: float
    launch_us: float
    covers: list[int] = field(default_factory=list)

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        self.covers += [cover_fills] * len(perturbations)
        cover = cover_fills * fill_us(facts())
        late = max(self.launch_us - cover, 0.0)
        host = max(cover, self.launch_us) + self.gpu_us + WAIT_US
        return [TimingSample(late + self.gpu_us + EVENT_US, host, self.launch_us) for _ in perturbations]


@dataclass
class Slowing(Contender):
    """Its launches take longer once it is sampled, as on a host with other work."""

    slower: float = 3.0
    warm_up: int = 10

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        if len(self.covers) == self.warm_up:
            self.launch_us *= self.slower
        return super().time_calls(perturbations, cover_fills)


def round_robin(**participants: Contender | Participant) -> RoundRobin:
    entries = {name: one if isinstance(one, Participant) else Participant(one) for name, one in participants.items()}
    clock = iter(range(10**6)).__next__
    return RoundRobin(entries, facts(), PerturbationSchedule(), Readings(lambda: None, clock), clock=clock)


def test_host_time_shows_in_no_device_time_and_in_every_wall_time() -> None:
    slow_launch = 6 * 5 * fill_us(facts())
    found = round_robin(ours=Contender(20.0, 5.0), eager=Contender(18.0, slow_launch))
    found.run(30)
    for entry, gpu_us in zip(found.entries.values(), (20.0, 18.0), strict=True):
        assert [us for cycle in entry.cycles for us in cycle] == pytest.approx(
            [gpu_us + EVENT_US] * 4 * len(entry.cycles)
        )
        assert entry.exposed == 0
        assert len(entry.cycles) >= LEAST_CYCLES
    assert set(found.entries["ours"].walls_us) == {5.0 + 20.0 + WAIT_US}
    assert set(found.entries["eager"].walls_us) == {slow_launch + 18.0 + WAIT_US}


def test_all_are_launched_behind_equally_many_fills() -> None:
    one, other = Contender(20.0, 5.0), Contender(18.0, 40 * fill_us(facts()))
    found = round_robin(one=one, other=other)
    found.run(1)
    assert one.covers == other.covers
    assert max(one.covers) == found.cover_fills > 40


def test_what_takes_very_long_is_sampled_apart() -> None:
    found = round_robin(ours=Contender(20.0, 5.0), start=Contender(40.0 * APART, 5.0))
    found.run(50)
    assert len(found.entries["start"].cycles) == APART_CYCLES
    assert len(found.entries["ours"].cycles) >= 2 * LEAST_CYCLES


def test_a_launch_that_nothing_hides_is_counted() -> None:
    found = round_robin(waits=Contender(20.0, 2 * MOST_COVER_FILLS * fill_us(facts())))
    found.run(1)
    assert found.entries["waits"].exposed == sum(map(len, found.entries["waits"].cycles))


def test_samples_are_taken_again_behind_more_fills_where_launches_took_longer_after_all() -> None:
    launch_us = 10 * fill_us(facts())
    found = round_robin(eager=Slowing(18.0, launch_us), ours=Contender(20.0, 5.0))
    found.run(30)
    assert found.cover_fills >= 2 * 15
    for entry, gpu_us in zip(found.entries.values(), (18.0, 20.0), strict=True):
        assert entry.exposed == 0
        assert {us for cycle in entry.cycles for us in cycle} == {gpu_us + EVENT_US}


def test_what_no_fills_hide_is_sampled_as_a_graph() -> None:
    long_us = 2 * MOST_COVER_FILLS * fill_us(facts())
    graph, chain = Contender(1000.0, 5.0), Contender(1100.0, long_us)
    found = round_robin(chain=Participant(chain, lambda: graph), ours=Participant(Contender(20.0, 5.0), lambda: 1 / 0))
    found.run(30)
    entry = found.entries["chain"]
    assert entry.graph is graph
    assert entry.exposed == 0
    assert {us for cycle in entry.cycles for us in cycle} == {1000.0 + EVENT_US}
    assert entry.launch_us == long_us, "it says how long the host takes without the graph"
    assert min(entry.walls_us) > long_us
    assert found.cover_fills < MOST_COVER_FILLS, "the others need not wait for what is not launched"


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=6))
def test_the_fills_last_longer_than_any_launch_that_can_be_hidden(launches: list[float]) -> None:
    fills = cover_fills_for(launches, facts())
    assert fills * fill_us(facts()) >= max(launches) or fills == MOST_COVER_FILLS
