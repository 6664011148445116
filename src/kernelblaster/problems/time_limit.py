"""A limit on the time that a problem's own Python code may run, which shares this process with the judge.

When it is over, an exception is raised in the thread that runs the code: Python takes it between two instructions. Code
that waits inside a library, or swallows the exception, gets a few seconds more; then the process says why and ends,
as after a kill, for nothing else could end that thread.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernelblaster.errors import ProblemError, UsageError
from kernelblaster.problems.problem import Problem

VARIABLE = "KERNELBLASTER_REFERENCE_TIMEOUT"
SECONDS = 900.0
"""Of one call; the largest shipped references take a minute in float64 on two cores."""
GRACE_S = 10.0
_log = logging.getLogger(__name__)


class _Over(BaseException):
    """Raised in the thread that runs the code; no Exception, which that code may catch."""


def allowed_seconds() -> float:
    """The limit: `KERNELBLASTER_REFERENCE_TIMEOUT`, else SECONDS. Raises UsageError when it is no positive number."""
    text = os.environ.get(VARIABLE, "")
    try:
        seconds = float(text) if text else SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise UsageError(f"{VARIABLE} is {text!r}", hint="give a number of seconds greater than 0, or unset it")
    return seconds


@contextmanager
def within_time(problem: Problem) -> Iterator[None]:
    """Run code of a problem. Raises ProblemError when it takes longer than it may."""
    watch = _Watch(problem, allowed_seconds())
    try:
        watch.timer.start()
        try:
            yield
        finally:
            watch.end()
    except _Over:
        # It may have come in the middle of that; it comes once, and not in here.
        watch.end()
        raise ProblemError(watch.message, hint=watch.hint) from None
    if watch.raised:
        raise ProblemError(watch.message, hint=watch.hint)


class _Watch:
    def __init__(self, problem: Problem, seconds: float) -> None:
        self.message = f"{problem.reference_path} has not come to an end after {seconds:g} s"
        self.hint = f"correct the file, or allow it more seconds by {VARIABLE}"
        self.timer = _daemon_timer(seconds, self._interrupt)
        self.raised = False
        self._thread = ctypes.c_ulong(threading.get_ident())
        self._lock = threading.Lock()
        self._ended = False

    def end(self) -> None:
        """The code has ended: nothing happens to its thread from now on."""
        with self._lock:
            self._ended = True
            self.timer.cancel()
            if self.raised:
                # What has not been raised yet would be in code that has nothing to do with it.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, None)
        self.timer.join()

    def _interrupt(self) -> None:
        with self._lock:
            if self._ended:
                return
            self.raised = True
            self.timer = _daemon_timer(GRACE_S, self._give_up)
            self.timer.start()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, ctypes.py_object(_Over))

    def _give_up(self) -> None:
        with self._lock:
            if self._ended:
                return
            _log.critical("error: %s\n  -> %s", self.message, self.hint)
            os._exit(ProblemError.exit_code)


def _daemon_timer(seconds: float, action: Callable[[], None]) -> threading.Timer:
    """A timer that does not keep the process."""
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    return timer
