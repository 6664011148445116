"""Batches of a scripted kernel, by the clock of a GPU whose true times are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kernelblaster.devices.base import BatchTime

Array = np.ndarray
EXCHANGE_US, LAUNCH_US, FILL_US = 20.0, 3.0, 160.0


class FakeBatches:
    """Satisfies `BatchSession`.

    Args:
        install: puts the values of a perturbation into place and returns a fresh, poisoned output.
        call: calls the kernel on what is in place, as one of a batch.
        call_us: true time of a call.
    """

    def __init__(self, install: Callable[[int], Array], call: Callable[[], None], call_us: Callable[[], float]) -> None:
        self._install = install
        self._call = call
        self._call_us = call_us
        self._outputs: list[Array] = []
        self._perturbations: list[int] = []

    def prepare_batch(self, perturbations: Sequence[int]) -> None:
        self._perturbations = list(perturbations)
        self._outputs = [self._install(one).copy() for one in perturbations]

    def run_batch(self, calls: int, fills: int) -> BatchTime:
        host, gpu = 0.0, fills * FILL_US
        for slot in range(calls):
            output = self._install(self._perturbations[slot])
            self._call()
            self._outputs[slot][:] = output
            host += LAUNCH_US
            gpu = max(gpu, host) + self._call_us()
        return BatchTime(issued_us=host, done_us=max(host, gpu) + EXCHANGE_US)

    def select_slot(self, slot: int) -> None:
        self._install(self._perturbations[slot])[:] = self._outputs[slot]
