"""PyTorch eager and torch.compile beside start and final kernels, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import DeviceError, UsageError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.problems.problem import Problem, StandardWorkload
from kernelblaster.problems.start import read_start
from kernelblaster.records.baselines import BaselineRow, keep_baseline
from kernelblaster.records.layout import FINAL_KERNEL, RunLayout
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.pytorch_baseline import FINAL, START, BaselinePlan, measure_baseline


def time_baselines(
    problems: Iterable[Problem],
    *,
    config: RunConfig | None = None,
    root: Path | None = None,
    size: str = StandardWorkload.FULL,
    seconds: float = 6.0,
    on_stage: Callable[[str], object] | None = None,
) -> Iterator[BaselineRow]:
    """Time PyTorch and kernels of one precision in turns, with 95 % intervals: one row per problem.

    A row of a problem that the run at `root` has searched is kept there, and its report shows it.

    Args:
        problems: what is timed.
        config: precision and device; a GPU if None.
        root: directory of a run, whose final kernels take part.
        size: that is timed.
        seconds: of sampling per problem.
        on_stage: told what takes time.

    Raises:
        UsageError: there is no run at `root`.
        DeviceError: there is no GPU.
    """
    if root is not None and not root.is_dir():
        raise UsageError(f"there is no run at {root}", hint="give the directory that `run` named")
    config = config or RunConfig(device=DeviceKind.CUDA)
    tell = on_stage or (lambda stage: None)
    try:
        chosen = choose_device(config, tell).device
    except DeviceError as error:
        raise DeviceError(error.message, hint="use a machine that has one: PyTorch is timed there only") from error
    for problem in problems:
        tell(f"timing {problem.title}")
        plan = BaselinePlan(kernels=_kernels(problem, root), seconds=seconds)
        with InputStore() as inputs:
            row = measure_baseline(problem, problem.precision_for(config.precision), size, chosen, inputs, plan)
        if root is not None and (directory := _search(problem, root)).is_dir():
            keep_baseline(directory, row)
        yield row


def _search(problem: Problem, root: Path) -> Path:
    return RunLayout(experiment=root.parent, run=root).problem(problem)


def _kernels(problem: Problem, root: Path | None) -> dict[str, str]:
    kernels = {START: read_start(problem)}
    final = _search(problem, root) / FINAL_KERNEL if root else None
    if final is not None and final.is_file():
        kernels[FINAL] = final.read_text(encoding="utf-8")
    return kernels
