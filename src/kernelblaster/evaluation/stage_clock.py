"""Wall seconds per stage of an evaluation or a sweep, and those that were spent waiting for others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

Held = TypeVar("Held")
WAIT = "wait"
"""The stage in which others used the device."""
NOTICED_S = 0.01
"""Shorter waits are no stage."""


class StageClock:
    """Adds up stages of one thread.

    Args:
        seconds: name of a stage -> its wall seconds; added to.
    """

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self._within: list[float] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the wall seconds of the body to a stage, but for those of stages within it."""
        began = time.monotonic()
        self._within.append(0.0)
        try:
            yield
        finally:
            took = time.monotonic() - began
            self.seconds[name] = self.seconds.get(name, 0.0) + took - self._within.pop()
            if self._within:
                self._within[-1] += took

    @contextmanager
    def guarded(self, guard: AbstractContextManager[Held]) -> Iterator[Held]:
        """The body under a lock; waiting for it is a stage of its own, where that is noticeable."""
        with ExitStack() as stack:
            with self.stage(WAIT):
                got = stack.enter_context(guard)
            if self.seconds[WAIT] < NOTICED_S:
                del self.seconds[WAIT]
            yield got
