"""Measures one row of PyTorch's times: compiles before it locks the GPU, and samples while it holds it.

Inputs and weights are the reference's own, drawn on the device. PyTorch's results are not judged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelblaster.evaluation.attainable import attainable
from kernelblaster.evaluation.inputs.perturbations import PerturbationSchedule
from kernelblaster.evaluation.inputs.tensors import storage_dtype
from kernelblaster.evaluation.roofline import floor_us
from kernelblaster.evaluation.timing.compile_ahead import AHEAD, compile_ahead
from kernelblaster.evaluation.timing.conditions import Readings
from kernelblaster.evaluation.timing.pytorch_times import ModeTime, PytorchTimes, TimesKey, torch_settings
from kernelblaster.evaluation.timing.round_robin import Participant, RoundRobin
from kernelblaster.evaluation.timing.statistics import median_interval
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import TORCH, arguments, load_reference
from kernelblaster.runs.inductor_choices import choices_shared, choose_fused_kernels, kernels_stored_alone
from kernelblaster.runs.torch_device import Compiled, TorchDevice

if TYPE_CHECKING:
    import torch

LEAST_CYCLES = 3
"""Of four samples each, also of calls that take longer than the seconds there are."""
_REASON = 200
"""Characters of a failure that a row keeps."""


class TorchMemoryFull(Exception):
    """The device's memory does not suffice, at least not beside what others hold."""


@dataclass(frozen=True)
class TimesItem:
    """What one row measures; sent to a worker process.

    Attributes:
        problem, precision, workload: which computation.
        modes: of PyTorch that are timed.
        digest: `size_digest` of the reference.
        seconds: of sampling.
        compile_threads: of Inductor in that process.
    """

    problem: Problem
    precision: Precision
    workload: str
    modes: tuple[TorchMode, ...]
    digest: str
    seconds: float
    compile_threads: int = 1

    def key(self, gpu: str) -> TimesKey:
        """Under which its row is found."""
        return (gpu, str(self.problem.id), self.precision, self.workload)


def measure_times(item: TimesItem, device: TorchDevice) -> PytorchTimes:
    """One row. Raises ProblemError where the reference fails, TorchMemoryFull."""
    import torch

    began = time.monotonic()
    floor = floor_us(item.problem, item.workload, item.precision, device.facts)
    reachable = attainable(item.problem, item.workload, item.precision, device.facts).us
    failures: dict[TorchMode, str] = {}
    readings = Readings(device.reading, time.monotonic)
    try:
        round_robin = _round_robin(item, device, failures, readings)
    except torch.OutOfMemoryError as error:
        raise TorchMemoryFull(_first_line(error)) from error
    return PytorchTimes(
        problem=str(item.problem.id),
        name=item.problem.name,
        precision=item.precision,
        workload=item.workload,
        digest=item.digest,
        gpu=device.facts.name,
        driver=device.facts.driver_version,
        torch=torch.__version__,
        settings=torch_settings(),
        cover_us=round(round_robin.cover_us, 1),
        conditions=readings.summary(),
        floor_us=round(floor, 3),
        attainable_us=round(reachable, 3),
        times={TorchMode(mode): _time_of(entry) for mode, entry in round_robin.entries.items()},
        failures=failures,
        seconds=round(time.monotonic() - began, 1),
        at=round(time.time()),
    )


def compile_modes(item: TimesItem, device: TorchDevice) -> None:
    """Fill the compiler's caches on disk, so that measuring the item has little left to compile.

    What a compiler raises shows when the item is measured. Raises ProblemError, TorchMemoryFull.
    """
    import torch

    try:
        with device.held():
            module, inputs = _on_device(item, device.torch_device)
        for mode in item.modes:
            if mode in AHEAD:
                with _noting_failure(mode, {}):
                    _compiled_ahead(module, inputs, mode, device)
    except torch.OutOfMemoryError as error:
        raise TorchMemoryFull(_first_line(error)) from error


def _round_robin(
    item: TimesItem, device: TorchDevice, failures: dict[TorchMode, str], readings: Readings
) -> RoundRobin:
    """Time the modes against each other; a mode that fails is left out and noted in `failures`."""
    with device.held():
        module, inputs = _on_device(item, device.torch_device)
    ahead: dict[TorchMode, Compiled] = {}
    for mode in item.modes:
        if mode in AHEAD:
            with _noting_failure(mode, failures):
                ahead[mode] = _compiled_ahead(module, inputs, mode, device)
    entries: dict[str, Participant] = {}
    with device.held(), ExitStack() as sessions:
        for mode in item.modes:
            if mode not in failures:
                with _noting_failure(mode, failures):
                    session = sessions.enter_context(device.session(module, inputs, mode, ahead.get(mode)))
                    entries[str(mode)] = Participant(session, session.captured)
        round_robin = RoundRobin(
            entries, device.facts, PerturbationSchedule(changing=False), readings, least_cycles=LEAST_CYCLES
        )
        if entries:
            round_robin.run(item.seconds)
    return round_robin


def _compiled_ahead(module: torch.nn.Module, inputs: Sequence[Any], mode: TorchMode, device: TorchDevice) -> Compiled:
    """The module in a mode of `AHEAD`, with nothing left to compile that could be compiled before it is sampled."""
    if mode is not TorchMode.MAX_AUTOTUNE:
        return compile_ahead(module, inputs, mode, device.held)
    with choices_shared(device) as held, kernels_stored_alone():
        call = compile_ahead(module, inputs, mode, held)
    choose_fused_kernels(call, inputs, device)
    return call


@contextmanager
def _noting_failure(mode: TorchMode, failures: dict[TorchMode, str]) -> Iterator[None]:
    """What a compiler or a module raises, of whatever type, is that mode's failure; lack of memory is everyone's."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        failures[mode] = _first_line(error)


def _on_device(item: TimesItem, device: str) -> tuple[torch.nn.Module, list[Any]]:
    """The reference in its precision and its arguments, drawn on the device."""
    import torch

    dtype = storage_dtype(item.precision)
    reference = load_reference(item.problem)
    with TORCH, torch.device(device), torch.no_grad():
        torch.manual_seed(0)
        module = reference.model(item.workload).to(dtype)
        drawn = reference.tensors(item.workload)
        inputs = {name: value.to(dtype) if value.is_floating_point() else value for name, value in drawn.items()}
    return module.to(device), arguments(item.problem, module, {name: it.to(device) for name, it in inputs.items()})


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:_REASON]


def _time_of(entry: Participant) -> ModeTime:
    device = median_interval([value for cycle in entry.cycles for value in cycle])
    wall = median_interval(entry.walls_us)
    return ModeTime(
        us=round(device.estimate, 3),
        low_us=round(device.low, 3),
        high_us=round(device.high, 3),
        samples=sum(map(len, entry.cycles)),
        wall_us=round(wall.estimate, 2),
        wall_low_us=round(wall.low, 2),
        wall_high_us=round(wall.high, 2),
        launch_us=None if entry.launch_us is None else round(entry.launch_us, 2),
        exposed=entry.exposed,
        graph=entry.graph is not None,
    )
