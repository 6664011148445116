"""Processes that judge for a run: problems stay with one, errors come as they are, what dies is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import judging_work
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging_work import Named, judge, refused

from kernelblaster.errors import DeviceError, ProblemError
from kernelblaster.runs.judging_processes import Admission, JudgingProcesses

ONE, OTHER = "level1/001", "level1/002"


def problem(name: str) -> Any:
    """What stands for a problem here."""
    return Named(name)


def asked(judges: JudgingProcesses, name: str, source: str = "") -> Any:
    """What judging says."""
    return judges.evaluate(problem(name), source, baseline=None, profile=False, process_pairs=1)


@pytest.fixture(scope="module")
def judges() -> Iterator[JudgingProcesses]:
    device: Any = SimpleNamespace(facts="facts")
    with JudgingProcesses(device, judge, 2) as processes:
        yield processes


def test_a_problem_stays_with_its_process_and_problems_are_spread(judges: JudgingProcesses) -> None:
    with ThreadPoolExecutor(2) as threads:
        first, other = threads.map(lambda name: asked(judges, name)[0], (ONE, OTHER))
    assert len({first, other, os.getpid()}) == 3
    assert asked(judges, ONE)[0] == first
    found: Any = judges.sweep(problem(OTHER), ["a", "b"])
    assert found == (other, ("a", "b"))
    assert judges.sanitize(problem(ONE), "text") == ["text"]


def test_processes_take_the_gpus_in_turns_and_a_problem_stays_on_one() -> None:
    device: Any = SimpleNamespace(facts="facts")
    with JudgingProcesses(device, judge, 2, gpus=("1", "GPU-7f")) as processes:
        seen = [asked(processes, name, "gpu")[1] for name in (ONE, OTHER, ONE)]
    assert seen == ["1", "GPU-7f", "1"]


def test_each_gpu_has_room_of_its_own() -> None:
    device: Any = SimpleNamespace(facts="facts")
    held: list[int] = []

    def holds(problems: Sequence[Any]) -> bool:
        held.append(len(problems))
        return len(problems) < 2

    with JudgingProcesses(device, judge, 2, holds, gpus=("0", "1")) as processes, ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: asked(processes, name), (ONE, OTHER)))
    assert set(held) <= {1}


@pytest.mark.parametrize(
    ("source", "kind", "hint"), [("lost", DeviceError, "reset it"), ("wrong", ProblemError, "mend it")]
)
def test_what_is_wrong_comes_as_it_is_and_ends_no_process(
    judges: JudgingProcesses, source: str, kind: type[DeviceError], hint: str
) -> None:
    before = asked(judges, ONE)[0]
    with pytest.raises(kind) as error:
        asked(judges, ONE, source)
    assert (type(error.value), error.value.hint) == (kind, hint)
    assert asked(judges, ONE)[0] == before


def test_a_process_that_dies_is_replaced_and_asked_again(judges: JudgingProcesses, tmp_path: Path) -> None:
    before = asked(judges, ONE)[0]
    after, asked_there, _ = asked(judges, ONE, f"die_once {tmp_path / 'died'}")
    assert (after != before, asked_there) == (True, 1)


@pytest.mark.slow
def test_a_candidate_that_ends_every_process_is_the_machines_failure(judges: JudgingProcesses) -> None:
    before = asked(judges, ONE)[0]
    with pytest.raises(DeviceError, match="twice"):
        asked(judges, ONE, "die")
    assert asked(judges, ONE)[0] != before


@pytest.mark.parametrize("how", ["full", "short"])
def test_where_memory_was_full_it_is_tried_once_more_alone(judges: JudgingProcesses, tmp_path: Path, how: str) -> None:
    found = asked(judges, ONE, f"{how} {tmp_path / how}")
    assert not found.found_no_memory
    assert (
        asked(judges, ONE, f"{how} {tmp_path / how}").told == found.told + 1
    )  # what was judged was asked twice, this once


def test_a_device_that_cannot_be_opened_says_why() -> None:
    device: Any = None
    with JudgingProcesses(device, refused, 1) as processes, pytest.raises(DeviceError) as error:
        asked(processes, ONE)
    assert (error.value.message, error.value.hint) == ("no GPU", "buy one")


def test_nobody_judges_on_when_the_run_is_killed() -> None:
    command = [sys.executable, judging_work.__file__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        judging = int(run.stdout.readline())
        run.kill()
    until = time.monotonic() + 20
    while Path(f"/proc/{judging}/cmdline").exists() and _runs(judging) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(judging)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3, 5, 9, 10, 17]), st.booleans()), max_size=12))
def test_those_who_are_in_have_room_or_are_one(items: list[tuple[int, bool]]) -> None:
    admission = Admission[int](lambda inside: sum(inside) <= 10)
    inside, lock = list[tuple[int, bool]](), threading.Lock()

    def enter(item: tuple[int, bool]) -> bool:
        with admission.of(item[0], alone=item[1]):
            with lock:
                inside.append(item)
                one = len(inside) == 1
                fits = one or (sum(size for size, _ in inside) <= 10 and not any(alone for _, alone in inside))
            time.sleep(0.0005)
            with lock:
                inside.remove(item)
            return fits

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(enter, items))
