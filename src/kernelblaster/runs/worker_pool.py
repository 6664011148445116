"""A pool of worker processes that replaces a worker that dies or takes too long.

The pools of the standard library do not survive a worker that a broken CUDA context or a signal has ended, nor one
that hangs. Here its item fails and the others go on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
_POLL_S = 0.5
_THREADS = "OMP_NUM_THREADS"
_STARTING = threading.Lock()
"""Held while a process starts with an environment of its own: pools of several threads share that of this process."""


@dataclass(frozen=True)
class WorkerLost:
    """Takes the place of a result when the worker died or was killed; `late`: because it took too long."""

    reason: str
    late: bool = False


class Pool(Protocol[Item, Result_co]):
    """Processes items; `WorkerPool` does so several at a time."""

    def run(
        self, items: Iterable[Item], may_start: Callable[[], bool]
    ) -> Iterator[tuple[Item, Result_co | WorkerLost]]:
        """Each item with its result, as results come; `may_start` is asked before each item starts."""
        ...


@dataclass
class _Worker(Generic[Item]):
    process: BaseProcess
    pipe: Connection
    item: Item
    deadline: float


class _Queue(Generic[Item]):
    """Items in their order, but for those that wait for room or suit another worker better."""

    def __init__(
        self,
        items: Iterable[Item],
        room: Callable[[Sequence[Item]], bool],
        may_start: Callable[[], bool],
        kind: Callable[[Item], Hashable] | None,
    ) -> None:
        self._items, self._room, self._may_start, self._kind = iter(items), room, may_start, kind
        self._waiting: list[Item] = [] if kind is None else list(self._items)
        self._taken: list[Item] = []

    def take(self, after: Item | None = None) -> Item | None:
        """The next item that may be processed now, by who has processed `after`.

        None when there is none, or no more may start.
        """
        if not self._may_start():
            return None
        for item in self._waiting if self._kind is None else self._suited(self._kind, after):
            if self._has_room(item):
                self._waiting = [one for one in self._waiting if one is not item]
                self._taken.append(item)
                return item
        for item in self._items:
            if self._has_room(item):
                self._taken.append(item)
                return item
            self._waiting.append(item)
        return None

    def _suited(self, kind: Callable[[Item], Hashable], after: Item | None) -> list[Item]:
        """What waits: of the kind of `after` first, then what no worker is at, then what there is most of."""
        kinds = {id(item): kind(item) for item in self._waiting}
        busy, left = {kind(item) for item in self._taken}, Counter(kinds.values())
        own = None if after is None else kind(after)

        def unsuited(item: Item) -> tuple[bool, bool, int]:
            its = kinds[id(item)]
            return (after is None or its != own), its in busy, -left[its] if its in busy else 0

        return sorted(self._waiting, key=unsuited)

    def _has_room(self, item: Item) -> bool:
        return not self._taken or self._room([*self._taken, item])

    def done(self, item: Item) -> None:
        """An item that was taken is processed."""
        self._taken = [taken for taken in self._taken if taken is not item]


@dataclass(frozen=True)
class WorkerPool(Generic[Item, Result]):
    """Processes that all call one function. Satisfies `Pool`.

    Attributes:
        function: called by its importable name; an exception ends the worker.
        workers: how many processes at most.
        limit_s: an item that takes longer is given up.
        room: whether the machine has room for these at once, asked again whenever one could start; one alone always
            may. Others overtake an item for which there is no room.
        kind: items of one kind share what their worker keeps, and go to one worker as far as that keeps all busy; None:
            all are alike.
    """

    function: Callable[[Item], Result]
    workers: int
    limit_s: float
    room: Callable[[Sequence[Item]], bool] = lambda _: True
    kind: Callable[[Item], Hashable] | None = None

    def run(
        self, items: Iterable[Item], may_start: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[Item, Result | WorkerLost]]:
        """Each item with its result, as results come; an item that has started is always finished."""
        queue, workers = _Queue(items, self.room, may_start, self.kind), list[_Worker[Item]]()
        try:
            while True:
                while len(workers) < self.workers and (item := queue.take()) is not None:
                    workers.append(self._start(item))
                if not workers:
                    return
                for worker in self._finished(workers):
                    item, result = worker.item, self._result(worker)
                    queue.done(item)
                    following = None if isinstance(result, WorkerLost) else queue.take(item)
                    if following is None:
                        workers.remove(worker)
                        _stop(worker)
                    else:
                        self._send(worker, following)
                    yield item, result
        finally:
            for worker in workers:
                _stop(worker)

    def _start(self, item: Item) -> _Worker[Item]:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(self.function, theirs), daemon=True)
        with _threads_of_each(self.workers):
            process.start()
        theirs.close()
        worker = _Worker(process, ours, item, 0.0)
        self._send(worker, item)
        return worker

    def _send(self, worker: _Worker[Item], item: Item) -> None:
        worker.item, worker.deadline = item, time.monotonic() + self.limit_s
        with suppress(BrokenPipeError):  # the worker is dead, which reading its pipe reports
            worker.pipe.send(item)

    def _finished(self, workers: list[_Worker[Item]]) -> list[_Worker[Item]]:
        """Workers that have a result, have died, or are past their deadline."""
        readable = wait([worker.pipe for worker in workers], timeout=_POLL_S)
        now = time.monotonic()
        return [worker for worker in workers if worker.pipe in readable or now > worker.deadline]

    def _result(self, worker: _Worker[Item]) -> Result | WorkerLost:
        if not worker.pipe.poll():
            return WorkerLost(f"it took more than {self.limit_s:.0f} s", late=True)
        try:
            result: Result = worker.pipe.recv()
        except EOFError:
            worker.process.join(1.0)
            return WorkerLost(f"its process ended with {worker.process.exitcode}")
        return result


def run_all(
    items: Sequence[Item],
    pool: Callable[[int], Pool[Item, Result]],
    *,
    jobs: int,
    minutes: float | None,
    again_alone: Callable[[Result | WorkerLost], bool],
) -> Iterator[tuple[Item, Result | WorkerLost]]:
    """Process items on `jobs` workers, then once more, one at a time, those that ran out of memory, or seem to have.

    Args:
        items: in the order in which they start.
        pool: makes a pool of that many workers.
        jobs: workers of the first pass.
        minutes: after which no further item starts; None for no limit.
        again_alone: whether a result of the first pass says that the item should be tried again, alone.
    """
    deadline = None if minutes is None else time.monotonic() + 60 * minutes

    def may_start() -> bool:
        return deadline is None or time.monotonic() < deadline

    again: list[Item] = []
    for item, result in pool(jobs).run(items, may_start):
        if again_alone(result):
            again.append(item)
        else:
            yield item, result
    if again:
        yield from pool(1).run(again, may_start)


@contextmanager
def _threads_of_each(workers: int) -> Iterator[None]:
    """Processes started meanwhile compute on their share of the cores, unless the user has said on how many."""
    with _STARTING:
        if _THREADS in os.environ:
            yield
            return
        os.environ[_THREADS] = str(max(len(os.sched_getaffinity(0)) // workers, 1))
        try:
            yield
        finally:
            os.environ.pop(_THREADS, None)


def _serve(function: Callable[[Item], Result], pipe: Connection) -> None:
    """The worker's loop, until the parent closes the pipe. Only the parent reacts to an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            pipe.send(function(pipe.recv()))
    except EOFError:
        return


def _stop(worker: _Worker[Item]) -> None:
    worker.pipe.close()
    worker.process.join(_POLL_S)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()
