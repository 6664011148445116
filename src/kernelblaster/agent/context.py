"""What the nodes of one problem's search are given: the problem, the layers below, and limits.

The context is handed to every node by the graph and is never saved: after a kill it is built anew.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from kernelblaster.agent.events import Event, EventSink
from kernelblaster.agent.files import ProblemFiles
from kernelblaster.agent.shared_notes import SharedNotes
from kernelblaster.config import SearchConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceFacts, Library
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.errors import BudgetExceeded
from kernelblaster.evaluation.results import Evaluation, SweepTimes
from kernelblaster.evaluation.timing.pytorch_times import times_on
from kernelblaster.knowledge.experience import Experience
from kernelblaster.models.base import ChatModel
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision, Problem, TensorSpec


class CandidateEvaluator(Protocol):
    """Judges candidates. Blocking: the workflow calls it in threads. A bad candidate is a verdict, not an error."""

    @property
    def device(self) -> Device:
        """Where candidates run."""
        ...

    def evaluate(
        self, problem: Problem, source: str, *, baseline: str | None, profile: bool, process_pairs: int
    ) -> Evaluation:
        """Build, verify, measure against `baseline` in so many pairs of processes, and profile. Raises DeviceError."""
        ...

    def sweep(self, problem: Problem, sources: Sequence[str]) -> SweepTimes:
        """Time variants of a candidate against each other, in the order given. Raises DeviceError."""
        ...

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        """Run the sanitizers that the device has on a correct candidate. Raises DeviceError."""
        ...


@dataclass(frozen=True)
class Concurrency:
    """Shared by all problems of a run. `evaluations` bounds the candidates judged at once."""

    evaluations: asyncio.Semaphore


@dataclass(frozen=True)
class ProblemContext:
    """Everything one problem's search works with.

    Attributes:
        run: unique name of this search; with a slot it identifies a transition.
        problem: what is optimised.
        op_family: its operator family, the key under which experience generalises.
        precision: storage type of its floating-point tensors.
        workload: name of the workload that is timed and profiled.
        tensors: every tensor of the launcher for that workload.
        libraries: libraries a candidate may link.
        fixed_parameters: names of parameters and scalars that no judged call varies.
        samples_blocks: as in `Task`.
        config: width, depth and patience.
        evaluator: judges candidates.
        experience: what the experiment has learned: knowledge base and transitions.
        model: writes candidates.
        recording: identity of the recording that answers in a model's place; None where a model is asked.
        directory: where the search of this problem keeps its files.
        events: told what happens.
        limits: shared with the other problems of the run.
        deadline: `time.monotonic()` after which no step starts; None for no limit.
        archive: whether replies are handed out from an archive; otherwise rollouts are chains of steps.
    """

    run: str
    problem: Problem
    op_family: OpFamily
    precision: Precision
    workload: str
    tensors: tuple[TensorSpec, ...]
    config: SearchConfig
    evaluator: CandidateEvaluator
    experience: Experience
    model: ChatModel
    directory: Path
    events: EventSink
    limits: Concurrency
    libraries: tuple[Library, ...] = ()
    fixed_parameters: tuple[str, ...] = ()
    samples_blocks: bool = False
    recording: str | None = None
    deadline: float | None = None
    archive: bool = False
    notes: SharedNotes = field(default_factory=SharedNotes, repr=False)
    """What its rollouts tell each other; not used where a recording answers, which cannot heed it."""
    _flights: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary, repr=False)
    """Locks live as long as somebody holds or awaits them."""

    @cached_property
    def files(self) -> ProblemFiles:
        """Candidates, evaluations and replies."""
        return ProblemFiles(self.directory)

    @property
    def facts(self) -> DeviceFacts:
        """The device that candidates run on."""
        return self.evaluator.device.facts

    @cached_property
    def pytorch_us(self) -> dict[str, float]:
        """PyTorch's times on this very GPU by mode, in microseconds; empty where nobody has measured them."""
        known = times_on(self.facts, self.problem, self.precision, self.workload)
        return {} if known is None else {mode: time.us for mode, time in known.times.items()}

    def nothing_left(self, headroom: float | None, attainable_us: float | None) -> bool:
        """Whether a kernel is so near the attainable time that no reply should be spent on it.

        The attainable time is an estimate: while PyTorch is faster, there is something left.

        Args:
            headroom: time of the kernel over the attainable time; None where that is not known.
            attainable_us: the attainable time.
        """
        if headroom is None or attainable_us is None:
            return False
        slower = headroom * attainable_us > min(self.pytorch_us.values(), default=math.inf)
        return headroom < self.config.least_headroom and not slower

    def emit(self, event: Event) -> None:
        """Tell the outside."""
        self.events.emit(event)

    def flight(self, key: str) -> asyncio.Lock:
        """The lock under which one evaluation is made, so that two rollouts never make the same one twice."""
        return self._flights.setdefault(key, asyncio.Lock())

    def check_time(self) -> None:
        """Raise BudgetExceeded when the problem's wall time is over."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise BudgetExceeded(
                f"the wall time of problem {self.problem.id} is over", hint="raise --timeout and start again"
            )
