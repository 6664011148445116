"""One at a time measures on a GPU: a file lock per GPU among processes, a thread lock inside this one."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout


@cache
def _thread_lock(uuid: str) -> threading.Lock:
    return threading.Lock()


@contextmanager
def gpu_lock(uuid: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold the GPU `uuid` alone; whether it is held, which it may not be without waiting.

    Not re-entrant; freed by the system when its holder dies.
    """
    # In the system's temporary directory and writable for all: other users' runs must wait for ours, and we for theirs.
    path = Path(tempfile.gettempdir()) / f"kernelblaster-{uuid}.lock"
    # A file lock object counts entries instead of excluding threads, hence the thread lock around it.
    threads, processes = _thread_lock(uuid), FileLock(path, mode=0o666)
    if not threads.acquire(blocking=wait):
        yield False
        return
    try:
        held = _acquired(processes, wait)
        try:
            yield held
        finally:
            processes.release()
    finally:
        threads.release()


def _acquired(lock: FileLock, wait: bool) -> bool:
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        return False
    return True
