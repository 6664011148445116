"""Workers: a death or a hang costs its own item, never the others'."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pool_work import BREAK, DIE, HANG, beside, fit, square

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
