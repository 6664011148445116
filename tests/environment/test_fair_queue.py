"""Who is judged next, and who is sent away."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelblaster.environment.fair_queue import EnvironmentBusy, FairQueue, retry_after


def _held(queue: FairQueue) -> tuple[threading.Event, threading.Thread]:
    """A turn that is held until the event is set."""
    inside, release = threading.Event(), threading.Event()

    def hold() -> None:
        with queue.turn("holder"):
            inside.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(10)
    return release, thread


def _wait_for(queue: FairQueue, waiting: int) -> None:
    deadline = time.monotonic() + 10
    while queue.load.waiting != waiting:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_session_with_many_submissions_does_not_crowd_out_the_others() -> None:
    queue = FairQueue(workers=1, room=20)
    order: list[str] = []

    def submit(session: str) -> None:
        with queue.turn(session):
            order.append(session)

    release, holder = _held(queue)
    with ThreadPoolExecutor(12) as threads:
        for place, session in enumerate(["greedy"] * 6 + ["b", "c", "b"]):
            threads.submit(submit, session)
            _wait_for(queue, place + 1)
        release.set()
    holder.join()
    assert order == ["greedy", "b", "c", "greedy", "b", "greedy", "greedy", "greedy", "greedy"]
    assert (queue.load.running, queue.load.waiting) == (0, 0)


def test_no_more_run_at_once_than_there_are_workers() -> None:
    queue = FairQueue(workers=3, room=100)
    inside, most, lock = 0, 0, threading.Lock()

    def submit(number: int) -> None:
        nonlocal inside, most
        with queue.turn(str(number % 7)):
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.002)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(40) as threads:
        list(threads.map(submit, range(100)))
    assert most == 3
    assert queue.load.running == 0


def test_who_finds_no_room_is_told_when_to_come_back_and_holds_nothing() -> None:
    queue = FairQueue(workers=1, room=0)
    release, holder = _held(queue)
    with pytest.raises(EnvironmentBusy) as refused, queue.turn("late"):
        pass
    assert refused.value.retry_after_s == retry_after(refused.value.message) == 5
    release.set()
    holder.join()
    with queue.turn("late"):
        assert queue.load.running == 1


def test_the_time_to_come_back_follows_what_evaluations_take() -> None:
    now = [0.0]
    queue = FairQueue(workers=2, room=0, clock=lambda: now[0])
    for _ in range(40):
        with queue.turn("a"):
            now[0] += 30.0
    assert queue.load.retry_after_s == 15


def test_a_failed_evaluation_gives_its_turn_on() -> None:
    queue = FairQueue(workers=1, room=5)
    for _ in range(3):
        with pytest.raises(OSError, match="lost"), queue.turn("a"):
            raise OSError("lost")
    assert queue.load.running == 0


def test_closing_sends_away_who_waits_and_who_comes() -> None:
    queue = FairQueue(workers=1, room=5)
    release, holder = _held(queue)
    with ThreadPoolExecutor(1) as threads:

        def wait() -> None:
            with queue.turn("waiting"):
                pass

        waiting = threads.submit(wait)
        _wait_for(queue, 1)
        queue.close()
        with pytest.raises(EnvironmentBusy, match="closing"):
            waiting.result(10)
    with pytest.raises(EnvironmentBusy, match="closing"), queue.turn("late"):
        pass
    release.set()
    holder.join()
