"""Workers: a death or a hang costs its own item, never the others'."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pool_work import BREAK, DIE, HANG, beside, by_whom, fit, square

from kernelblaster.runs.worker_pool import WorkerLost, WorkerPool


def test_all_else_is_done_although_workers_die() -> None:
    found = dict(WorkerPool(square, workers=2, limit_s=60.0).run([2, DIE, 3, BREAK, 4]))
    assert {given: found[given] for given in (2, 3, 4)} == {2: 4, 3: 9, 4: 16}
    assert isinstance(found[DIE], WorkerLost)
    assert "-9" in found[DIE].reason
    assert isinstance(found[BREAK], WorkerLost)
    assert "3" in found[BREAK].reason


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced() -> None:
    began = time.monotonic()
    found = dict(WorkerPool(square, workers=1, limit_s=5.0).run([HANG, 4]))
    assert time.monotonic() - began < 50
    assert found[4] == 16
    assert isinstance(found[HANG], WorkerLost)
    assert found[HANG].late


def test_nothing_begins_when_no_more_may() -> None:
    allowed = iter([True, False, False])
    assert list(WorkerPool(square, workers=1, limit_s=30.0).run([2, 3, 4], lambda: next(allowed))) == [(2, 4)]
    assert list(WorkerPool(square, workers=3, limit_s=30.0).run([])) == []


def test_items_take_no_more_than_the_machine_together(tmp_path: Path) -> None:
    items = [(tmp_path, share) for share in (0.9, 0.6, 0.0, 0.4, 1.5, 0.3, 0.0, 0.6)]

    found = dict(WorkerPool(beside, workers=4, limit_s=60.0, room=fit).run(items))

    assert set(found) == set(items)
    for (_, own), others in found.items():
        assert own == 0 or not any(others) or own + sum(others) <= 1


def test_an_item_that_waits_for_room_starts_when_the_one_before_it_is_lost() -> None:
    pool = WorkerPool(square, workers=2, limit_s=60.0, room=lambda items: len(items) == 1)

    found = dict(pool.run([DIE, 3, 4]))

    assert isinstance(found[DIE], WorkerLost)
    assert (found[3], found[4]) == (9, 16)


def test_items_of_a_kind_stay_with_a_worker_and_no_worker_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    items = [("rare", 0), *(("usual", number) for number in range(20)), ("rare", 1), ("rare", 2)]

    found = dict(WorkerPool(by_whom, workers=2, limit_s=60.0, kind=lambda item: item[0]).run(items))

    assert set(found) == set(items)
    workers = {kind: {found[item][0] for item in items if item[0] == kind} for kind in ("rare", "usual")}
    assert len(workers["rare"]) == 1
    assert workers["rare"] <= workers["usual"], "who has done its own kind helps with the others"
    assert {threads for _, threads in found.values()} == {str(max(len(os.sched_getaffinity(0)) // 2, 1))}
    assert "OMP_NUM_THREADS" not in os.environ
