"""Values that many threads ask for and one computes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class SingleFlight(Generic[Key, Value]):
    """Values by key, each computed once although many threads ask at once; a failure is told to all and not kept.

    Args:
        most: values kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Future[Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key. Raises what `compute` raises."""
        with self._lock:
            flight = self._values.get(key)
            owner = flight is None
            if flight is None:
                flight = self._values[key] = Future()
            self._values.move_to_end(key)
        if owner:
            self._fly(key, flight, compute)
        return flight.result()

    def _fly(self, key: Key, flight: Future[Value], compute: Callable[[], Value]) -> None:
        try:
            flight.set_result(compute())
        except BaseException as error:
            with self._lock:
                del self._values[key]
            flight.set_exception(error)
            return
        with self._lock:
            done = (one for one, other in self._values.items() if other.done())
            while len(self._values) > self._most and (oldest := next(done, None)) is not None:
                del self._values[oldest]
                done = (one for one, other in self._values.items() if other.done())
