"""Judge kernels without a model: build, verify, time and profile one, or compare two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.api.own_parts import require_device
from kernelblaster.api.problems import ProblemName, load_problem
from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Comparison, Evaluation
from kernelblaster.problems.problem import Problem
from kernelblaster.registry import require_callable
from kernelblaster.runs.choices import refuse_self_checking
from kernelblaster.runs.evaluations import open_evaluator as _open_evaluator
from kernelblaster.runs.references import require_usable_reference
from kernelblaster.storage.bounded_io import read_source

KernelSource = str | Path
"""CUDA source text, or the file that holds it."""
Tell = Callable[[str], object]


@dataclass(frozen=True)
class PairEvaluation:
    """Two kernels of one problem: the second was timed in turns with the first if both are correct."""

    baseline: Evaluation
    candidate: Evaluation

    @property
    def comparison(self) -> Comparison | None:
        """Candidate against baseline, with its interval; None unless both are correct."""
        return self.candidate.comparison


@contextmanager
def open_evaluator(
    config: RunConfig | None = None, *, device: Device | str | None = None, on_stage: Tell | None = None
) -> Iterator[Evaluator]:
    """An `Evaluator` for many kernels: reference outputs and harnesses are made once. Its inputs go at the end.

    Args:
        config: precision, size, libraries, and how hard candidates are checked; the defaults if None.
        device: `cuda`, `emulated`, `auto`, or a device of your own; as configured if None.
        on_stage: told what takes time.

    Raises:
        UsageError, DeviceError: there is no such device here.
    """
    require_callable("on_stage", on_stage)
    config = _with_device(config, device)
    given = None if device is None or isinstance(device, str) else device
    with _open_evaluator(config, on_stage or _ignore, given) as evaluator:
        yield evaluator


def evaluate(
    problem: ProblemName,
    source: KernelSource,
    *,
    baseline: KernelSource | None = None,
    config: RunConfig | None = None,
    device: Device | str | None = None,
    profile: bool = True,
    process_pairs: int = 1,
    on_stage: Tell | None = None,
) -> Evaluation:
    """Judge one kernel. A wrong kernel is a verdict, never an exception.

    Args:
        problem: what it solves.
        source: the kernel.
        baseline: a kernel that is known to be correct, timed in turns with this one.
        config, device, on_stage: see `open_evaluator`.
        profile: collect hardware counters.
        process_pairs: pairs of fresh processes for the comparison, where the kernel seems faster.

    Raises:
        UsageError: the problem, the file or the device is unknown.
        DeviceError: the device failed.
    """
    return judge(
        problem,
        source,
        baseline=baseline,
        config=config,
        device=device,
        profile=profile,
        process_pairs=process_pairs,
        on_stage=on_stage,
    ).evaluation


@dataclass(frozen=True)
class Judgement:
    """An evaluation beside what was judged, and the device that it was judged on."""

    evaluation: Evaluation
    problem: Problem
    source: str
    facts: DeviceFacts


def judge(
    problem: ProblemName,
    source: KernelSource,
    *,
    baseline: KernelSource | None,
    config: RunConfig | None,
    device: Device | str | None,
    profile: bool,
    process_pairs: int,
    on_stage: Tell | None,
) -> Judgement:
    """Judge one kernel. Arguments and errors as of `evaluate`."""
    config, found = judgeable(problem, config, device)
    text, other = read_kernel(source), None if baseline is None else read_kernel(baseline)
    with open_evaluator(config, device=device, on_stage=on_stage) as evaluator:
        evaluation = evaluator.evaluate(found, text, baseline=other, profile=profile, process_pairs=process_pairs)
        return Judgement(evaluation, found, text, evaluator.device.facts)


def compare(
    problem: ProblemName,
    baseline: KernelSource,
    candidate: KernelSource,
    *,
    config: RunConfig | None = None,
    device: Device | str | None = None,
    process_pairs: int = 1,
    on_stage: Tell | None = None,
) -> PairEvaluation:
    """Judge two kernels, and time them in turns. Arguments and errors as of `evaluate`."""
    config, found = judgeable(problem, config, device)
    first, second = read_kernel(baseline), read_kernel(candidate)
    with open_evaluator(config, device=device, on_stage=on_stage) as evaluator:
        start = evaluator.evaluate(found, first, profile=False)
        against = first if start.correct else None
        end = evaluator.evaluate(found, second, baseline=against, profile=False, process_pairs=process_pairs)
    return PairEvaluation(baseline=start, candidate=end)


def read_kernel(source: KernelSource) -> str:
    """A kernel's text; of a path, what the file holds. Raises UsageError when there is none, or text names a file."""
    if isinstance(source, str):
        if source.endswith((".cu", ".py")) and "\n" not in source:
            raise UsageError(f"{source!r} is text, not a path", hint=f"give Path({source!r}), or the kernel's text")
        return source
    if source == Path():
        # What an empty argument becomes, or `.`: the message would name a directory that nobody gave.
        raise UsageError("the kernel is named by nothing, or by `.`, a directory", hint="give the path of a .cu file")
    try:
        return read_source(source)
    except OSError as error:
        raise UsageError(f"{source}: {error.strerror}", hint="give the path of a readable .cu file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8 text", hint="save it as UTF-8 text") from error


def judgeable(problem: ProblemName, config: RunConfig | None, device: Device | str | None) -> tuple[RunConfig, Problem]:
    """The configuration with that device, and the problem.

    Raises UsageError where it needs a GPU and none would be, ProblemError where its reference is random,
    MachineError where this host has not the memory to run it.
    """
    config = _with_device(config, device)
    found = load_problem(problem, dataset=config.dataset)
    if device is None or isinstance(device, str):
        refuse_self_checking([found], config)
    if not found.weakly_verified:
        require_usable_reference(found)
    return config, found


def _with_device(config: RunConfig | None, device: Device | str | None) -> RunConfig:
    require_device(device)
    config = config or RunConfig()
    if device is None:
        return config
    return config.model_copy(update={"device": device if isinstance(device, str) else str(device.facts.kind)})


def _ignore(stage: str) -> None:
    """Nobody watches."""
