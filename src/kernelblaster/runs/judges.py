"""What judges the candidates of a run: an evaluator in this process, or several in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from kernelblaster.agent.context import CandidateEvaluator
from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.errors import DeviceMemoryFull, ProblemError, UsageError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.inputs.perturbations import CHECKED
from kernelblaster.evaluation.inputs.plan import secret_seed
from kernelblaster.evaluation.inputs.scratch import free_host_memory, free_space
from kernelblaster.evaluation.results import Evaluation, SweepTimes
from kernelblaster.evaluation.stage_clock import StageClock
from kernelblaster.problems.problem import Problem
from kernelblaster.records.run_record import RunRecord
from kernelblaster.runs.check_room import CheckRoom, Room, reference_turn
from kernelblaster.runs.choices import choose_device, watched, workload_in
from kernelblaster.runs.evaluations import configured_evaluator
from kernelblaster.runs.judging_processes import JudgingProcesses

_REFERENCE_SHARE = 0.25
"""Of the memory that is free, what references of all processes may take."""
_LEAST_JOBS = 2
"""Compiles at once of a process that judges, at least."""
_REFERENCES = "references"
"""The stage in which a problem's inputs are drawn and its references computed, or waited for."""
_AT_ONCE = 3
"""Processes of candidates with the timed tensors: the candidate, its baseline, the one under a profiler."""


def refuse_given_device(config: RunConfig) -> None:
    """Raise UsageError where processes are to judge on a device that only this one has."""
    if config.evaluation.processes > 1 or config.evaluation.gpus:
        raise UsageError(
            "processes of their own cannot judge on a device that was given to this one",
            hint="name a registered device, or leave evaluation.processes at 1 and evaluation.gpus empty",
        )


@contextmanager
def opened_judge(record: RunRecord, device: Device, tell: Callable[[str], object]) -> Iterator[CandidateEvaluator]:
    """What judges in a run, as its configuration has it.

    Args:
        record: of this start.
        device: that was chosen.
        tell: told what takes time.

    Raises UsageError for an unknown profiler, and for GPUs that no process judges on.
    """
    config, workload, facts = record.config, record.workload, device.facts
    _check_gpus(config.evaluation, device.facts.kind)
    if config.evaluation.processes == 1 and not config.evaluation.gpus:
        with InputStore(tell=tell) as inputs:
            yield configured_evaluator(config, workload, watched(device, config, tell), inputs, secret_seed())
        return
    count = config.evaluation.processes
    jobs = config.evaluation.compile_jobs or max(_LEAST_JOBS, (os.cpu_count() or 1) // count)
    settings = config.evaluation.model_copy(update={"compile_jobs": jobs})
    own = config.model_copy(update={"evaluation": settings}).model_dump_json()
    opens = partial(_own_judge, own, workload, secret_seed(), int(_REFERENCE_SHARE * free_host_memory() / count))

    gpus = config.evaluation.gpus
    space = Room(lambda: free_space() // max(1, len(gpus)))
    room = CheckRoom(device.facts, CHECKED, space=space, processes=_AT_ONCE)

    def holds(problems: Sequence[Problem]) -> bool:
        sizes = [(one, workload_in(config, workload, facts, one)) for one in problems]
        return room.holds([room.need(one, size, one.precision_for(config.precision)) for one, size in sizes])

    with JudgingProcesses(device, opens, count, holds, tell, gpus) as processes:
        yield processes


def _check_gpus(given: EvaluationConfig, kind: DeviceKind) -> None:
    """Raise UsageError where a GPU is named that would judge nothing."""
    if given.gpus and kind is not DeviceKind.CUDA:
        raise UsageError("evaluation.gpus names GPUs, and the device is not one", hint="leave it out, or --device cuda")
    if len(given.gpus) > given.processes:
        raise UsageError(
            f"{len(given.gpus)} GPUs are named for {given.processes} judging processes",
            hint=f"set evaluation.processes to {len(given.gpus)} or more, and evaluation.in_company",
        )


@contextmanager
def _own_judge(config: str, workload: str, seed: int, reference_bytes: int) -> Iterator[CandidateEvaluator]:
    """An evaluator of a process that judges for another; the configuration is JSON."""
    given = RunConfig.model_validate_json(config)
    device = watched(choose_device(given, _silent).device, given, _silent)
    with InputStore(reference_bytes=reference_bytes) as inputs:
        yield _JudgeBesideOthers(configured_evaluator(given, workload, device, inputs, seed))


@dataclass(frozen=True)
class _JudgeBesideOthers:
    """An evaluator that computes large references while no other process does, as `CheckRoom` takes for granted."""

    inner: Evaluator

    @property
    def device(self) -> Device:
        return self.inner.device

    def evaluate(
        self, problem: Problem, source: str, *, baseline: str | None, profile: bool, process_pairs: int
    ) -> Evaluation:
        seconds = self._compute_references(problem)
        found = self.inner.evaluate(problem, source, baseline=baseline, profile=profile, process_pairs=process_pairs)
        found.seconds.update(seconds)
        return found

    def sweep(self, problem: Problem, sources: Sequence[str]) -> SweepTimes:
        seconds = self._compute_references(problem)
        found = self.inner.sweep(problem, sources)
        found.seconds.update(seconds)
        return found

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        return self.inner.sanitize(problem, source)

    def _compute_references(self, problem: Problem) -> dict[str, float]:
        """Seconds by stage that this took, with those of others' turns. What fails says so again where it is needed."""
        if problem.weakly_verified:
            return {}
        clock = StageClock({})
        judge = self.inner
        need = CheckRoom(judge.facts, CHECKED).need(problem, judge.workload_of(problem), judge.precision_of(problem))
        with clock.stage(_REFERENCES), suppress(ProblemError, DeviceMemoryFull), reference_turn(need, judge.facts):
            judge.checks(problem)
        return clock.seconds


def _silent(stage: str) -> None:
    """Whoever judges beside others says nothing."""
