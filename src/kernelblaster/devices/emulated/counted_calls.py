"""Counted runs: one warmed call of a program with every counter on, modelled once and remembered.

The counted call finds other values at other addresses than the call that warmed it up, and its outputs are kept, so
that they can be judged: a program that remembers results has no short call to show.

Counts depend on the program and on the job's shapes and sizes; how much they depend on the values (branches on data)
is taken to be the same for every input set, so values are no part of the key.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from kernelblaster.devices.base import COUNTED, Build, CallResult, Job
from kernelblaster.devices.emulated.translation import ptxas_resources, translated_errors
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from ptxemu.counters.machine_code import read_code, with_machine_counts
from ptxemu.counters.record import CountedRecord, HostWorkRecord
from ptxemu.model.architecture import GpuModel
from ptxemu.model.call import CallEstimate, estimate_call
from ptxemu.model.kernel import Unlaunchable

_KEPT = 256
_MORE_COUNTS = 2
"""After a call in which the host worked."""


@dataclass(frozen=True)
class Counted:
    """Launches and transfers of one counted call.

    Attributes:
        records: of the call, in order.
        result: what it did to the job's files, where its outputs lie now; None when these are incomplete.
    """

    records: Sequence[CountedRecord]
    result: CallResult | None


class CountedCalls:
    """Estimates of counted calls, at most one run per program and job shape. Safe among threads.

    Args:
        gpu: the GPU to stand for.
        count: runs a program; the last arguments bound it in seconds, and say which perturbation the counted call has.
    """

    def __init__(self, gpu: GpuModel, count: Callable[[Build, Job, float, int], Counted]) -> None:
        self._gpu = gpu
        self._count = count
        self._guard = threading.Lock()
        self._running: dict[Hashable, threading.Lock] = {}
        self._known: OrderedDict[Hashable, CallEstimate] = OrderedDict()

    def estimate(self, build: Build, job: Job, *, timeout_s: float) -> CallEstimate:
        """The modelled call. Raises RunFailure; a failed run is not remembered."""
        return self.run(build, job, timeout_s, COUNTED)[0]

    def run(
        self, build: Build, job: Job, timeout_s: float, perturbation: int
    ) -> tuple[CallEstimate, CallResult | None]:
        """The modelled call, and what it did to the job's files; None when it was made before, or sampled.

        Raises RunFailure.
        """
        key = (build.digest, job_shape(job))
        with self._guard:
            running = self._running.setdefault(key, threading.Lock())
        with running:
            with self._guard:
                known = self._known.get(key)
            if known is not None:
                return known, None
            counted = self._calmest(build, job, timeout_s, perturbation)
            known = self._model(build, counted)
            self._remember(key, known)
        return known, counted.result

    def _calmest(self, build: Build, job: Job, timeout_s: float, perturbation: int) -> Counted:
        """A counted call; of several, when the host worked in it, with the least of that: other programs disturb it."""
        counted = self._count(build, job, timeout_s, perturbation)
        least = host_work_ns(counted.records)
        for _ in range(_MORE_COUNTS):
            if least == 0:
                return counted
            counted = self._count(build, job, timeout_s, perturbation)
            least = min(least, host_work_ns(counted.records))
        kept = [record for record in counted.records if not isinstance(record, HostWorkRecord)]
        return replace(counted, records=[*kept, HostWorkRecord(least)] if least else kept)

    def _model(self, build: Build, counted: Counted) -> CallEstimate:
        try:
            with translated_errors():
                records = _with_machine_counts(build, counted.records)
                return estimate_call(records, ptxas_resources(build.resources), self._gpu)
        except Unlaunchable as error:
            raise RunFailure(RunFailureKind.RUNTIME, str(error)) from error

    def _remember(self, key: Hashable, known: CallEstimate) -> None:
        with self._guard:
            self._known[key] = known
            self._running.pop(key, None)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)


def host_work_ns(records: Sequence[CountedRecord]) -> int:
    """What the host worked beyond what launching takes, in nanoseconds."""
    return sum(record.host_ns for record in records if isinstance(record, HostWorkRecord))


def _with_machine_counts(build: Build, records: Sequence[CountedRecord]) -> Sequence[CountedRecord]:
    """Records with what the machine code of the program executed, where the build has kept it."""
    if build.cubin is None or build.ptx is None:
        return records
    return with_machine_counts(records, read_code(build.cubin, build.ptx))


def job_shape(job: Job) -> Hashable:
    """What of a job decides the counts: tensors without their files, sizes, scalars, the sample."""
    return (
        tuple(tensor.spec for tensor in job.tensors),
        tuple(sorted(job.sizes.items())),
        tuple(sorted(job.scalars.items())),
        job.instruction_budget,
    )
