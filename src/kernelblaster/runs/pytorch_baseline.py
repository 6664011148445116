"""PyTorch beside our kernels: eager, torch.compile in its modes, start and final, sampled in turns in one run.

All by one rule (`evaluation.timing.round_robin`): launches are hidden for everybody, wall time is a column of its own.
Each kernel is timed on values that change from call to call, and judged on some of these; a wrong one has no time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.base import Device, Session
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.failures import BuildFailure, RunFailure
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.correctness.verify import Verification, Verifier
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.plan import secret_seed
from kernelblaster.evaluation.integrity.timed_checks import TimedChecks, choose_checks
from kernelblaster.evaluation.processes.timed_pair import KeptCall
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.evaluation.results import Conditions, Timing, Verdict
from kernelblaster.evaluation.roofline import floor_us
from kernelblaster.evaluation.timing.conditions import Readings
from kernelblaster.evaluation.timing.pytorch_times import torch_settings
from kernelblaster.evaluation.timing.round_robin import Participant, RoundRobin
from kernelblaster.evaluation.timing.statistics import (
    SampleBlock,
    between_processes,
    median_interval,
    quartile_range,
    speedup_interval,
)
from kernelblaster.evaluation.timing.stopwatch import Timeable
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.evaluation.timing.torch_session import TorchSession
from kernelblaster.problems.problem import Precision, Problem, TensorRole
from kernelblaster.records.baselines import BaselineRow, LaunchCover, Ratio, WallTime

if TYPE_CHECKING:
    import torch

START = "start"
FINAL = "final"
TORCH_MODES = tuple(TorchMode)


@dataclass(frozen=True)
class BaselinePlan:
    """What is timed.

    Attributes:
        kernels: implementation -> source; `start` and, where a search found one, `final`.
        modes: how PyTorch runs.
        seconds: wall time of the sampling, all implementations together.
        timeout_s: of one request to a kernel's process.
        seed: of the inputs.
    """

    kernels: Mapping[str, str]
    modes: Sequence[TorchMode] = TORCH_MODES
    seconds: float = 6.0
    timeout_s: float = 120.0
    seed: int = 0


def measure_baseline(
    problem: Problem, precision: Precision, workload: str, device: Device, inputs: InputStore, plan: BaselinePlan
) -> BaselineRow:
    """Time all implementations in turns. Raises UsageError on a modelled device, DeviceError."""
    import torch

    if device.facts.kind is not DeviceKind.CUDA:
        raise UsageError("PyTorch is timed on a real GPU only", hint="run this on a machine with a GPU")
    failures: dict[str, str] = {}
    verifier = Verifier(device, inputs, EvaluationConfig().error_factor, plan.timeout_s)
    key = InputKey(problem, precision, workload, (Distribution.DECLARED,), seed=plan.seed)
    with inputs.use(key) as drawn, device.exclusive(), ExitStack() as stack:
        kernels = _open_kernels(plan, problem, precision, verifier, drawn, stack, failures)
        sessions: dict[str, Timeable] = {name: kernel.session for name, kernel in kernels.items()}
        for mode in plan.modes:
            sessions |= _torch_session(mode, drawn, device.facts, stack, failures)
        checks = choose_checks(inputs, key, device.facts, secret_seed(), verifier.factor)
        entries = {name: Participant(session) for name, session in sessions.items()}
        readings = Readings(device.reading, time.monotonic)
        round_robin = RoundRobin(entries, device.facts, checks.schedule(), readings)
        round_robin.run(plan.seconds)
        for name, kernel in kernels.items():
            found = _judge(kernel, checks, verifier)
            if found.verdict is not Verdict.CORRECT:
                failures[name] = f"{found.verdict}: {found.reason}"
                del entries[name]
    floor = floor_us(problem, workload, precision, device.facts)
    final = entries.get(FINAL)
    return BaselineRow(
        problem=str(problem.id),
        name=problem.name,
        precision=precision,
        workload=workload,
        device=device.facts,
        torch=torch.__version__,
        timings={name: _timing(entry.cycles, floor, readings.summary()) for name, entry in entries.items()},
        final_against={name: _ratio(final.cycles, entry.cycles) for name, entry in entries.items() if name != FINAL}
        if final
        else {},
        failures=failures,
        walls={name: _wall(entry.walls_us) for name, entry in entries.items() if entry.walls_us},
        cover=LaunchCover(
            cover_us=round_robin.cover_us,
            launch_us={name: entry.launch_us for name, entry in entries.items() if entry.launch_us is not None},
            exposed={name: entry.exposed for name, entry in entries.items()},
        ),
        settings=torch_settings(),
    )


@dataclass(frozen=True)
class _OpenKernel:
    """A kernel's running process, its files and its inputs. Satisfies `checks.TimedCalls`."""

    session: Session
    workspace: Workspace
    drawn: InputSet
    kept: list[KeptCall] = field(default_factory=list)

    def look(self, perturbation: int) -> None:
        """Keep what the last call, of this perturbation, left. Raises RunFailure."""
        self.kept.append(KeptCall(perturbation, self.session.fetch(), self.workspace.keep_outputs()))


