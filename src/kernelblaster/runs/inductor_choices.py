"""What max-autotune chooses, kept on disk for all processes that compile beside each other.

Of an operation Inductor notes what each kernel took in one file, which it reads before it measures and writes
afterwards as a whole: of processes that do so at once the last one's notes remain, and equal operations are measured
again. It builds one operation's kernels in threads beside those that it measures of another, which then wait for
Python again and again, or in other processes, and then once more in the call that it measures; and it calls what
takes seconds as often as what takes milliseconds. Its clock does not hide launches, so that of short kernels those win
which the host launches quickly. How a kernel that it fuses is launched it finds out when that is first called, and
builds each variant then; of a kernel that it stores with its graph it does not find that again.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from kernelblaster.evaluation.timing.compile_ahead import Held
from kernelblaster.evaluation.timing.round_robin import cover_fills_for
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.runs.torch_device import TorchDevice

_HOPELESS, _HOPELESS_MS = 10.0, 100.0
"""A built kernel whose first call takes so many times what the best takes, and so much longer, is not called again."""
_LONG_MS = 100.0
"""Of what takes longer with its launch, that is no part worth telling."""
_LAUNCHES, _SAMPLES, _SAMPLED_MS = 3, 20, 100.0
"""Calls that tell how long a launch takes; calls that are timed at most, and how long all of them take at least."""
Notes = dict[str, Any]
"""Nested: operation, inputs, precision, kernel; the innermost values are times."""


class _Builds:
    """Builds in the threads of this process, none of which begins while something is measured."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: list[int] = []
        """The thread of each."""
        self._measures: int | None = None
        """The thread that does."""
        self.begun = 0
        """How many were."""

    def beside(self, build: Callable[..., Any]) -> Callable[..., Any]:
        """Waits until nothing is measured; but not what is built for a measurement, or for another build."""

        def build_unless_measured(*args: Any, **kwargs: Any) -> Any:
            me = threading.get_ident()
            with self._changed:
                if me != self._measures and me not in self._running:
                    self._changed.wait_for(lambda: self._measures is None)
                self._running.append(me)
                self.begun += 1
            try:
                return build(*args, **kwargs)
            finally:
                with self._changed:
                    self._running.remove(me)
                    self._changed.notify_all()

        return build_unless_measured

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Those under way have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._measures is None)
            self._measures = threading.get_ident()
            self._changed.wait_for(lambda: not self._running)
        try:
            yield
        finally:
            with self._changed:
                self._measures = None
                self._changed.notify_all()


class _Contest:
    """Times kernels, all by one clock; those of one operation until they cannot win any more.

    What is timed after an operation is compared with its kernels, too: one that is fused with the next, and the next
    alone, of which Inductor tells whether fusing them pays.
    """

    def __init__(self, builds: _Builds, device: TorchDevice) -> None:
        self._builds = builds
        self._device = device
        self._compares = False
        self._best_ms = math.inf
        """Of the operation; infinite where nothing is compared."""

    @contextmanager
    def of_operation(self) -> Iterator[None]:
        """What is measured meanwhile does the same."""
        self._compares = True
        try:
            yield
        finally:
            self._compares, self._best_ms = False, math.inf

    def measured(self, call: Callable[[], object]) -> float:
        """Milliseconds; those of the first call where that is hopelessly slow."""
        begun = self._builds.begun
        first_ms = _call_ms(call)
        if self._builds.begun > begun:  # in that call: some versions of Python build nothing ahead
            first_ms = _call_ms(call)
        if first_ms > _HOPELESS * self._best_ms + _HOPELESS_MS:
            return first_ms
        # What is called first may have to be planned for: libraries do.
        call_ms = min(first_ms, _call_ms(call))
        found = call_ms if call_ms > _LONG_MS else _launch_free_ms(call, call_ms, self._device)
        if self._compares:
            self._best_ms = min(self._best_ms, found)
        return found


def _build(choices: Iterable[Any]) -> None:
    """Build each kernel in this process, where nothing is left to do then for those that threads of it have built."""
    from torch._inductor.select_algorithm import get_num_workers

    def build(choice: Any) -> None:
        with suppress(Exception):  # it fails when it is measured as well, and Inductor leaves it out
            choice.precompile()

    with ThreadPoolExecutor(max(1, get_num_workers())) as pool:
        list(pool.map(build, (choice for choice in choices if hasattr(choice, "precompile"))))


