"""A candidate's process: it starts and ends on a thread, while something else goes on.

Starting a process costs more than a call: a CUDA context, and all inputs copied to the GPU; and a GPU driver takes a
tenth of a second to end one. So each starts before it is needed, if need be before the candidate is compiled, and is
waited for where it is first asked for; a failure to start shows there, and not at all when nobody asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import Build, Candidate, Device, Harness, Session
from kernelblaster.devices.facts import Library
from kernelblaster.errors import DeviceMemoryFull
from kernelblaster.evaluation.processes.workspace import Workspace

COMPILING_S = 10.0
"""Processes wait so long for their candidate; most take a second, a template bomb minutes."""


class StillCompiling(Exception):
    """A candidate takes so long to compile that nothing more should wait for it while it holds a device."""


@dataclass(frozen=True)
class Compiling:
    """A candidate that is being built on a thread. Satisfies `devices.base.Candidate`."""

    harness: Harness
    libraries: tuple[Library, ...]
    _build: Future[Build]
    _until: float

    def built(self) -> Build:
        """The build. Raises StillCompiling when it takes long; BuildFailure, DeviceError, ToolMissing."""
        try:
            return self._build.result(max(self._until - time.monotonic(), 0))
        except TimeoutError:
            raise StillCompiling from None

    def finished(self) -> Build:
        """The build, however long it takes. Raises BuildFailure, DeviceError, ToolMissing."""
        return self._build.result()


@contextmanager
def compiling(build: Callable[[], Build], harness: Harness, libraries: tuple[Library, ...] = ()) -> Iterator[Compiling]:
    """Build on a thread; leaving waits for its end."""
    with ThreadPoolExecutor(1, thread_name_prefix="build") as thread:
        yield Compiling(harness, libraries, thread.submit(build), time.monotonic() + COMPILING_S)


class CandidateProcess:
    """A harness process with one candidate, and its files. Begins to start when made. A context manager.

    Args:
        device: where it runs; the caller holds it.
        candidate: what it calls.
        bench: its files, which it owns from here on.
        timeout_s: of each request.
    """

    def __init__(self, device: Device, candidate: Candidate, workspace: Workspace, timeout_s: float) -> None:
        self.candidate = candidate
        self.workspace = workspace
        self._opening: Callable[[], Session] = lambda: device.open(candidate, workspace.job, timeout_s=timeout_s)
        self._process = ExitStack()
        # One thread: an end that is asked for during the start comes after it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="process")
        self._session: Future[Session] = self._thread.submit(self._start)
        self._started_again = False
        self._end: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def session(self) -> Session:
        """The session, once the process has started.

        One that finds the GPU's memory full is started once more: another process of the candidate, gone by now, may
        have held all of it. Raises RunFailure and DeviceError.
        """
        try:
            return self._session.result()
        except DeviceMemoryFull:
            if self._started_again:
                raise
            self._started_again = True
            self._session = self._thread.submit(self._start)
        return self._session.result()

    def end(self) -> None:
        """Begin to end the process, without waiting; one that has not begun to start never does."""
        self._begin_to_end()

    def _begin_to_end(self) -> Future[None]:
        if self._end is None:
            self._session.cancel()
            self._end = self._thread.submit(self._process.close)
            self._thread.shutdown(wait=False)
        return self._end

    def close(self) -> None:
        """End the process, wait until it is gone, remove its files. May be called again. Raises DeviceError."""
        end = self._begin_to_end()
        try:
            end.result()
        finally:
            self.workspace.close()

    def _start(self) -> Session:
        return self._process.enter_context(self._opening())
