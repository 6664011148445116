"""Counted runs: one warmed call of a program with every counter on, modelled once and remembered.

Counts depend on the program and on the job's shapes and sizes; how much they depend on the values (branches on data)
is taken to be the same for every input set, so values are no part of the key.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence

from kernelblaster.devices.base import Build, Job, RunFailure, RunFailureKind
from kernelblaster.devices.emulated.architecture import GpuModel
from kernelblaster.devices.emulated.call import CallEstimate, estimate_call
from kernelblaster.devices.emulated.model import Unlaunchable
from kernelblaster.devices.emulated.record import Record

_KEPT = 256


class CountedCalls:
    """Estimates of counted calls, at most one run per program and job shape. Safe among threads.

    Args:
        gpu: the GPU to stand for.
        count: runs a program and gives its records; the third argument bounds it in seconds.
    """

    def __init__(self, gpu: GpuModel, count: Callable[[Build, Job, float], Sequence[Record]]) -> None:
        self._gpu = gpu
        self._count = count
        self._guard = threading.Lock()
        self._running: dict[Hashable, threading.Lock] = {}
        self._known: OrderedDict[Hashable, CallEstimate] = OrderedDict()

    def estimate(self, build: Build, job: Job, *, timeout_s: float) -> CallEstimate:
        """The modelled call. Raises RunFailure; a failed run is not remembered."""
        key = (build.digest, job_shape(job))
        with self._guard:
            running = self._running.setdefault(key, threading.Lock())
        with running:
            with self._guard:
                known = self._known.get(key)
            if known is None:
                known = self._run(build, job, timeout_s)
                self._remember(key, known)
        return known

    def _run(self, build: Build, job: Job, timeout_s: float) -> CallEstimate:
        records = self._count(build, job, timeout_s)
        resources = {kernel.symbol: kernel for kernel in build.resources if kernel.symbol}
        try:
            return estimate_call(records, resources, self._gpu)
        except Unlaunchable as error:
            raise RunFailure(RunFailureKind.RUNTIME, str(error)) from error

    def _remember(self, key: Hashable, known: CallEstimate) -> None:
        with self._guard:
            self._known[key] = known
            self._running.pop(key, None)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)


def job_shape(job: Job) -> Hashable:
    """What of a job decides the counts: tensors without their files, sizes, scalars."""
    return (
        tuple(tensor.spec for tensor in job.tensors),
        tuple(sorted(job.sizes.items())),
        tuple(sorted(job.scalars.items())),
    )
