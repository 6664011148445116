"""Judges the starting kernel of many problems, in several precisions and sizes: a sweep that resumes where it stopped.

Each outcome is one line of a JSONL file, written as soon as it is known. Its digest covers everything that the outcome
depends on and that somebody edits (reference, harness, starting kernel with the shared pieces it uses), so that an
unchanged problem is not judged again. Several processes compile, draw inputs and verify beside each other; on a GPU one
at a time has it alone to measure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.failures import BuildFailure
from kernelblaster.errors import DeviceError, DeviceMemoryFull, ProblemError
from kernelblaster.evaluation.judge_version import judge_version
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.sound_reference import require_sound_reference
from kernelblaster.problems.start import read_start
from kernelblaster.runs.check_records import (
    LOST,
    MEMORY_FULL,
    PROBLEM_FAULT,
    CheckAgain,
    CheckRecord,
    problem_digest,
    read_checks,
)
from kernelblaster.runs.check_room import CheckRoom, reference_turn
from kernelblaster.runs.choices import choose_device, watched
from kernelblaster.runs.worker_pool import Pool, WorkerLost, WorkerPool, run_all
from kernelblaster.storage.jsonl import append_line, cut_torn_line

if TYPE_CHECKING:
    from kernelblaster.devices.base import Device
    from kernelblaster.evaluation.evaluator import Evaluator

PATIENCE_S = 600.0
"""Of one request to a start, at least: naive convolutions and recurrent networks take seconds a call at full size."""
JUDGED_CALLS = 1
"""Timed calls of a start that are judged: the project's own kernels leave no work out of single ones."""
SECONDS = 0.5
"""Of timing per start: naive kernels need no narrow interval, and each of them has the GPU alone meanwhile."""
_LIMIT_S = 1800.0
_UNBOUND = 1 << 60
"""What is drawn for one start stays until it is judged: `CheckRoom` bounds what all of them take."""
COMPILE, REFERENCES = "compile", "references"
"""Stages before an evaluation, beside those of `Evaluation.seconds`: compilation, and inputs with their references."""


@dataclass(frozen=True)
class CheckPlan:
    """What is judged.

    Attributes:
        problems: in this order; those without a starting kernel have no outcome.
        precisions, workloads: each problem in each of these precisions at each of these sizes that it declares.
        jobs: processes that judge; with one it is this one.
        minutes: after this no further problem is begun; None for no limit.
        seconds: of timing per start, at most; a slow one is timed for one call at least.
        again: what is judged although it has an outcome; None: what the state of the machine brought about, and what
            another version of the judge refused.
    """

    problems: Sequence[Problem]
    precisions: Sequence[Precision]
    workloads: Sequence[str]
    jobs: int = 1
    minutes: float | None = None
    seconds: float = SECONDS
    again: CheckAgain | None = None


@dataclass(frozen=True)
class CheckItem:
    """One judgement: of what, and with which configuration."""

    problem: Problem
    precision: Precision
    workload: str
    source: str
    digest: str
    config: RunConfig


@dataclass(frozen=True)
class InProcess:
    """Judges one item after the other in this process. Satisfies `Pool`."""

    device: Device

    def run(
        self, items: Iterable[CheckItem], may_start: Callable[[], bool]
    ) -> Iterator[tuple[CheckItem, CheckRecord | WorkerLost]]:
        """Each item with its record."""
        for item in items:
            if not may_start():
                return
            yield item, judge_on(self.device, item)


def check_problems(
    plan: CheckPlan, config: RunConfig, records: Path, tell: Callable[[str], object]
) -> Iterator[CheckRecord]:
    """Judge what has no outcome in `records` yet, append each outcome there, and yield all of the plan's, old and new.

    Raises UsageError, DeviceError, MachineError; a fault of one problem is an outcome.
    """
    patient = {
        "timeout_s": max(config.evaluation.timeout_s, PATIENCE_S),
        "max_seconds_timing": min(config.evaluation.max_seconds_timing, plan.seconds),
        "judged_calls": min(config.evaluation.judged_calls, JUDGED_CALLS),
        "in_company": True,
    }
    config = config.model_copy(update={"evaluation": config.evaluation.model_copy(update=patient)})
    known = {record.key: record for record in read_checks(records)}
    cut_torn_line(records)
    device = watched(choose_device(config, tell).device, config, tell)
    place = f"{device.facts.kind} {device.facts.name}"
    open_items: list[CheckItem] = []
    for item in _items(plan, config):
        found = known.get((str(item.problem.id), item.precision, item.workload, place, item.digest))
        if found is not None and found.settled(judge_version(), plan.again):
            yield found
        else:
            open_items.append(item)
    for record in _judged(open_items, plan, device, tell):
        append_line(records, record.model_dump_json().encode())
        yield record


def _items(plan: CheckPlan, config: RunConfig) -> Iterator[CheckItem]:
    for workload in plan.workloads:
        for precision in plan.precisions:
            for problem in plan.problems:
                judged = workload in problem.workloads and precision in problem.precisions
                if judged and problem.has_start and not problem.weakly_verified:
                    source = read_start(problem)
                    yield CheckItem(problem, precision, workload, source, problem_digest(problem, source), config)


