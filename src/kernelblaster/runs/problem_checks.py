"""Judges the starting kernel of many problems, in several precisions and sizes: a sweep that resumes where it stopped.

Each outcome is one line of a JSONL file, written as soon as it is known. Its digest covers everything that the outcome
depends on and that somebody edits (reference, harness, starting kernel with the shared pieces it uses), so that an
unchanged problem is not judged again. Kernels are compiled, and sizes planned, on several threads ahead of the one
that judges.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import BuildFailure
from kernelblaster.errors import DeviceMemoryFull, MachineError, ProblemError
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.start import read_start
from kernelblaster.runs.choices import choose_device, watched
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line

if TYPE_CHECKING:
    from kernelblaster.devices.base import Device
    from kernelblaster.evaluation.evaluator import Evaluator

PATIENCE_S = 600.0
"""Of one request to a start, at least: naive convolutions and recurrent networks take seconds a call at full size."""
PROBLEM_FAULT = "problem_error"
"""Stands for the verdict where the problem itself, not its kernel, is at fault."""
MEMORY_FULL = "memory_full"
"""Stands for the verdict where the GPU's memory does not suffice. It is judged again at the next call."""


class CheckRecord(BaseModel):
    """How the starting kernel of a problem was judged once.

    Times are in microseconds, of the whole call with a cold L2; None where it is not correct.
    """

    problem: str
    name: str
    precision: Precision
    workload: str
    device: str
    device_kind: DeviceKind
    digest: str
    """Of the problem's files, as they were judged."""
    verdict: str
    """A `Verdict`, `problem_error` or `memory_full`."""
    reason: str = ""
    median_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    floor_us: float | None = None
    modelled: bool | None = None
    budget_ratio: float | None = None
    """Worst error over its budget, of all input sets; at most 1 for a correct kernel."""
    isolation: str | None = None
    seconds: float
    """Wall time of the judgement, compilation included where nothing was compiled ahead."""
    at: float
    """Unix time."""

    @property
    def title(self) -> str:
        """`level1/023 Softmax`; of a problem of one's own its name."""
        return self.name if self.problem == self.name else f"{self.problem} {self.name}"

    @property
    def passed(self) -> bool:
        """Whether the kernel was correct."""
        return self.verdict == Verdict.CORRECT

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What it is the outcome of: problem, precision, workload, device, digest."""
        return (self.problem, self.precision, self.workload, f"{self.device_kind} {self.device}", self.digest)


@dataclass(frozen=True)
class CheckPlan:
    """What is judged.

    Attributes:
        problems: in this order.
        precisions, workloads: each problem in each of these precisions at each of these sizes that it declares.
        jobs: kernels compiled at once, ahead of their turn.
        minutes: after this no further problem is begun; None for no limit.
        again: judge also what has an outcome.
    """

    problems: Sequence[Problem]
    precisions: Sequence[Precision]
    workloads: Sequence[str]
    jobs: int = 1
    minutes: float | None = None
    again: bool = False


@dataclass(frozen=True)
class _Item:
    problem: Problem
    precision: Precision
    workload: str
    source: str
    digest: str


def read_checks(path: Path) -> list[CheckRecord]:
    """The newest outcome of each problem, precision, workload and device. Raises MachineError for a damaged file."""
    if not path.exists():
        return []
    newest: dict[tuple[str, ...], CheckRecord] = {}
    for line in complete_lines(path.read_bytes()):
        try:
            record = CheckRecord.model_validate_json(line.data)
        except ValidationError as error:
            raise MachineError(f"line {line.number} of {path} is no outcome", hint="remove the line") from error
        newest.pop(record.key[:4], None)
        newest[record.key[:4]] = record
    return list(newest.values())


def check_problems(
    plan: CheckPlan, config: RunConfig, records: Path, tell: Callable[[str], object]
) -> Iterator[CheckRecord]:
    """Judge what has no outcome in `records` yet, append each outcome there, and yield all of the plan's, old and new.

    Raises UsageError, DeviceError, MachineError; a fault of one problem is an outcome.
    """
    patient = {"timeout_s": max(config.evaluation.timeout_s, PATIENCE_S)}
    config = config.model_copy(update={"evaluation": config.evaluation.model_copy(update=patient)})
    cut_torn_line(records)
    device = watched(choose_device(config, tell).device, config, tell)
    known = {record.key: record for record in read_checks(records)}
    place = f"{device.facts.kind} {device.facts.name}"
    open_items: list[_Item] = []
    for item in _items(plan):
        found = known.get((str(item.problem.id), item.precision, item.workload, place, item.digest))
        if found is not None and found.verdict != MEMORY_FULL and not plan.again:
            yield found
        else:
            open_items.append(item)
    for record in _judged(open_items, plan, device, config, tell):
        append_line(records, record.model_dump_json().encode())
        yield record


def _items(plan: CheckPlan) -> Iterator[_Item]:
    for workload in plan.workloads:
        for precision in plan.precisions:
            for problem in plan.problems:
                judged = workload in problem.workloads and precision in problem.precisions
                if judged and not problem.weakly_verified:
                    source = read_start(problem)
                    yield _Item(problem, precision, workload, source, problem_digest(problem, source))


def problem_digest(problem: Problem, source: str) -> str:
    """Of reference, harness and a kernel."""
    state = hashlib.sha256()
    for data in (problem.reference_path.read_bytes(), problem.driver_path.read_bytes(), source.encode()):
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:16]


def _judged(
    items: Sequence[_Item], plan: CheckPlan, device: Device, config: RunConfig, tell: Callable[[str], object]
) -> Iterator[CheckRecord]:
    """Outcomes of items, until time is up."""
    from kernelblaster.evaluation.correctness.input_store import InputStore
    from kernelblaster.evaluation.evaluator import Evaluator

    deadline = None if plan.minutes is None else time.monotonic() + 60 * plan.minutes
    with ThreadPoolExecutor(plan.jobs, thread_name_prefix="build") as threads, InputStore() as inputs:
        building: dict[tuple[str, Precision], Future[None]] = {}
        planning: list[Future[Evaluator]] = []
        for item in items:
            key = (item.digest, item.precision)
            if key not in building:
                building[key] = threads.submit(_build, device, item)
            judge = Evaluator(
                device, inputs, config.evaluation, item.workload, config.libraries, precision=item.precision
            )
            planning.append(threads.submit(_plan, judge, item))
        try:
            for number, item in enumerate(items, start=1):
                if deadline is not None and time.monotonic() > deadline:
                    return
                tell(f"{item.problem.id} {item.precision} {item.workload} ({number} of {len(items)})")
                building[item.digest, item.precision].result()
                judge = planning[number - 1].result()
                began = time.monotonic()
                outcome = _outcome(item, judge, began)
                if problem_digest(item.problem, read_start(item.problem)) == item.digest:
                    yield outcome  # else somebody has edited the problem meanwhile
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _build(device: Device, item: _Item) -> None:
    """Fill the cache of builds. What fails here fails again when it is judged, which says why."""
    with suppress(BuildFailure, ProblemError):
        device.build(item.source, device.prepare(item.problem, item.precision))


def _plan(judge: Evaluator, item: _Item) -> Evaluator:
    """Find out what the judge needs to know of a problem before it draws. What fails here fails again, as above."""
    with suppress(ProblemError):
        judge.plan(item.problem)
        judge.floor_us(item.problem)
    return judge


def _outcome(item: _Item, judge: Evaluator, began: float) -> CheckRecord:
    facts = judge.facts
    found: Evaluation | None = None
    verdict = fault = ""
    try:
        found = judge.evaluate(item.problem, item.source, profile=False)
    except (ProblemError, DeviceMemoryFull) as error:
        verdict = PROBLEM_FAULT if isinstance(error, ProblemError) else MEMORY_FULL
        fault = error.message
    timing = found.timing if found is not None and found.correct else None
    return CheckRecord(
        problem=str(item.problem.id),
        name=item.problem.name,
        precision=item.precision,
        workload=item.workload,
        device=facts.name,
        device_kind=facts.kind,
        digest=item.digest,
        verdict=found.verdict if found is not None else verdict,
        reason=found.reason if found is not None else fault,
        median_us=timing.median_us if timing else None,
        low_us=timing.low_us if timing else None,
        high_us=timing.high_us if timing else None,
        floor_us=timing.floor_us if timing else None,
        modelled=timing.modelled if timing else None,
        budget_ratio=max((error.budget_ratio for error in found.errors), default=None) if found else None,
        isolation=found.isolation if found is not None else None,
        seconds=time.monotonic() - began,
        at=time.time(),
    )
