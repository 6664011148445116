"""Running a search so that Ctrl-C ends it at once, also while threads wait for candidates."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")
THREADS = 64
"""Evaluations wait for processes and locks, not for this interpreter; more would only queue."""


class _Threads(ThreadPoolExecutor):
    """Threads that an interrupted search leaves behind: what they wait for may take minutes."""

    abandoned = False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=wait and not self.abandoned, cancel_futures=cancel_futures or self.abandoned)


def run_to_end(search: Coroutine[object, object, Result]) -> Result:
    """`asyncio.run`, but KeyboardInterrupt does not wait for threads.

    The caller must end the process soon after: everything durable is on disk, and candidates die with it. Where this
    thread has an event loop already, as in a notebook, the search has one of its own in another thread.
    """
    if _loop_runs_here():
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="run") as aside:
            return aside.submit(lambda: run_to_end(search)).result()
    threads = _Threads(max_workers=THREADS, thread_name_prefix="search")
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(threads)
        try:
            return runner.run(search)
        except KeyboardInterrupt:
            threads.abandoned = True
            # Threads of libraries hand their results to a loop that is closed by then, which is no news to a person.
            threading.excepthook = lambda _: None
            raise


def _loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