def _launch_free_ms(call: Callable[[], object], call_ms: float, device: TorchDevice) -> float:
    """Median device time of a call, as everything else is timed: with a cold L2, behind fills that hide its launch."""
    import torch

    with device.session(torch.nn.Identity(), [], TorchMode.EAGER, call) as session:
        launches = [sample.enqueue_us or 0.0 for sample in session.time_calls([0] * _LAUNCHES)]
        fills = cover_fills_for(launches, device.facts)
        samples = min(_SAMPLES, 1 + int(_SAMPLED_MS / call_ms))
        return float(np.median([sample.device_us for sample in session.time_calls([0] * samples, fills)])) / 1000


def _call_ms(call: Callable[[], object]) -> float:
    _wait_for_gpu()
    began = time.perf_counter()
    call()
    _wait_for_gpu()
    return 1000 * (time.perf_counter() - began)


def _wait_for_gpu() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextmanager
def choices_shared(device: TorchDevice) -> Iterator[Held]:
    """Operations are measured once, by whichever process comes first, and no process drops the notes of another.

    Gives what is to be held while something is measured: the GPU, and the builds of this process. Not to be entered
    while the GPU is held: somebody who is waited for here may wait for that.
    """
    from torch._inductor.codecache import CacheBase, PersistentCache
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    builds = _Builds()
    contest = _Contest(builds, device)

    @contextmanager
    def held_in_peace() -> Iterator[None]:
        with builds.paused(), device.held():
            yield

    lookup, update = PersistentCache.lookup, CacheBase.update_local_cache

    def look_up(self: Any, choices: Any, op: str, inputs: str, benchmark: Any, *args: Any, **kwargs: Any) -> Any:
        found = lookup(self, choices, op, inputs, None, *args, **kwargs)
        if benchmark is None or len(found) == len(choices):
            return found

        def measure_built(choices: Any) -> Any:
            _build(choices)
            return benchmark(choices)

        with _lock(self.get_local_cache_path(), f"{op} {inputs}"), contest.of_operation():
            return lookup(self, choices, op, inputs, measure_built, *args, **kwargs)

    def update_merged(self: Any, notes: Notes) -> None:
        with _lock(self.get_local_cache_path(), "notes"):
            update(self, _merged(self.get_local_cache(), notes))

    with (
        _replaced(PersistentCache, "lookup", look_up),
        _replaced(CacheBase, "update_local_cache", update_merged),
        _replaced(CachingAutotuner, "_precompile_config", builds.beside(CachingAutotuner._precompile_config)),
        _clock_replaced(contest),
    ):
        yield held_in_peace


def _clock_replaced(contest: _Contest) -> AbstractContextManager[None]:
    """Inductor asks `contest` what kernels take."""
    from torch._inductor.runtime.benchmarking import benchmarker

    def measured(_benchmarker: Any, call: Callable[[], object], *_args: Any, **_kwargs: Any) -> float:
        return contest.measured(call)

    return _replaced(type(benchmarker), "benchmark_gpu", measured)


@contextmanager
def _replaced(owner: type, name: str, by: Callable[..., object]) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, by)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _merged(notes: Notes, later: Notes) -> Notes:
    both = dict(notes)
    for key, value in later.items():
        both[key] = _merged(both[key], value) if isinstance(value, dict) and key in both else value
    return both


def _lock(beside: Path, name: str) -> FileLock:
    folder = beside.with_name(f"{beside.name}.locks")
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / hashlib.sha256(name.encode()).hexdigest())


@contextmanager
def kernels_stored_alone() -> Iterator[None]:
    """Graphs are stored without their kernels, which are loaded with what was chosen for each."""
    from torch._inductor import config

    with config.patch(bundle_triton_into_fx_graph_cache=False):
        yield


def choose_fused_kernels(call: Callable[..., object], inputs: Sequence[Any], device: TorchDevice) -> None:
    """Run once what was compiled, so that Inductor's cache on disk knows how the kernels that it fused are launched.

    Args:
        call: what `compile_ahead` made of a module with max-autotune.
        inputs: arguments of forward.
        device: held, but while a variant of a kernel is built, with nothing of this process under way.

    Raises whatever the module raises.
    """
    import torch
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    build, runs_here = CachingAutotuner._precompile_config, threading.get_ident()
    variants = _Contest(_Builds(), device)
    with ExitStack() as holding:
        holding.enter_context(device.held())

        def build_beside_others(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != runs_here:
                return build(*args, **kwargs)  # in a pool, for a graph that is compiled only now
            _wait_for_gpu()
            holding.close()
            try:
                return build(*args, **kwargs)
            finally:
                holding.enter_context(device.held())

        with (
            _replaced(CachingAutotuner, "_precompile_config", build_beside_others),
            _clock_replaced(variants),
            torch.inference_mode(),
        ):
            call(*inputs)
        _wait_for_gpu()
