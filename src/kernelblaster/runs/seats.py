"""Worker processes that do one piece of work at a time, and are replaced when they die or take too long.

Unlike the pools of the standard library it survives a worker that a broken GPU context or a signal has ended, and one
that hangs: its piece of work fails, the others go on.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

Work = TypeVar("Work")
Done = TypeVar("Done")
_BORED_S = 0.5


@dataclass(frozen=True)
class Lost:
    """A piece of work whose process died or was ended, and why."""

    reason: str


@dataclass
class _Seat(Generic[Work]):
    process: BaseProcess
    pipe: Connection
    work: Work | None = None
    deadline: float = 0.0


@dataclass(frozen=True)
class Seats(Generic[Work, Done]):
    """So many processes that call one function.

    Attributes:
        do: what each process calls, by its importable name; what it raises ends the process.
        count: processes.
        limit_s: after which a piece of work is given up.
    """

    do: Callable[[Work], Done]
    count: int
    limit_s: float

    def run(self, work: Iterable[Work], more: Callable[[], bool] = lambda: True) -> Iterator[tuple[Work, Done | Lost]]:
        """Results as they come; what is begun is brought to its end.

        Args:
            work: taken in order, as processes become free.
            more: asked before each piece whether it may still begin.
        """
        left, seats = iter(work), list[_Seat[Work]]()
        try:
            while True:
                seats += self._started(self.count - len(seats), left, more)
                if not seats:
                    return
                for seat in self._ready(seats):
                    given, found = seat.work, self._result(seat)
                    assert given is not None
                    if isinstance(found, Lost) or not self._give(seat, left, more):
                        seats.remove(seat)
                        _end(seat)
                    yield given, found
        finally:
            for seat in seats:
                _end(seat)

    def _started(self, count: int, left: Iterator[Work], more: Callable[[], bool]) -> Iterator[_Seat[Work]]:
        """New processes with work, at most so many."""
        context = multiprocessing.get_context("spawn")
        for _ in range(count):
            piece = next(left, None) if more() else None
            if piece is None:
                return
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(self.do, theirs), daemon=True)
            process.start()
            theirs.close()
            seat = _Seat[Work](process, ours)
            self._hand(seat, piece)
            yield seat

    def _give(self, seat: _Seat[Work], left: Iterator[Work], more: Callable[[], bool]) -> bool:
        piece = next(left, None) if more() else None
        if piece is None:
            return False
        self._hand(seat, piece)
        return True

    def _hand(self, seat: _Seat[Work], piece: Work) -> None:
        seat.work, seat.deadline = piece, time.monotonic() + self.limit_s
        with suppress(BrokenPipeError):  # dead already: the next look at the pipe says so
            seat.pipe.send(piece)

    def _ready(self, seats: list[_Seat[Work]]) -> list[_Seat[Work]]:
        """Those that have a result, have died, or are late."""
        answering = wait([seat.pipe for seat in seats], timeout=_BORED_S)
        now = time.monotonic()
        return [seat for seat in seats if seat.pipe in answering or now > seat.deadline]

    def _result(self, seat: _Seat[Work]) -> Done | Lost:
        if not seat.pipe.poll():
            return Lost(f"it took more than {self.limit_s:.0f} s")
        try:
            done: Done = seat.pipe.recv()
        except EOFError:
            seat.process.join(1.0)
            return Lost(f"its process ended with {seat.process.exitcode}")
        return done


def _serve(do: Callable[[Work], Done], pipe: Connection) -> None:
    """The life of a process: until nobody is at the other end, who alone heeds an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            pipe.send(do(pipe.recv()))
    except EOFError:
        return


def _end(seat: _Seat[Work]) -> None:
    seat.pipe.close()
    seat.process.join(_BORED_S)
    if seat.process.is_alive():
        seat.process.kill()
        seat.process.join()
