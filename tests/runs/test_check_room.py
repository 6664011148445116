"""Starts that are judged at once have memory together, and none waits for ever."""

from __future__ import annotations

from dataclasses import replace

from fake_device import facts
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster import load_problem
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.runs.check_room import CheckRoom, Need, Room

GPU = facts().model_copy(update={"memory_bytes": 1000})
PLENTY = Room(lambda: 1 << 60)
NEEDS = st.builds(Need, st.integers(0, 900), st.integers(0, 400), st.integers(0, 10))


def room(**given: Room) -> CheckRoom:
    return CheckRoom(GPU, 1, **{"memory": PLENTY, "space": PLENTY, **given})


@given(st.lists(NEEDS, min_size=1, max_size=6))
def test_whatever_large_reference_is_computed_there_is_memory_for_it_and_all_others(needs: list[Need]) -> None:
    if not room().holds(needs):
        return
    for now in needs:
        others = [need for need in needs if need is not now]
        taken = sum(need.judging + (0 if need.is_large(GPU) else need.reference) for need in others)
        assert taken + now.reference <= GPU.memory_bytes
        assert taken + now.judging <= GPU.memory_bytes


def test_large_references_do_not_add_up_but_processes_do() -> None:
    large = Need(reference=600, judging=150)
    assert room().holds([large, large])
    assert room().holds([large] * 3)
    assert not room().holds([large] * 4)
    assert not room().holds([replace(large, reference=800), replace(large, judging=300)])


def test_small_ones_go_beside_large_ones() -> None:
    large, small = Need(reference=600, judging=150), Need(reference=40, judging=10)
    assert room().holds([large, *[small] * 8])
    assert not room().holds([large, *[small] * 9])


def test_memory_that_a_machine_is_given_later_counts_from_then_on() -> None:
    now, free = 0.0, [10, 80, 5]
    space = Room(lambda: free.pop(0), clock=lambda: now)
    files = [Need(files=30), Need(files=30)]
    assert not room(space=space).holds(files)
    now = 0.5
    assert not room(space=space).holds(files), "it is not read at every look"
    now = 2.0
    assert room(space=space).holds(files)
    now = 4.0
    assert room(space=space).holds(files), "what runs has taken some"


def test_references_of_an_emulated_gpu_take_memory_of_the_host() -> None:
    emulated = facts(DeviceKind.EMULATED)
    needs = [Need(reference=40, judging=10**15, files=10)] * 2
    assert CheckRoom(emulated, 1, Room(lambda: 100), PLENTY).holds(needs)
    assert not CheckRoom(emulated, 1, Room(lambda: 99), PLENTY).holds(needs)


def test_a_start_needs_what_its_tensors_take() -> None:
    problem = load_problem("level1/19")
    half, single = (
        room().need(problem, StandardWorkload.FULL, precision) for precision in (Precision.FP16, Precision.FP32)
    )
    assert single.files == 2 * half.files
    assert single.reference == half.reference
    assert half.judging < single.judging < 2 * half.judging + single.files
    smaller = room().need(problem, StandardWorkload.SMALL, Precision.FP16)
    assert smaller.reference < half.reference / 100
    assert smaller.files < half.files / 100
