"""The processes that meet at the timed size: the candidate's, its rival's, and the candidate's under a profiler.

Starting a process costs more than a call: a CUDA context, and all inputs copied to the GPU. So both start on threads,
while something else goes on, and each is waited for where it is first asked for; a failure to start shows there, and
not at all when nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import Build, CallResult, Device, Profile, Profiler, RunFailure, Session
from kernelblaster.evaluation.bench import Bench
from kernelblaster.evaluation.inputs import InputSet, InputStore
from kernelblaster.evaluation.timing import Rival, RivalFailed


class Starting:
    """A process that starts on a thread of its own, from the moment this is made.

    Args:
        opening: makes the session, which is then entered.
    """

    def __init__(self, opening: Callable[[], Session]) -> None:
        self._opening = opening
        self._process = ExitStack()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="starting")
        self._session: Future[Session] = self._pool.submit(self._start)

    def session(self) -> Session:
        """The session, once its process has started. Raises RunFailure and DeviceError."""
        return self._session.result()

    def close(self) -> None:
        """End the process, waiting first for a start that has begun. May be called again."""
        self._pool.shutdown(cancel_futures=True)
        self._process.close()

    def _start(self) -> Session:
        return self._process.enter_context(self._opening())


@dataclass(frozen=True)
class KeptCall:
    """What a timed call left: of which variant it was, what it did to its inputs, and where its output lies."""

    variant: int
    result: CallResult
    output: Path


class Contest:
    """Candidate and rival at the timed size. A context manager: processes and files are gone on exit.

    Args:
        device: where they run; the caller holds it.
        inputs: owns the directory of the benches.
        drawn: the timed input set, lent for as long as this lives.
        timeout_s: of each request to a process.
    """

    def __init__(self, device: Device, inputs: InputStore, drawn: InputSet, timeout_s: float) -> None:
        self.drawn = drawn
        self._device = device
        self._inputs = inputs
        self._timeout_s = timeout_s
        self._rival: Starting | None = None
        self._started: list[Starting] = []
        self._profiler: Profiler | None = None
        self._stack = ExitStack()
        self.kept: list[KeptCall] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # All at once: the driver takes some 60 ms to end a process that holds GPU memory.
            with ThreadPoolExecutor() as pool:
                list(pool.map(Starting.close, self._started))
        finally:
            self._stack.close()

    def start(self, build: Build, rival: Build | None) -> None:
        """Begin to start the processes, the rival's if there is one."""
        self.bench, self._candidate = self._begin(build)
        if rival is not None:
            _, self._rival = self._begin(rival)

    def start_profiler(self, build: Build) -> None:
        """Begin to start the candidate under a profiler, where it waits to be asked."""
        bench = self._stack.enter_context(Bench(self._inputs.directory, self.drawn))
        self._profiler = self._stack.enter_context(self._device.profiler(build, bench.job, timeout_s=self._timeout_s))

    def settle(self) -> None:
        """Wait until the profiler, if it was started, disturbs nobody."""
        if self._profiler is not None:
            self._profiler.settle()

    def profile(self, build: Build) -> Profile:
        """Counters of one call of the candidate. Raises RunFailure and DeviceError."""
        if self._profiler is None:
            self.start_profiler(build)
        return self._profiler.collect()

    def look(self, variant: int) -> None:
        """Keep what the candidate's last call, of this variant, left. Raises RunFailure and DeviceError."""
        result = self.candidate().fetch()
        self.kept.append(KeptCall(variant, result, self.bench.keep_output()))

    def candidate(self) -> Session:
        """The candidate's session. Raises RunFailure and DeviceError."""
        return self._candidate.session()

    def rival(self) -> Rival | None:
        """The rival's session, if it was given one. Raises RivalFailed and DeviceError."""
        if self._rival is None:
            return None
        try:
            return Rival(self._rival.session())
        except RunFailure as failure:
            raise RivalFailed(failure.reason) from failure

    def dismiss_rival(self) -> None:
        """End the rival's process: it must not run beside a candidate that is timed alone."""
        if self._rival is not None:
            self._rival.close()
            self._rival = None

    def _begin(self, build: Build) -> tuple[Bench, Starting]:
        bench = self._stack.enter_context(Bench(self._inputs.directory, self.drawn))
        starting = Starting(lambda: self._device.open(build, bench.job, timeout_s=self._timeout_s))
        self._started.append(starting)
        return bench, starting
