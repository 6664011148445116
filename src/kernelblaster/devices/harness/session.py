"""Harness processes whose candidates are loaded when they are entered: sessions of a device."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from kernelblaster.devices.base import BatchSession, BatchTime, Build, Candidate, Job, TimingSample
from kernelblaster.devices.harness.failures import HarnessLost
from kernelblaster.devices.harness.process import HarnessProcess
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.limits import Limits

_LOG = logging.getLogger(__name__)


class ProcessSession(HarnessProcess):
    """A process whose candidate is loaded when it is entered. Satisfies `devices.base.Session`.

    Args:
        flush_bytes: memory written before each timed call, to empty the L2 cache; 0 for none.
        (others as of HarnessProcess)
    """

    def __init__(
        self,
        candidate: Candidate,
        job: Job,
        *,
        env: Mapping[str, str] | None = None,
        view: FileView | None = None,
        limits: Limits | None = None,
        timeout_s: float,
        flush_bytes: int = 0,
    ) -> None:
        super().__init__(candidate, job, env=env, view=view, limits=limits, timeout_s=timeout_s)
        self._flush_bytes = flush_bytes

    def __enter__(self) -> Self:
        """Start it, and load the candidate; once more where the harness ends before it has one. Raises as `load`."""
        try:
            self._begin()
        except HarnessLost as lost:
            _LOG.warning("%s; it is started once more", lost.message)
            self._begin()
        return self

    def _begin(self) -> None:
        with contextlib.ExitStack() as stack:
            super().__enter__()
            stack.callback(super().__exit__, None, None, None)
            self.load()
            stack.pop_all()

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """Time one call per perturbation, each with a cold L2 and behind `cover_fills` fills.

        Each is asked for when the one before is done, so that nothing in the process tells how many are to come.
        Raises RunFailure, DeviceError.
        """
        samples = [self.time_call(self._flush_bytes, cover_fills, one) for one in perturbations]
        if not samples:
            return []
        judge_us = sum(sample.judge_us or 0.0 for sample in samples) / len(samples)
        return [replace(sample, judge_us=judge_us) for sample in samples]

    def run_batch(self, calls: int, fills: int) -> BatchTime:
        """Make one call in each of the first slots, launched behind fills. Raises RunFailure, DeviceError."""
        return self.time_batch(self._flush_bytes, calls, fills)

    def batches(self) -> BatchSession | None:
        """Its own."""
        return self


class VariantsProcess(ProcessSession):
    """A process with several candidates of one harness, one of which is called. Satisfies `VariantSession`.

    Args:
        builds: at least one, and no more than the harness takes; `choose` counts them from 0.
        (others as of ProcessSession)
    """

    def __init__(
        self,
        builds: Sequence[Build],
        job: Job,
        *,
        env: Mapping[str, str] | None = None,
        view: FileView | None = None,
        limits: Limits | None = None,
        timeout_s: float,
        flush_bytes: int = 0,
    ) -> None:
        super().__init__(
            builds[-1], job, env=env, view=view, limits=limits, timeout_s=timeout_s, flush_bytes=flush_bytes
        )
        self._further = tuple(builds[:-1])

    def load(self) -> None:
        """Load all of them. Raises RunFailure, DeviceError."""
        for build in self._further:
            self.add(build)
        super().load()
