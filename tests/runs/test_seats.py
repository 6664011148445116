"""Workers: a death or a hang costs one piece of work, never the others'."""

from __future__ import annotations

import time

import pytest
from seat_work import BREAK, DIE, HANG, square

from kernelblaster.runs.seats import Lost, Seats


def test_all_else_is_done_although_workers_die() -> None:
    found = dict(Seats(square, count=2, limit_s=60.0).run([2, DIE, 3, BREAK, 4]))
    assert {given: found[given] for given in (2, 3, 4)} == {2: 4, 3: 9, 4: 16}
    assert isinstance(found[DIE], Lost)
    assert "-9" in found[DIE].reason
    assert isinstance(found[BREAK], Lost)
    assert "3" in found[BREAK].reason


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced() -> None:
    began = time.monotonic()
    found = dict(Seats(square, count=1, limit_s=5.0).run([HANG, 4]))
    assert time.monotonic() - began < 50
    assert found[4] == 16
    assert isinstance(found[HANG], Lost)


def test_nothing_begins_when_no_more_may() -> None:
    allowed = iter([True, False, False])
    assert list(Seats(square, count=1, limit_s=30.0).run([2, 3, 4], lambda: next(allowed))) == [(2, 4)]
    assert list(Seats(square, count=3, limit_s=30.0).run([])) == []
