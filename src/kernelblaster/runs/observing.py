"""How a run is observed: by a terminal, a notebook or a test. The library itself never prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.agent.events import Event
from kernelblaster.config import BudgetConfig, RunConfig
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.models.forecast import Forecast
from kernelblaster.problems.problem import Problem
from kernelblaster.records.summary import Spending


@dataclass(frozen=True)
class RunChoices:
    """Device and model of a run, before anything is written.

    Attributes:
        facts: of the device.
        device_reason: why this device, one line.
        model_reason: which model and why, one line.
        knowledge_reason: which knowledge base it starts from and why, one line.
    """

    facts: DeviceFacts
    device_reason: str
    model_reason: str
    knowledge_reason: str


@dataclass(frozen=True)
class ExpectedCosts:
    """What is known of costs before a search.

    Attributes:
        forecast: of what is left to do.
        caps: that hold.
        by_default: whether nobody has set the cap on dollars or tokens.
        before: what earlier starts of the run have spent; it counts towards the caps.
    """

    forecast: Forecast
    caps: BudgetConfig
    by_default: bool
    before: Spending


@dataclass(frozen=True)
class RunInProgress:
    """A run whose search begins.

    Attributes:
        config: as it is recorded.
        problems: in the order in which they are searched.
        facts: of the device.
        finished_before: how many problems an earlier start has finished; their results are shown, not searched for.
        spending: by this start, now.
        costs: what it may cost and which cap holds, told beforehand; None where nothing is charged.
        seconds_left: wall seconds until the run's cap, earlier starts included; None for no cap.
    """

    config: RunConfig
    problems: Sequence[Problem]
    facts: DeviceFacts
    finished_before: int
    spending: Callable[[], Spending]
    seconds_left: Callable[[], float | None]
    costs: ExpectedCosts | None = None


class RunObserver:
    """Ignores everything it is told. Override what you want to know.

    `emit` is called from the event loop's thread, `tell` from any thread; neither may block for long.
    """

    def tell(self, stage: str) -> None:
        """The stage that begins now, in a few words."""

    def chosen(self, choices: RunChoices) -> None:
        """Device and model are chosen."""

    def searching(self, run: RunInProgress) -> AbstractContextManager[object]:
        """The search begins; it ends when the context manager that this returns is left."""
        return nullcontext()

    def cut_off(self, report: Path | None) -> None:
        """Something has ended the search, and is about to be raised.

        Args:
            report: page of what was found until then; None when it could not be written.
        """

    def emit(self, event: Event) -> None:
        """A step of the search; see `kernelblaster.agent.events`."""


class Callbacks(RunObserver):
    """An observer made of functions.

    Args:
        on_event: gets each event.
        on_stage: gets a few words on what is being done.
    """

    def __init__(
        self, on_event: Callable[[Event], object] | None = None, on_stage: Callable[[str], object] | None = None
    ) -> None:
        self._on_event = on_event
        self._on_stage = on_stage

    def tell(self, stage: str) -> None:
        """Pass it on."""
        if self._on_stage is not None:
            self._on_stage(stage)

    def emit(self, event: Event) -> None:
        """Pass it on."""
        if self._on_event is not None:
            self._on_event(event)