def _judged(
    items: Sequence[CheckItem], plan: CheckPlan, device: Device, tell: Callable[[str], object]
) -> Iterator[CheckRecord]:
    """Outcomes of items, until time is up; of several at once the largest first, for small ones fit in beside them."""
    room = CheckRoom(device.facts, JUDGED_CALLS)
    needs = {id(item): room.need(item.problem, item.workload, item.precision) for item in items if plan.jobs > 1}
    tell(f"judging {len(items)} starts")

    def pool(jobs: int) -> Pool[CheckItem, CheckRecord | WorkerLost]:
        if plan.jobs == 1:
            return InProcess(device)
        return WorkerPool(judge_item, jobs, _LIMIT_S, lambda some: room.holds([needs[id(item)] for item in some]))

    def again_alone(found: CheckRecord | WorkerLost) -> bool:
        if isinstance(found, WorkerLost):
            return plan.jobs > 1 and not found.late
        return plan.jobs > 1 and found.verdict == MEMORY_FULL

    ordered = sorted(items, key=lambda item: needs[id(item)].most, reverse=True) if plan.jobs > 1 else items
    results = run_all(ordered, pool, jobs=plan.jobs, minutes=plan.minutes, again_alone=again_alone)
    for done, (item, found) in enumerate(results, 1):
        tell(f"{item.problem.id} {item.precision} {item.workload} ({done} of {len(items)})")
        if problem_digest(item.problem, read_start(item.problem)) == item.digest:  # else it was edited meanwhile
            yield _lost(item, device.facts, found) if isinstance(found, WorkerLost) else found


def judge_item(item: CheckItem) -> CheckRecord | WorkerLost:
    """Judge one start on the device that its configuration names; called in a process of its own."""
    return judge_on(_device(item.config.model_dump_json()), item)


def judge_on(device: Device, item: CheckItem) -> CheckRecord | WorkerLost:
    """Judge one start."""
    from kernelblaster.evaluation.correctness.input_store import InputStore
    from kernelblaster.evaluation.evaluator import Evaluator

    try:
        began = time.monotonic()
        with suppress(BuildFailure, ProblemError):  # fills the cache of builds; says why when it is judged
            device.build(item.source, device.prepare(item.problem, item.precision))
        compiled = time.monotonic()
        with InputStore(file_bytes=_UNBOUND, reference_bytes=_UNBOUND) as inputs:
            settings = item.config.evaluation
            judge = Evaluator(device, inputs, settings, item.workload, item.config.libraries, precision=item.precision)
            with suppress(ProblemError, DeviceMemoryFull):  # says why when it is judged
                _compute_references(item, judge)
            early = {COMPILE: compiled - began, REFERENCES: time.monotonic() - compiled}
            return _outcome(item, judge, early)
    except DeviceError as error:
        return WorkerLost(error.message)


def _compute_references(item: CheckItem, judge: Evaluator) -> None:
    """Draw the inputs and compute the references, large ones one at a time. Raises ProblemError and DeviceError."""
    need = CheckRoom(judge.facts, JUDGED_CALLS).need(item.problem, item.workload, item.precision)
    with reference_turn(need, judge.facts):
        judge.checks(item.problem)


@cache
def _device(config: str) -> Device:
    """Of a configuration as JSON, once per process."""
    chosen = RunConfig.model_validate_json(config)
    return watched(choose_device(chosen, _silent).device, chosen, _silent)


def _silent(stage: str) -> None:
    """Whoever judges beside others says nothing."""


def _lost(item: CheckItem, facts: DeviceFacts, lost: WorkerLost) -> CheckRecord:
    return CheckRecord(
        problem=str(item.problem.id),
        name=item.problem.name,
        precision=item.precision,
        workload=item.workload,
        device=facts.name,
        device_kind=facts.kind,
        digest=item.digest,
        verdict=LOST,
        reason=lost.reason,
        judge=judge_version(),
        seconds=0.0,
        at=time.time(),
    )


def _outcome(item: CheckItem, judge: Evaluator, early: Mapping[str, float]) -> CheckRecord:
    """What the judge finds; `early` are the seconds of the stages that have passed."""
    began = time.monotonic()
    facts = judge.facts
    found: Evaluation | None = None
    verdict = fault = hint = ""
    try:
        require_sound_reference(item.problem)
        found = judge.evaluate(item.problem, item.source, profile=False)
    except (ProblemError, DeviceMemoryFull) as error:
        verdict = PROBLEM_FAULT if isinstance(error, ProblemError) else MEMORY_FULL
        fault, hint = error.message, error.hint
    stages = {**early, **(found.seconds if found is not None else {})}
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
        hint=hint,
        median_us=timing.median_us if timing else None,
        low_us=timing.low_us if timing else None,
        high_us=timing.high_us if timing else None,
        floor_us=timing.floor_us if timing else None,
        attainable_us=timing.attainable_us if timing else None,
        modelled=timing.modelled if timing else None,
        budget_ratio=max((error.budget_ratio for error in found.errors), default=None) if found else None,
        isolation=found.isolation if found is not None else None,
        judge=judge_version(),
        stages={name: round(seconds, 2) for name, seconds in stages.items()},
        warnings=found.warnings if found is not None else [],
        seconds=time.monotonic() - began + sum(early.values()),
        at=time.time(),
    )
