"""Processes that judge for a search, each the candidates of problems of its own.

One process can compute one reference at a time, for torch's settings are global, and all its threads share one
interpreter. So a run over many problems on a machine with many cores has several, on one GPU or on each of several. A
problem stays with the process that drew its inputs first, and so on one GPU. A process that dies is replaced once for a
request, which is judged again; nothing that was stored is lost, because the search stores.

Each is a server of the standard library's `multiprocessing.managers`, with a thread per request.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.managers import BaseManager
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from kernelblaster.agent.context import CandidateEvaluator
from kernelblaster.devices.base import Device
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.errors import DeviceError, DeviceMemoryFull
from kernelblaster.evaluation.results import Evaluation, SweepTimes
from kernelblaster.problems.problem import Problem

Opens = Callable[[], AbstractContextManager[CandidateEvaluator]]
"""Makes what judges, in the process that does; found there by its importable name."""
Answer = TypeVar("Answer")
Item = TypeVar("Item")
_LOST = (EOFError, OSError)
"""How a call ends whose process is gone."""


class JudgingProcesses:
    """Satisfies `agent.context.CandidateEvaluator`. A context manager: the processes end with it, or with this one.

    Args:
        device: what the search is told of; the processes open their own.
        opens: makes what judges.
        count: processes.
        holds: whether a GPU, and its part of the machine, has memory for candidates of these problems at once.
        tell: told what is judged.
        gpus: that the processes take in turns, as CUDA_VISIBLE_DEVICES names them; none: what is visible here.
    """

    def __init__(
        self,
        device: Device,
        opens: Opens,
        count: int,
        holds: Callable[[Sequence[Problem]], bool] = lambda problems: True,
        tell: Callable[[str], object] = lambda stage: None,
        gpus: Sequence[str] = (),
    ) -> None:
        self._device = device
        self._tell = tell
        chosen: Sequence[str | None] = gpus or (None,)
        self._admission = {gpu: Admission(holds) for gpu in chosen}
        self._lock = threading.Lock()
        threads = max(1, (os.cpu_count() or 1) // count)
        self._servers = [_Server(opens, threads, chosen[place % len(chosen)]) for place in range(count)]
        self._home: dict[Problem, _Server] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ThreadPoolExecutor(len(self._servers)) as threads:
            list(threads.map(_Server.close, self._servers))

    @property
    def device(self) -> Device:
        """What the search is told of."""
        return self._device

    def evaluate(
        self, problem: Problem, source: str, *, baseline: str | None, profile: bool, process_pairs: int
    ) -> Evaluation:
        """As of `Evaluator`. Raises DeviceError and ProblemError."""
        self._tell(f"judging a kernel for {problem.id}")

        def judged(judge: _Served) -> Evaluation:
            return judge.evaluate(problem, source, baseline, profile, process_pairs)

        found = self._asked(problem, judged)
        return self._asked_alone(problem, judged) if found.found_no_memory else found

    def sweep(self, problem: Problem, sources: Sequence[str]) -> SweepTimes:
        """As of `Evaluator`. Raises DeviceError and ProblemError."""
        self._tell(f"timing {len(sources)} variants of a kernel for {problem.id}")
        return self._asked(problem, lambda judge: judge.sweep(problem, tuple(sources)))

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        """As of `Evaluator`. Raises DeviceError."""
        self._tell(f"sanitizing a kernel for {problem.id}")
        return self._asked(problem, lambda judge: judge.sanitize(problem, source))

    def _asked(self, problem: Problem, request: Callable[[_Served], Answer]) -> Answer:
        """The answer of the problem's process; once more with the memory to itself, where it was full."""
        server = self._server(problem)
        admission = self._admission[server.gpu]
        try:
            with admission.of(problem):
                return server.ask(request)
        except DeviceMemoryFull:
            return self._asked_alone(problem, request)

    def _asked_alone(self, problem: Problem, request: Callable[[_Served], Answer]) -> Answer:
        server = self._server(problem)
        with self._admission[server.gpu].of(problem, alone=True):
            return server.ask(request)

    def _server(self, problem: Problem) -> _Server:
        """Where a problem is judged: at first, by the process that has the fewest."""
        with self._lock:
            if problem not in self._home:
                taken = Counter(map(id, self._home.values()))
                self._home[problem] = min(self._servers, key=lambda server: taken[id(server)])
            return self._home[problem]


