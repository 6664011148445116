"""Page-locked host memory through which tensors pass between files and a GPU.

One thread moves memory several times slower than the link to the GPU does, and pages of a mapped file are touched one
by one. So a file is read by several threads into one half, while the link empties the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch

_HALF_BYTES = 32 << 20
_LEAST_PART = 2 << 20
"""Bytes below which a thread costs more than it saves."""
_MOST_THREADS = 8


class Staging:
    """Two halves of host memory, which torch keeps for the next that asks. For one thread.

    Args:
        needed: bytes of the largest tensor that will pass.
    """

    def __init__(self, needed: int) -> None:
        size = max(min(_HALF_BYTES, needed), 1)
        self._halves = [torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True) for _ in range(2)]
        self._passed = [torch.cuda.Event() for _ in range(2)]

    def read(self, descriptor: int, offset: int, flat: torch.Tensor) -> None:
        """Fill bytes on the GPU with those of a file from an offset on; raises OSError where it ends before."""
        for half, passed, start, stop in self._turns(flat.numel()):
            passed.synchronize()
            part = half[: stop - start]
            _in_parts(part.numpy().data, offset + start, lambda held, at: _read_whole(descriptor, held, at))
            flat[start:stop].copy_(part, non_blocking=True)
            passed.record()

    def write(self, descriptor: int, flat: torch.Tensor) -> None:
        """Write bytes on the GPU to the beginning of a file. Raises OSError."""
        waiting: Callable[[], None] | None = None
        for half, passed, start, stop in self._turns(flat.numel()):
            part = half[: stop - start]
            part.copy_(flat[start:stop], non_blocking=True)
            passed.record()
            if waiting is not None:
                waiting()
            waiting = _writing(descriptor, part, start, passed)
        if waiting is not None:
            waiting()

    def _turns(self, count: int) -> Iterator[tuple[torch.Tensor, torch.cuda.Event, int, int]]:
        size = self._halves[0].numel()
        for turn, start in enumerate(range(0, count, size)):
            yield self._halves[turn % 2], self._passed[turn % 2], start, min(start + size, count)


def _writing(descriptor: int, part: torch.Tensor, at: int, passed: torch.cuda.Event) -> Callable[[], None]:
    """What writes a part once it has arrived. By one thread: a file system takes one writer of a file at a time."""

    def write() -> None:
        passed.synchronize()
        _write_whole(descriptor, part.numpy().data, at)

    return write


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_count(), thread_name_prefix="staging")


def _count() -> int:
    return min(len(os.sched_getaffinity(0)), _MOST_THREADS)


def _in_parts(held: memoryview, at: int, use: Callable[[memoryview, int], None]) -> None:
    """Call use(part, offset of it) for parts that cover `held`, side by side."""
    step = max(-(-len(held) // _count()), _LEAST_PART)
    parts = [(held[start : start + step], at + start) for start in range(0, len(held), step)]
    if len(parts) == 1:
        use(*parts[0])
        return
    for done in [_threads().submit(use, *part) for part in parts]:
        done.result()


def _read_whole(descriptor: int, held: memoryview, at: int) -> None:
    while held:
        count = os.preadv(descriptor, [held], at)
        if count == 0:
            raise OSError("a tensor's file ends too early")
        held, at = held[count:], at + count


def _write_whole(descriptor: int, held: memoryview, at: int) -> None:
    while held:
        count = os.pwrite(descriptor, held, at)
        held, at = held[count:], at + count
