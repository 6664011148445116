"""Who uses a GPU: one who measures, alone, or several who disturb each other without harm. Locks on files.

A lock belongs to an open file, so that it excludes threads and processes alike, and ends with its holder. Those who
want the GPU alone go first, one after the other: waiting for those who share it once serves all of them, while each who
shares would make the next one wait again. Whoever has waited long to share it lets nobody in front any more.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PATIENCE_S = 20.0
"""So long those who share a GPU are overtaken by those who want it alone."""
_POLL_S = 0.01


@contextmanager
def gpu_lock(uuid: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold the GPU `uuid` alone; whether it is held, which it may not be without waiting. Not re-entrant."""
    with ExitStack() as stack:
        with _locked(uuid, "turn", fcntl.LOCK_SH, wait) as mine:
            passed = mine and stack.enter_context(_locked(uuid, "gate", fcntl.LOCK_SH, wait))
        yield passed and stack.enter_context(_locked(uuid, "use", fcntl.LOCK_EX, wait))


@contextmanager
def gpu_shared(uuid: str) -> Iterator[None]:
    """Use the GPU `uuid` beside others, while nobody holds it alone or waits for that. Not re-entrant."""
    with ExitStack() as stack:
        with _gate(uuid):
            stack.enter_context(_locked(uuid, "use", fcntl.LOCK_SH))
        yield


@contextmanager
def reference_lock(uuid: str) -> Iterator[None]:
    """Compute what takes much of the memory of the GPU `uuid`, one after the other. Taken before `gpu_shared`."""
    with _locked(uuid, "reference", fcntl.LOCK_EX):
        yield


@contextmanager
def counter_lock(uuid: str) -> Iterator[None]:
    """Have the counters of the GPU `uuid`, which serve one profiler at a time. Taken before the GPU."""
    with _locked(uuid, "counters", fcntl.LOCK_EX):
        yield


@contextmanager
def _gate(uuid: str) -> Iterator[None]:
    """Close the gate to those who want the GPU alone; after a while before the next of them has come to it."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with _locked(uuid, "gate", fcntl.LOCK_EX, wait=False) as passed:
            if passed:
                yield
                return
        time.sleep(_POLL_S)
    with _locked(uuid, "turn", fcntl.LOCK_EX), _locked(uuid, "gate", fcntl.LOCK_EX):
        yield


@contextmanager
def _locked(uuid: str, name: str, kind: int, wait: bool = True) -> Iterator[bool]:
    """Whether it is locked, which it may not be without waiting."""
    descriptor = _opened(Path(tempfile.gettempdir()) / f"kernelblaster-{uuid}.{name}")
    try:
        yield _acquired(descriptor, kind, wait)
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # whoever was forked meanwhile has the file open, too
        os.close(descriptor)


def _acquired(descriptor: int, kind: int, wait: bool) -> bool:
    try:
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _opened(path: Path) -> int:
    """A file that other users lock, too: their runs must wait for ours, and we for theirs."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # O_CREAT would be refused for somebody else's file
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with suppress(PermissionError):  # somebody else was faster
        os.fchmod(descriptor, 0o666)
    return descriptor
