"""Workers: a death or a hang costs its own item, never the others'."""

from __future__ import annotations

import time

import pytest
from pool_work import BREAK, DIE, HANG, square

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


def test_nothing_begins_when_no_more_may() -> None:
    allowed = iter([True, False, False])
    assert list(WorkerPool(square, workers=1, limit_s=30.0).run([2, 3, 4], lambda: next(allowed))) == [(2, 4)]
    assert list(WorkerPool(square, workers=3, limit_s=30.0).run([])) == []