class Admission(Generic[Item]):
    """Lets in, in the order in which they come, as many as there is room for together, or one.

    Args:
        holds: whether there is room for all of these.
    """

    def __init__(self, holds: Callable[[Sequence[Item]], bool]) -> None:
        self._holds = holds
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._inside: list[Item] = []
        self._one_is_alone = False

    @contextmanager
    def of(self, item: Item, *, alone: bool = False) -> Iterator[None]:
        """Wait for room, and take it; `alone`: all of it."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: self._waiting[0] is ticket and self._fits(item, alone))
            self._waiting.popleft()
            self._inside.append(item)
            self._one_is_alone = alone
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._inside.remove(item)
                self._one_is_alone = False
                self._changed.notify_all()

    def _fits(self, item: Item, alone: bool) -> bool:
        return not self._inside or (not (alone or self._one_is_alone) and self._holds([*self._inside, item]))


class _Server:
    """One process, started when it is first asked, and again when it has died.

    Args:
        opens, threads: as of `JudgingProcesses`, and what torch may use of the cores.
        gpu: that it sees; None: what is visible here.
    """

    def __init__(self, opens: Opens, threads: int, gpu: str | None) -> None:
        self.gpu = gpu
        self._opens = opens
        self._threads = threads
        self._lock = threading.Lock()
        self._manager: _Manager | None = None
        self._served: _Served | None = None
        self._closed = False

    def ask(self, request: Callable[[_Served], Answer]) -> Answer:
        """What the process answers. Raises DeviceError where two have died of it, and what judging raises."""
        served = None
        for _ in range(2):
            served = self._started(instead_of=served)
            try:
                return request(served)
            except _LOST:
                continue
        raise DeviceError("a process that judges has ended, twice", hint="the same command continues")

    def close(self) -> None:
        """End the process; requests that wait for it fail."""
        with self._lock:
            self._closed = True
            manager, self._manager = self._manager, None
        if manager is not None:
            manager.shutdown()

    def _started(self, instead_of: _Served | None) -> _Served:
        """What the process serves, in a new process if it is what has been lost."""
        with self._lock:
            if self._closed:
                raise DeviceError("the run is ending", hint="the same command continues")
            if self._served is None or self._served is instead_of:
                if self._manager is not None:
                    self._manager.shutdown()
                self._manager = _Manager(ctx=get_context("spawn"))
                self._manager.start(partial(_begin, self._threads, self.gpu))
                served = self._manager.judge(self._opens)
                served.open()
                self._served = served
            return self._served


class _Served:
    """What lives in a process: what judges, opened when the process is asked to."""

    def __init__(self, opens: Opens) -> None:
        self._opens = opens
        self._open = ExitStack()

    def open(self) -> None:
        """Open what judges. Raises what that does."""
        self._judge = self._open.enter_context(self._opens())

    def evaluate(
        self, problem: Problem, source: str, baseline: str | None, profile: bool, process_pairs: int
    ) -> Evaluation:
        return self._judge.evaluate(problem, source, baseline=baseline, profile=profile, process_pairs=process_pairs)

    def sweep(self, problem: Problem, sources: tuple[str, ...]) -> SweepTimes:
        return self._judge.sweep(problem, sources)

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        return self._judge.sanitize(problem, source)


class _Manager(BaseManager):
    """Runs one process."""

    if TYPE_CHECKING:

        def judge(self, opens: Opens) -> _Served:
            """A proxy of what lives there."""
            raise NotImplementedError


_Manager.register("judge", _Served, exposed=("open", "evaluate", "sweep", "sanitize"))


def _begin(threads: int, gpu: str | None) -> None:
    """In a new process: only the parent reacts to an interrupt, cores are shared, and nobody outlives the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # nothing here has asked for a GPU yet
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        with suppress(OSError):
            parent.join()
        os._exit(1)
