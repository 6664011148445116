"""A limit on the time that a problem's own Python code may run, which shares this process with the judge.

When it is over, an exception is raised in the thread that runs the code: Python takes it between two instructions. Code
that waits inside a library, or swallows the exception, gets a few seconds more; then the process says why and ends,
as after a kill, for nothing else could end that thread.
"""

from __future__ import annotations

import ctypes
import heapq
import itertools
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kernelblaster.errors import ProblemError, UsageError
from kernelblaster.problems.own_output import apart_from_answers
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.python_source import place_in

VARIABLE = "KERNELBLASTER_REFERENCE_TIMEOUT"
SECONDS = 900.0
"""Of one call; the largest shipped references take a minute in float64 on two cores."""
GRACE_S = 10.0
_MOST_ALARMS = 64
"""Beyond which those that were cancelled are dropped."""
_IDLE_S = 1.0
"""Without an alarm, after which the thread ends: a process that has one cannot be forked."""
_CALLS = 8
"""After which an exception has been raised that was set for the thread before; one is enough."""
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


Result = TypeVar("Result")


def within_time(problem: Problem, work: Callable[[], Result]) -> Result:
    """Run code of a problem; its result. What it prints goes to standard error.

    Raises ProblemError when it takes longer than it may, or would end the process: that would end the judge with it.
    """
    # Outside of the watch: its exception shall not come between two halves of a change of streams.
    with apart_from_answers():
        try:
            return _before_its_end(problem, work)
        except SystemExit as error:
            raise ProblemError(
                f"{place_in(problem.reference_path, error)}: it would end the process, with {error.code!r}",
                hint="correct the file: raise an exception, or leave out the call of exit",
            ) from error


def _before_its_end(problem: Problem, work: Callable[[], Result]) -> Result:
    """Its result. Raises ProblemError when it takes longer than it may.

    A function, for the exception may come between the end of the code and that of the watch: whatever frame it comes
    in lies below this one.
    """
    watch = _Watch(problem, allowed_seconds())
    try:
        result = _watched(watch, work)
    except _Over:
        # It may have come in the middle of the watch's end; it comes once, and not in here.
        watch.end()
        raise ProblemError(watch.message, hint=watch.hint) from None
    if watch.raised:
        raise ProblemError(watch.message, hint=watch.hint)
    return result


def _watched(watch: _Watch, work: Callable[[], Result]) -> Result:
    watch.start()
    try:
        return work()
    finally:
        watch.end()


def _nothing() -> None:
    """Python raises here what was set for the thread."""


class _Watch:
    def __init__(self, problem: Problem, seconds: float) -> None:
        self.message = f"{problem.reference_path} has not come to an end after {seconds:g} s"
        self.hint = f"correct the file, or allow it more seconds by {VARIABLE}"
        self.raised = False
        self._thread = ctypes.c_ulong(threading.get_ident())
        self._lock = threading.Lock()
        self._ended = False
        self._seconds = seconds
        self._alarm: _Alarm | None = None

    def start(self) -> None:
        """The code begins."""
        with self._lock:
            self._alarm = _ALARMS.set(self._seconds, self._interrupt)

    def end(self) -> None:
        """The code has ended: nothing happens to its thread from now on.

        Raises `_Over` in here at the latest, at the first of its calls.
        """
        with self._lock:
            self._ended = True
            if self._alarm is not None:
                self._alarm.cancel()
            raised = self.raised
        if raised:
            # What has not been raised yet would be in code that has nothing to do with it: it is taken at a call. To
            # withdraw it leaves the interpreter with a mark of an exception that never comes, and where code is traced
            # CPython 3.11 goes round in a circle at that mark.
            for _ in range(_CALLS):
                _nothing()

    def _interrupt(self) -> None:
        with self._lock:
            if self._ended:
                return
            self.raised = True
            self._alarm = _ALARMS.set(GRACE_S, self._give_up)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, ctypes.py_object(_Over))

    def _give_up(self) -> None:
        with self._lock:
            if self._ended:
                return
            _log.critical("error: %s\n  -> %s", self.message, self.hint)
            os._exit(ProblemError.exit_code)


class _Alarm:
    """Something that is done at a time, unless it is cancelled before."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Do nothing; an action that has begun is not waited for."""
        self.action = None


class _Alarms:
    """Runs actions at their time, on one thread that does not keep the process, and ends when it has had nothing to do.

    A thread for each would cost two changes of threads per call of a problem's code: milliseconds where several judge.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, _Alarm]] = []
        self._numbers = itertools.count()
        self._running = False

    def set(self, seconds: float, action: Callable[[], None]) -> _Alarm:
        """Run an action in so many seconds."""
        alarm = _Alarm(action)
        due = (time.monotonic() + seconds, next(self._numbers), alarm)
        with self._changed:
            if len(self._due) >= _MOST_ALARMS:
                self._due = [each for each in self._due if each[2].action is not None]
                heapq.heapify(self._due)
            heapq.heappush(self._due, due)
            if not self._running:
                threading.Thread(target=self._run, name="time limit", daemon=True).start()
                self._running = True
            elif self._due[0] is due:
                self._changed.notify()
        return alarm

    def _run(self) -> None:
        while (alarm := self._next()) is not None:
            if alarm.action is not None:
                alarm.action()

    def _next(self) -> _Alarm | None:
        """The next alarm, once it is due; None when all were cancelled a while ago."""
        with self._changed:
            while True:
                now = time.monotonic()
                if self._due and self._due[0][0] <= now:
                    return heapq.heappop(self._due)[2]
                if not self._changed.wait(min(self._due[0][0] - now, _IDLE_S) if self._due else _IDLE_S):
                    self._due = [each for each in self._due if each[2].action is not None]
                    heapq.heapify(self._due)
                    if not self._due:
                        self._running = False
                        return None


_ALARMS = _Alarms()
