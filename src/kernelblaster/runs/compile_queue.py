"""Items that are made ready in batches, in the background, and given out once most of a batch are.

What takes long keeps the others waiting no longer than that: it goes on beside the following batch.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class _Ended:
    """A batch that nothing more comes of."""

    missing: int
    error: Exception | None


class CompileQueue(Generic[Item]):
    """Hands batches to threads, one each, and gives out what these have made ready.

    Args:
        compile_all: yields the items of a batch as they are ready, but those that it does not begin. Called in a
            thread.
        stragglers: so many items of all batches may be unfinished when others are given out.
    """

    def __init__(self, compile_all: Callable[[Sequence[Item]], Iterable[Item]], stragglers: int) -> None:
        self._compile_all, self._stragglers = compile_all, stragglers
        self._events: queue.SimpleQueue[Item | _Ended] = queue.SimpleQueue()
        self._unfinished = 0

    def ready(self, batches: Iterable[Sequence[Item]]) -> Iterator[list[Item]]:
        """Some ready items at a time, each of them once. Raises what `compile_all` raises."""
        for batch in batches:
            self._unfinished += len(batch)
            # A daemon: whoever interrupts the main thread waits for no compiler.
            threading.Thread(target=self._compile, args=(batch,), daemon=True).start()
            yield self._next(self._stragglers)
        while self._unfinished:
            yield self._next(self._unfinished - 1)

    def _compile(self, batch: Sequence[Item]) -> None:
        missing, error = len(batch), None
        try:
            for item in self._compile_all(batch):
                missing -= 1
                self._events.put(item)
        except Exception as raised:  # raised again in the thread that waits
            error = raised
        self._events.put(_Ended(missing, error))

    def _next(self, unfinished: int) -> list[Item]:
        """Wait until no more than so many are unfinished; all that is ready then."""
        found: list[Item] = []
        while self._unfinished > unfinished or not self._events.empty():
            event = self._events.get()
            if not isinstance(event, _Ended):
                self._unfinished -= 1
                found.append(event)
            elif event.error is not None:
                raise event.error
            else:
                self._unfinished -= event.missing
        return found
