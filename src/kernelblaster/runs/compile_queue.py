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
    error: BaseException | None


class CompileQueue(Generic[Item]):
    """Hands batches to threads, one each, and gives out what these have made ready.

    Args:
        compile_all: yields the items of a batch as they are ready, but those that it does not begin. Called in a
            thread, with what says whether it may begin another item.
        stragglers: so many items of all batches may be unfinished when others are given out.
    """

    def __init__(
        self, compile_all: Callable[[Sequence[Item], Callable[[], bool]], Iterable[Item]], stragglers: int
    ) -> None:
        self._compile_all, self._stragglers = compile_all, stragglers
        self._events: queue.SimpleQueue[Item | _Ended] = queue.SimpleQueue()
        self._unfinished = self._running = 0
        self._error: BaseException | None = None
        self._given_up = threading.Event()

    def ready(self, batches: Iterable[Sequence[Item]]) -> Iterator[list[Item]]:
        """Some ready items at a time, each of them once. Raises what `compile_all` raises, after what it had ready.

        Who stops asking leaves the threads to finish what they have begun.
        """
        try:
            for batch in batches:
                self._unfinished += len(batch)
                self._running += 1
                # A daemon: whoever interrupts the main thread waits for no compiler.
                threading.Thread(target=self._compile, args=(batch,), daemon=True).start()
                yield self._next(self._stragglers)
            while self._running:
                yield self._next(self._unfinished - 1)
            self._raise()
        finally:
            self._given_up.set()

    def _compile(self, batch: Sequence[Item]) -> None:
        missing, error = len(batch), None
        try:
            for item in self._compile_all(batch, lambda: not self._given_up.is_set()):
                missing -= 1
                self._events.put(item)
        except BaseException as raised:  # raised again in the thread that waits, which would wait for ever
            error = raised
        self._events.put(_Ended(missing, error))

    def _next(self, unfinished: int) -> list[Item]:
        """Wait until no more than so many are unfinished, of -1 until a batch has ended; all that is ready then."""
        self._raise()
        found: list[Item] = []
        while self._error is None and (self._unfinished > unfinished or not self._events.empty()):
            event = self._events.get()
            if not isinstance(event, _Ended):
                self._unfinished -= 1
                found.append(event)
                continue
            self._unfinished -= event.missing
            self._running -= 1
            self._error = event.error
            if unfinished < 0:
                break
        return found

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