def _judge(kernel: _OpenKernel, checks: TimedChecks, verifier: Verifier) -> Verification:
    """Judge timed calls after the measured ones, as many as the checks ask for."""
    found = Verification()
    try:
        for perturbation in checks.perturbations:
            kernel.session.time_calls([perturbation])
            kernel.look(perturbation)
        checks.finish(kernel)
        return checks.judge(verifier, kernel)
    except RunFailure as failure:
        found.refuse(Verdict(failure.kind.value), failure.reason, failure.log)
    return found


def _open_kernels(
    plan: BaselinePlan,
    problem: Problem,
    precision: Precision,
    verifier: Verifier,
    drawn: InputSet,
    stack: ExitStack,
    failures: dict[str, str],
) -> dict[str, _OpenKernel]:
    device = verifier.device
    harness = device.prepare(problem, precision)
    kernels: dict[str, _OpenKernel] = {}
    for name, source in plan.kernels.items():
        try:
            build = device.build(source, harness)
            workspace = stack.enter_context(Workspace(verifier.inputs.directory, drawn))
            session = stack.enter_context(device.open(build, workspace.job, timeout_s=plan.timeout_s))
        except (BuildFailure, RunFailure) as failure:
            failures[name] = failure.reason
        else:
            kernels[name] = _OpenKernel(session, workspace, drawn)
    return kernels


def _torch_session(
    mode: TorchMode, drawn: InputSet, facts: DeviceFacts, stack: ExitStack, failures: dict[str, str]
) -> dict[str, Timeable]:
    import torch

    module, tensors = torch_implementation(drawn)
    try:
        return {str(mode): stack.enter_context(TorchSession(module, tensors, mode, facts))}
    except (torch.OutOfMemoryError, RuntimeError) as error:
        failures[str(mode)] = str(error).splitlines()[0]
        return {}


def torch_implementation(drawn: InputSet) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """The reference module in the run's precision with the very weights of an input set, and its inputs, on the CPU."""
    from kernelblaster.evaluation.inputs.tensors import read_tensor, storage_dtype
    from kernelblaster.problems.reference import arguments, load_reference

    problem, precision = drawn.key.problem, storage_dtype(drawn.key.precision)
    module = load_reference(problem).model(drawn.key.workload).to(precision)
    values = {
        spec.name: read_tensor(drawn.files[spec.name], spec).reshape(spec.shape).clone()
        for spec in drawn.specs
        if spec.role is not TensorRole.OUTPUT
    }
    weights = {spec.name: values[spec.name] for spec in drawn.specs if spec.role is TensorRole.WEIGHT}
    module.load_state_dict(weights, strict=False)
    inputs = {spec.name: values[spec.name] for spec in drawn.specs if spec.role is TensorRole.INPUT}
    # What pins a type of its own is cast: torch mixes none in one operation.
    cast = {name: value.to(precision) if value.is_floating_point() else value for name, value in inputs.items()}
    return module, arguments(problem, module, cast)


def _wall(samples: Sequence[float]) -> WallTime:
    interval = median_interval(samples)
    return WallTime(median_us=interval.estimate, low_us=interval.low, high_us=interval.high, samples=len(samples))


def _timing(cycles: Sequence[tuple[float, ...]], floor: float, conditions: Conditions | None) -> Timing:
    samples = [value for cycle in cycles for value in cycle]
    interval = median_interval(samples)
    return Timing(
        median_us=interval.estimate,
        low_us=interval.low,
        high_us=interval.high,
        iqr_us=quartile_range(samples),
        samples=len(samples),
        floor_us=floor,
        floor_fraction=floor / interval.estimate,
        modelled=False,
        conditions=conditions,
    )


def _ratio(final: Sequence[tuple[float, ...]], other: Sequence[tuple[float, ...]]) -> Ratio:
    # One that was sampled apart has fewer cycles.
    speedup = speedup_interval([SampleBlock(mine, theirs) for mine, theirs in zip(final, other, strict=False)])
    shortest = min(float(np.median(side)) for side in (final, other))
    speedup = between_processes(speedup, shortest)
    return Ratio(speedup=speedup.estimate, low=speedup.low, high=speedup.high)
