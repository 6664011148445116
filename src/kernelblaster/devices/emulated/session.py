"""A candidate on the emulated device: executed for its outputs, timed by the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import BatchSession, CallResult, Session, TimingSample
from kernelblaster.devices.failures import RunFailure
from ptxemu.model.call import CallEstimate

_POISON = 0xFF


class EmulatedSession:
    """Forwards calls to a process, uncounted and therefore fast; a sample asks the timing model.

    The process is started when it is first needed: samples alone never need it.

    Args:
        process: the process, not yet entered.
        modelled: models one call on the values of a variant; beside it, what the call did when its outputs lie in the
            job's files now. Raises RunFailure.
    """

    def __init__(self, process: Session, modelled: Callable[[int], tuple[CallEstimate, CallResult | None]]) -> None:
        self._stopped = process
        self._started: Session | None = None
        self._stack = ExitStack()
        self._modelled = modelled
        self._outdated = False
        self._sampled: int | None = None
        self._counted: CallResult | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def _process(self) -> Session:
        if self._started is None:
            self._started = self._stack.enter_context(self._stopped)
        return self._started

    def call(self, poison: int) -> CallResult:
        """Execute one call; outputs lie in the job's files. Raises RunFailure."""
        self._outdated, self._sampled, self._counted = False, None, None
        return self._process.call(poison)

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """One sample for however many variants: the model is deterministic, so repeating it is no evidence."""
        if not perturbations:
            return []
        self._sampled = perturbations[-1]
        estimate, self._counted = self._modelled(self._sampled)
        return [TimingSample(device_us=estimate.device_us, host_us=None, executed_share=estimate.executed_share)]

    def fetch(self) -> CallResult:
        """Outputs of the last call, for the inputs that are loaded now.

        A sample whose call was counted before has none: then it is executed here.
        """
        counted, self._counted = self._counted, None
        if counted is not None:
            return counted
        if self._sampled is not None:
            self._process.time_calls([self._sampled])
        elif self._outdated:
            return self.call(_POISON)
        return self._process.fetch()

    def reload(self) -> None:
        """Read the job's input files again. Raises RunFailure."""
        self._process.reload()
        self._outdated, self._sampled, self._counted = True, None, None

    def batches(self) -> BatchSession | None:
        """None: a modelled time is nothing that another clock could confirm."""
        return None


class EmulatedVariants:
    """Several candidates, each of which is counted and modelled by itself. Satisfies `devices.base.VariantSession`.

    Args:
        counted: of each candidate, one call as it was counted. Raises RunFailure.
    """

    def __init__(self, counted: Sequence[Callable[[], CallEstimate]]) -> None:
        self._counted = counted
        self._chosen: CallEstimate | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def choose(self, index: int) -> str:
        """Count a call of this one. Why it fails, else empty: it harms no other."""
        self._chosen = None
        try:
            self._chosen = self._counted[index]()
        except RunFailure as failure:
            return failure.reason
        return ""

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """One sample of the chosen one, however many are asked for: the model is deterministic."""
        if self._chosen is None:
            raise ValueError("no variant was chosen, or the chosen one does not run")
        chosen = self._chosen
        return [TimingSample(device_us=chosen.device_us, host_us=None, executed_share=chosen.executed_share)]
