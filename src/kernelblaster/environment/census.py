"""Who holds the slots of a server: sessions on websockets, and what each is doing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SlotCount:
    """The slots of a server at one moment.

    Attributes:
        capacity: sessions that it takes at once.
        open: sessions that it has; one whose client has left stays until its step has ended.
        stepping: those in a reset or a step, waiting for their turn included.
        longest_idle_s: seconds since the last reset or step of the session that said nothing for the longest time; None
            where each is in one.
        opened: sessions since the server began.
    """

    capacity: int
    open: int
    stepping: int
    longest_idle_s: float | None
    opened: int


@dataclass(eq=False)
class Slot:
    """One session."""

    idle_since: float
    stepping: int = field(default=0)


class SessionCensus:
    """Counts sessions. Safe for many threads.

    Args:
        capacity: sessions that the server takes at once.
        clock: monotonic seconds.
    """

    def __init__(self, capacity: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._clock = clock
        self._lock = threading.Lock()
        self._slots: set[Slot] = set()
        self._opened = 0

    def enter(self) -> Slot:
        """A session begins."""
        slot = Slot(self._clock())
        with self._lock:
            self._slots.add(slot)
            self._opened += 1
        return slot

    def leave(self, slot: Slot) -> None:
        """It has ended; again does nothing."""
        with self._lock:
            self._slots.discard(slot)

    @contextmanager
    def stepping(self, slot: Slot) -> Iterator[None]:
        """It is in a reset or a step."""
        with self._lock:
            slot.stepping += 1
        try:
            yield
        finally:
            with self._lock:
                slot.stepping -= 1
                slot.idle_since = self._clock()

    @property
    def count(self) -> SlotCount:
        """Now."""
        with self._lock:
            now, idle = self._clock(), [slot.idle_since for slot in self._slots if not slot.stepping]
            return SlotCount(
                capacity=self._capacity,
                open=len(self._slots),
                stepping=len(self._slots) - len(idle),
                longest_idle_s=round(now - min(idle), 1) if idle else None,
                opened=self._opened,
            )
