"""A candidate's running process on the emulated device: executed for its outputs, timed by the model."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import CallResult, Sample, Session

_POISON = 0xFF


class EmulatedSession:
    """Forwards calls to the process, uncounted and therefore fast; a sample asks the timing model.

    Args:
        process: the process, not yet entered.
        modelled_us: gives the modelled time of one call in microseconds. Raises RunFailure.
    """

    def __init__(self, process: Session, modelled_us: Callable[[], float]) -> None:
        self._process = process
        self._modelled_us = modelled_us
        self._outdated = False

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def call(self, poison: int) -> CallResult:
        """Execute one call; outputs lie in the job's files. Raises RunFailure."""
        self._outdated = False
        return self._process.call(poison)

    def sample(self, count: int) -> list[Sample]:
        """One sample, whatever `count` above zero says: the model is deterministic, so repeating it is no evidence."""
        if count < 1:
            return []
        return [Sample(device_us=self._modelled_us(), host_us=None)]

    def fetch(self) -> CallResult:
        """Outputs of the last call, for the inputs that are loaded now; a sample executes nothing, so this does."""
        if self._outdated:
            return self.call(_POISON)
        return self._process.fetch()

    def reload(self) -> None:
        """Read the job's input files again. Raises RunFailure."""
        self._process.reload()
        self._outdated = True
