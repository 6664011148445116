"""Who is judged next: a bounded queue in which sessions take turns, so that none crowds out the others.

A few submissions are judged at once: builds overlap, and a GPU is held by one measurement at a time anyway. Others
wait, each session in a line of its own, and the lines are served in turn. When too many wait, one more is told when to
come back, which takes no turn of its episode.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelblaster.errors import MachineError

FIRST_GUESS_S = 5.0
"""Of an evaluation, before any was seen."""
_NEWEST = 0.2
"""Weight of the newest evaluation in the mean."""
_LONGEST_S = 600
_RETRY = re.compile(r"retry after (\d{1,4}) s")


class EnvironmentBusy(MachineError):
    """Nothing was judged: too many submissions wait, or the environment is closing.

    Attributes:
        retry_after_s: whole seconds after which there is probably room; None where there never will be.
    """

    def __init__(self, message: str, *, hint: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class QueueLoad:
    """What a queue holds at one moment.

    Attributes:
        running: submissions that are being judged.
        waiting: submissions that wait.
        workers: most that are judged at once.
        room: most that wait.
        mean_s: recent wall seconds of an evaluation.
    """

    running: int
    waiting: int
    workers: int
    room: int
    mean_s: float

    @property
    def retry_after_s(self) -> int:
        """Whole seconds until what waits now will have begun, about."""
        return min(_LONGEST_S, max(1, math.ceil(self.mean_s * (self.waiting + 1) / self.workers)))


@dataclass(eq=False)
class _Ticket:
    """A submission that waits."""

    called: threading.Event = field(default_factory=threading.Event)
    dismissed: bool = False


class FairQueue:
    """Lets `workers` threads through at once; safe for many threads.

    Args:
        workers: submissions judged at once.
        room: submissions that may wait.
        clock: monotonic seconds.
    """

    def __init__(self, workers: int, room: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers = workers
        self._room = room
        self._clock = clock
        self._lock = threading.Lock()
        self._lines: OrderedDict[str, deque[_Ticket]] = OrderedDict()
        self._running = 0
        self._mean_s = FIRST_GUESS_S
        self._closed = False

    @property
    def load(self) -> QueueLoad:
        """What it holds now."""
        with self._lock:
            return self._load()

    @contextmanager
    def turn(self, session: str) -> Iterator[None]:
        """Wait for a turn and hold it. Raises EnvironmentBusy, at once, where there is no room to wait."""
        self._enter(session)
        began = self._clock()
        try:
            yield
        finally:
            self._leave(self._clock() - began)

    def close(self) -> None:
        """Send away all who wait, and whoever comes. What is being judged goes on."""
        with self._lock:
            self._closed = True
            tickets = [ticket for line in self._lines.values() for ticket in line]
            self._lines.clear()
        for ticket in tickets:
            ticket.dismissed = True
            ticket.called.set()

    def _enter(self, session: str) -> None:
        with self._lock:
            if self._closed:
                raise _closing()
            if self._running < self._workers:  # then nobody waits
                self._running += 1
                return
            load = self._load()
            if load.waiting >= self._room:
                raise EnvironmentBusy(
                    f"busy: {load.waiting} submissions wait already; retry after {load.retry_after_s} s",
                    hint="submit again; no turn was used",
                    retry_after_s=load.retry_after_s,
                )
            ticket = _Ticket()
            self._lines.setdefault(session, deque()).append(ticket)
        ticket.called.wait()
        if ticket.dismissed:
            raise _closing()

    def _leave(self, seconds: float) -> None:
        """Hand the turn on to the line that was served longest ago."""
        with self._lock:
            self._mean_s += _NEWEST * (seconds - self._mean_s)
            if not self._lines:
                self._running -= 1
                return
            session, line = self._lines.popitem(last=False)
            ticket = line.popleft()
            if line:
                self._lines[session] = line
        ticket.called.set()

    def _load(self) -> QueueLoad:
        waiting = sum(map(len, self._lines.values()))
        return QueueLoad(self._running, waiting, self._workers, self._room, self._mean_s)


def retry_after(message: str) -> int | None:
    """Seconds after which to submit again, as the text of an EnvironmentBusy says; None of any other error."""
    found = _RETRY.search(message)
    return None if found is None else int(found[1])


def _closing() -> EnvironmentBusy:
    return EnvironmentBusy("the environment is closing", hint="start it again")
