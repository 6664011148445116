"""One evaluation outside any run: what `evaluate`, `reprofile` and benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.paths import data_dir
from kernelblaster.problems import dataset as problems
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Problem
from kernelblaster.records.searches import check_search, find_search
from kernelblaster.runs.choices import choose_device, timed_workload, watched


def find_problem(name: str, config: RunConfig, dataset_dir: Path | None = None) -> Problem:
    """`level1/23`, `23` or a directory. Raises UsageError."""
    return problems.find_problem(name, dataset_dir or data_dir() / config.dataset)


def find_searched(directory: Path, config: RunConfig, dataset_dir: Path | None = None) -> Problem:
    """The problem whose search lies in `directory`: where it lay then, or the one of a data set that has its files.

    Raises UsageError when its files are others now.
    """
    search = find_search(directory)
    if dataset_dir is None and search is not None and search.problem.is_dir():
        problem = load_problem(search.problem)
    else:
        number = directory.name.partition("_")[0]
        problem = find_problem(f"{directory.parent.name}/{number}", config, dataset_dir)
    check_search(directory, problem)
    return problem


@contextmanager
def open_evaluator(
    config: RunConfig, tell: Callable[[str], object], given: Device | None = None, usual: str | None = None
) -> Iterator[Evaluator]:
    """An evaluator for a configuration, which says to `tell` what it does; its inputs are removed at the end.

    It uses the device that is given, else the one that is configured; where no size is configured the usual one, that
    of the device if None. Raises UsageError, DeviceError.
    """
    device = watched(given or choose_device(config, tell).device, config, tell)
    with InputStore(tell=tell) as inputs:
        workload = config.size or usual or timed_workload(config, device.facts, ())
        yield configured_evaluator(config, workload, device, inputs)


def configured_evaluator(
    config: RunConfig, workload: str, device: Device, inputs: InputStore, seed: int | None = None
) -> Evaluator:
    """An evaluator as a configuration asks for it; where it names no size, problems without this one have another."""
    return Evaluator(
        device,
        inputs,
        config.evaluation,
        workload,
        config.libraries,
        precision=config.precision,
        seed=seed,
        by_default=config.size is None,
    )
