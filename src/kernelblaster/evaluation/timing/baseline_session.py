"""A baseline that is timed beside a candidate: its failures cost the comparison, not the candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kernelblaster.devices.base import BatchSession, BatchTime, TimingSample
from kernelblaster.devices.failures import RunFailure
from kernelblaster.evaluation.timing.stopwatch import Timeable


class BaselineFailed(Exception):
    """The baseline, not the candidate, failed while being timed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class BaselineSession:
    """A baseline's session; its failures cost the comparison, not the candidate."""

    session: Timeable

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """As the session's. Raises BaselineFailed."""
        with _baselines_failure():
            return self.session.time_calls(perturbations, cover_fills)


@dataclass(frozen=True)
class BaselineBatches:
    """Batches of a baseline. Satisfies `BatchSession`; what it raises is BaselineFailed instead of RunFailure."""

    session: BatchSession

    def prepare_batch(self, perturbations: Sequence[int]) -> None:
        """As the session's."""
        with _baselines_failure():
            self.session.prepare_batch(perturbations)

    def run_batch(self, calls: int, fills: int) -> BatchTime:
        """As the session's."""
        with _baselines_failure():
            return self.session.run_batch(calls, fills)

    def select_slot(self, slot: int) -> None:
        """As the session's."""
        with _baselines_failure():
            self.session.select_slot(slot)


@contextmanager
def _baselines_failure() -> Iterator[None]:
    try:
        yield
    except RunFailure as failure:
        raise BaselineFailed(failure.reason) from failure
