from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import pytest
from replay_samples import transition

from kernelblaster.errors import KnowledgeError
from kernelblaster.evaluation.results import Verdict
from kernelblaster.replay.buffer import Query, ReplayBuffer


@pytest.fixture
def buffer(tmp_path):
    return ReplayBuffer.of_first_release(tmp_path / "replay.sqlite")


def test_what_goes_in_comes_out_in_order(buffer):
    stored = [transition(f"step-{step}", step=step) for step in range(5)]
    assert buffer.extend(stored) == 5
    assert buffer.query() == stored
    assert buffer.query(newest=2) == stored[-2:]


def test_the_first_outcome_of_a_slot_stays(buffer):
    assert buffer.append(transition("step-1", speedup=2.0))
    assert not buffer.append(transition("step-1", speedup=3.0))
    assert [stored.speedup for stored in buffer.query()] == [2.0]
    assert buffer.append(transition("step-1", run="run-b"))


@pytest.mark.parametrize(
    ("query", "slots"),
    [
        (Query(problem="level1/019"), {"c"}),
        (Query(state="memory_latency_bound", technique="online_softmax"), {"b"}),
        (Query(arch="sm_80"), {"d"}),
        (Query(rollout=3, round=1), {"d"}),
        (Query(verdict=Verdict.COMPILE_ERROR), {"c"}),
        (Query(run="nobody"), set()),
        (Query(), {"a", "b", "c", "d"}),
    ],
)
def test_queries_filter_by_every_key(buffer, query, slots):
    buffer.extend(
        [
            transition("a"),
            transition("b", technique="online_softmax"),
            transition("c", problem="level1/019", verdict=Verdict.COMPILE_ERROR),
            transition("d", arch="sm_80", rollout=3, round=1),
        ]
    )
    assert {stored.slot for stored in buffer.query(query)} == slots
    assert buffer.count(query) == len(slots)


def test_a_second_object_on_the_same_file_sees_everything(buffer, tmp_path):
    buffer.append(transition("a"))
    assert ReplayBuffer.of_first_release(tmp_path / "replay.sqlite").count() == 1


def _write(path: Path, writer: int) -> None:
    buffer = ReplayBuffer.of_first_release(path)
    for step in range(15):
        buffer.append(transition(f"shared/step-{step}"))
        buffer.append(transition(f"own-{writer}/step-{step}"))


def test_several_processes_write_at_once_and_nothing_is_lost_or_doubled(tmp_path):
    path = tmp_path / "replay.sqlite"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(path, writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert ReplayBuffer.of_first_release(path).count() == 15 + 3 * 15


def test_one_object_serves_several_threads(buffer):
    threads = [
        threading.Thread(target=lambda writer=writer: buffer.append(transition(f"t{writer}"))) for writer in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert buffer.count() == 6


def test_a_file_that_is_no_buffer_is_named_and_left_alone(tmp_path):
    path = tmp_path / "replay.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 4)
    with pytest.raises(KnowledgeError, match=r"replay\.sqlite") as caught:
        ReplayBuffer.of_first_release(path).count()
    assert caught.value.hint
    assert path.read_bytes().startswith(b"not a database")
