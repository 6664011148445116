"""What all evaluations of one device, precision and workload share: configuration, inputs, facts about each problem.

Pipelines read it; `Evaluator` chooses the pipeline.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, TypeVar

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceFacts, DeviceKind, Library
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.attainable import Attainable, attainable
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.plan import InputPlan, plan_inputs, secret_seed
from kernelblaster.evaluation.integrity.timed_checks import TimedChecks, choose_checks
from kernelblaster.evaluation.roofline import floor_us
from kernelblaster.evaluation.timed_size import size_instead
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.undeclared_extents import undeclared_extents
from kernelblaster.problems.varied_parameters import draw_parameters
from kernelblaster.python_candidates.candidate import CudaSource, Record, as_cuda
from kernelblaster.python_candidates.recording import record

Value = TypeVar("Value")
Guarded = Callable[[AbstractContextManager[None]], AbstractContextManager[None]]


class _PerProblem:
    """Values that are computed once per problem. Threads that ask for one problem wait for each other, no others do."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, Problem], Any] = {}
        self._locks: defaultdict[tuple[str, Problem], threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def get(self, name: str, problem: Problem, compute: Callable[[], Value]) -> Value:
        """The value called `name` of a problem. Raises what `compute` raises, and then stores nothing."""
        key = (name, problem)
        with self._guard:
            lock = self._locks[key]
        with lock:
            if key not in self._values:
                self._values[key] = compute()
            value: Value = self._values[key]
            return value


class EvaluationContext:
    """How candidates are judged on one device, for one workload.

    Args:
        device: where candidates run.
        inputs: draws and keeps input sets; owned by the caller.
        config: how hard candidates are checked and timed.
        workload: name of the workload that is timed and profiled, see `workload_of`.
        libraries: libraries that candidates may link.
        precision: storage type of floating-point tensors of problems that are meant in it; see `precision_of`.
        seed: makes the input sets the same again; None draws a secret one.
        by_default: nobody asked for that workload by its name: a problem without it is judged at another of its own.
    """

    def __init__(
        self,
        device: Device,
        inputs: InputStore,
        config: EvaluationConfig,
        workload: str,
        libraries: Sequence[Library] = (),
        *,
        precision: Precision,
        seed: int | None = None,
        by_default: bool = False,
    ) -> None:
        self.device = device
        self.precision = precision
        self.workload = workload
        self._by_default = by_default
        self.seed = secret_seed() if seed is None else seed
        self.inputs = inputs
        self.config = config
        self.libraries = tuple(libraries)
        self.record: Record = record
        """Records candidates in Python; whoever judges many of them puts `WarmRecorders.record` here."""
        self._known = _PerProblem()

    @property
    def facts(self) -> DeviceFacts:
        """The device that candidates run on."""
        return self.device.facts

    @property
    def in_company(self) -> bool:
        """Whether candidates are verified beside others, as `EvaluationConfig.in_company` has it."""
        return self.config.in_company

    def precision_of(self, problem: Problem) -> Precision:
        """The precision in which candidates of a problem are judged here."""
        return problem.precision_for(self.precision)

    def workload_of(self, problem: Problem) -> str:
        """The workload at which candidates of a problem are timed here."""
        return size_instead(problem, self.workload, self.facts.kind) if self._by_default else self.workload

    def once(self, name: str, problem: Problem, compute: Callable[[], Value]) -> Value:
        """A value that a pipeline computes once per problem. Raises what `compute` raises."""
        return self._known.get(name, problem, compute)

    def plan(self, problem: Problem) -> InputPlan:
        """The input sets that every candidate of a problem must pass. Raises ProblemError."""
        sets, judged = self.config.input_sets, not self.samples_blocks
        other, drawn = self.once("undeclared", problem, lambda: self._others(problem) if sets > 1 else (None, None))
        return plan_inputs(
            problem,
            self.precision_of(problem),
            self.workload_of(problem),
            sets,
            self.seed,
            other,
            drawn,
            judge_timed=judged,
        )

    def _others(self, problem: Problem) -> tuple[Problem | None, Problem | None]:
        """The problem at extents that no prompt shows, and there with parameters that nobody can know."""
        self.inputs.tell(f"choosing extents of {problem.id} that no prompt shows")
        other = undeclared_extents(problem)
        return other, None if other is None else draw_parameters(problem, other, Random(f"{self.seed}/{problem.id}"))

    def cuda_source(self, problem: Problem, source: str) -> CudaSource:
        """What is built of a candidate; one in Python is recorded at the sizes of the plan.

        Raises BuildFailure, MachineError, ProblemError.
        """

        def sizes() -> list[tuple[Problem, str]]:
            plan = self.plan(problem)
            return [
                (key.problem, key.workload) for key in (*plan.small[:1], *(keys[0] for keys in plan.unseen), plan.timed)
            ]

        return as_cuda(source, sizes, self.precision_of(problem), self.facts, self.record)

    @property
    def instruction_budget(self) -> int:
        """Warp instructions of a launch that are enough where outputs are not judged, see `Job`."""
        return int(1e6 * self.config.emulated_sample)

    @property
    def samples_blocks(self) -> bool:
        """Whether a timed size other than `small` executes a sample of blocks; only an emulated device does that."""
        return self.facts.kind is DeviceKind.EMULATED and self.config.emulated_sample > 0

    def holding(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Exclusive use of a real GPU for a whole evaluation; entering tells whether it is held.

        Needed by nobody on an emulated device, nor in company.
        """
        free = self.in_company or self.facts.kind is DeviceKind.EMULATED
        return nullcontext(True) if free else self.device.exclusive(wait=wait)

    def verifying(self) -> AbstractContextManager[None]:
        """Guards what is verified, where the device is not held for the whole evaluation."""
        return self.device.shared() if self.in_company else nullcontext()

    def measuring(self) -> AbstractContextManager[object]:
        """Guards what is measured, where the device is not held for the whole evaluation."""
        return self.device.exclusive() if self.in_company else nullcontext()

    def counting(self) -> AbstractContextManager[None]:
        """Guards the device's counters, where it is not held for the whole evaluation. Entered before the others."""
        return self.device.counting() if self.in_company else nullcontext()

    def floor_us(self, problem: Problem) -> float:
        """Roofline floor of the timed size, in microseconds. Raises ProblemError."""
        precision = self.precision_of(problem)
        return self.once("floor", problem, lambda: floor_us(problem, self.workload_of(problem), precision, self.facts))

    def attainable(self, problem: Problem) -> Attainable:
        """What a well-written kernel is expected to reach at the timed size. Raises ProblemError."""
        precision = self.precision_of(problem)
        size = self.workload_of(problem)
        return self.once("attainable", problem, lambda: attainable(problem, size, precision, self.facts))

    def checks(self, problem: Problem, guarded: Guarded = lambda guard: guard) -> TimedChecks:
        """Draw a problem's input sets, and choose which timed calls are judged. Raises ProblemError and DeviceError.

        Drawing uses the device, and disturbs nobody but who measures on it; `guarded` is handed the guard against that.
        """
        return self.once("checks", problem, lambda: self._choose_checks(problem, guarded))

    def check_workload(self, problem: Problem) -> None:
        """Raise UsageError when a problem does not declare the timed workload."""
        size = self.workload_of(problem)
        if size not in problem.workloads:
            declared = ", ".join(problem.workloads)
            raise UsageError(f"{problem.slug} declares no size {size}", hint=f"choose among {declared}")

    def _choose_checks(self, problem: Problem, guarded: Guarded) -> TimedChecks:
        plan = self.plan(problem)
        with guarded(self.device.shared()):
            self.inputs.draw(plan.verified)
            config = self.config
            return choose_checks(
                self.inputs, plan.timed, self.facts, self.seed, config.error_factor, config.judged_calls
            )
