"""Runs many problems side by side: one graph each, shared model, device, knowledge base and budgets."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kernelblaster.agent.context import CandidateEvaluator, Concurrency, ProblemContext
from kernelblaster.agent.events import EventSink
from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import OutcomeStatus, ProblemOutcome
from kernelblaster.config import RunConfig, SearchConfig, SearchPart
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import BudgetExceeded, DeviceError, ModelError
from kernelblaster.knowledge.experience import Experience
from kernelblaster.models.base import ChatModel
from kernelblaster.models.recorded import RecordedModel
from kernelblaster.problems.families import OpFamily, family_of, family_of_driver
from kernelblaster.problems.problem import Problem, TensorSpec
from kernelblaster.problems.reference import tensor_specs
from kernelblaster.problems.undeclared_extents import undeclared_extents
from kernelblaster.problems.varied_parameters import fixed_parameters
from kernelblaster.records.journal import Journal
from kernelblaster.records.layout import JOURNAL, OUTCOME, RunLayout
from kernelblaster.records.rows import read_outcome, row_of
from kernelblaster.records.searches import open_search
from kernelblaster.records.summary import ProblemSummary
from kernelblaster.runs.choices import workload_in
from kernelblaster.storage.atomic import write_atomically


@dataclass(frozen=True)
class RunParts:
    """What all problems of a run share."""

    run: str
    config: RunConfig
    workload: str
    layout: RunLayout
    evaluator: CandidateEvaluator
    model: ChatModel
    experience: Experience
    watchers: tuple[EventSink, ...]
    recorded: RecordedModel | None = None
    """The recording that answers in a model's place; None where a model is asked."""

    def archive(self, problem: Problem) -> bool:
        """Whether a search that begins now hands out replies from an archive: not if chains alone were recorded."""
        recorded = self.recorded is None or self.recorded.of_archive(str(problem.id))
        return recorded and self.config.search.has(SearchPart.ARCHIVE)

    def search_config(self, problem: Problem) -> SearchConfig:
        """With no more replies at once than a recording has."""
        search, width = self.config.search, self.recorded.width(str(problem.id)) if self.recorded else None
        return search.model_copy(update={"rollouts": min(search.rollouts, width)}) if width else search


async def execute(parts: RunParts, problems: Sequence[Problem]) -> tuple[list[ProblemSummary], str | None]:
    """Search every problem; returns one summary each, and why the run ended early if it did.

    A problem whose evaluation fails for reasons of the machine, or a model that refuses, stops the run:
    what the other problems have reached stays on disk and the same command continues. Raises ModelError, DeviceError.
    """
    slots = asyncio.Semaphore(parts.config.concurrency)
    limits = Concurrency(evaluations=asyncio.Semaphore(parts.config.evaluation.concurrency or os.cpu_count() or 1))
    deadline = time.monotonic() + parts.config.budget.minutes * 60 if parts.config.budget.minutes else None

    async def one(problem: Problem) -> ProblemSummary:
        async with slots:
            return await _search(parts, problem, limits, deadline)

    tasks = [asyncio.create_task(one(problem), name=str(problem.id)) for problem in problems]
    try:
        return list(await asyncio.gather(*tasks)), None
    except BudgetExceeded as error:
        results = await _settle(tasks)
        return [results.get(str(p.id)) or _unfinished(parts, p, error.message) for p in problems], error.message
    except (ModelError, DeviceError):
        await _settle(tasks)
        raise


async def _settle(tasks: Sequence[asyncio.Task[ProblemSummary]]) -> dict[str, ProblemSummary]:
    """Cancel what still runs, and collect what had finished."""
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    return {
        task.get_name(): result
        for task, result in zip(tasks, results, strict=True)
        if isinstance(result, ProblemSummary)
    }


async def _search(parts: RunParts, problem: Problem, limits: Concurrency, run_deadline: float | None) -> ProblemSummary:
    directory = parts.layout.problem(problem)
    archive = parts.archive(problem)
    search = await asyncio.to_thread(partial(open_search, directory, problem, parts.run, archive=archive))
    known = finished_outcome(directory)
    if known is not None:
        return row_of(directory, known)
    own = time.monotonic() + parts.config.budget.problem_minutes * 60
    workload = workload_in(parts.config, parts.workload, parts.evaluator.device.facts, problem)
    specs = await asyncio.to_thread(_tensors, problem, parts, workload)
    fixed = await asyncio.to_thread(_fixed, problem)
    journal = Journal(directory / JOURNAL, parts.watchers)
    context = ProblemContext(
        run=search.name,
        problem=problem,
        op_family=_family(problem),
        precision=problem.precision_for(parts.config.precision),
        workload=workload,
        tensors=specs,
        config=parts.search_config(problem),
        evaluator=parts.evaluator,
        experience=parts.experience,
        model=parts.model,
        directory=directory,
        events=journal,
        limits=limits,
        libraries=parts.config.libraries,
        fixed_parameters=fixed,
        samples_blocks=_samples_blocks(parts),
        recording=parts.recorded.identity if parts.recorded else None,
        archive=search.archive,
        deadline=min(own, run_deadline) if run_deadline else own,
    )
    outcome = await run_problem(context)
    if outcome.status is not OutcomeStatus.WAITING:
        write_atomically(directory / OUTCOME, outcome.model_dump_json(indent=1))
    return row_of(directory, outcome)


def _samples_blocks(parts: RunParts) -> bool:
    """Whether large sizes are executed in part; the evaluator, which may be in other processes, does as configured."""
    emulated = parts.evaluator.device.facts.kind is DeviceKind.EMULATED
    return emulated and parts.config.evaluation.emulated_sample > 0


def _tensors(problem: Problem, parts: RunParts, workload: str) -> tuple[TensorSpec, ...]:
    """Tensors of the launcher; none are known of a weakly verified problem, whose driver makes its own."""
    if problem.weakly_verified:
        return ()
    return tensor_specs(problem, workload, problem.precision_for(parts.config.precision))


def _fixed(problem: Problem) -> tuple[str, ...]:
    """Parameters that no judged call varies; nothing is known of a weakly verified problem's."""
    return () if problem.weakly_verified else fixed_parameters(problem, undeclared_extents(problem))


def _family(problem: Problem) -> OpFamily:
    if problem.weakly_verified:
        return family_of_driver(problem.driver_path.read_text(encoding="utf-8", errors="replace"))
    return family_of(problem.reference_path)


def finished_outcome(directory: Path) -> ProblemOutcome | None:
    """The outcome of a search that ended for good; one that a budget cut off goes on instead. Raises UsageError."""
    outcome = read_outcome(directory)
    unfinished = outcome is None or outcome.status in (OutcomeStatus.BUDGET, OutcomeStatus.WAITING)
    return None if unfinished else outcome


def _unfinished(parts: RunParts, problem: Problem, reason: str) -> ProblemSummary:
    return ProblemSummary(
        problem=str(problem.id),
        name=problem.name,
        status=OutcomeStatus.BUDGET,
        reason=reason,
        directory=parts.layout.problem(problem),
    )
