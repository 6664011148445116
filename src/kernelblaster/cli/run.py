"""`kernelblaster run`: optimise one or many problems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster.cli import terminal
from kernelblaster.cli.options import (
    DatasetOption,
    DeviceOption,
    ExchangeOption,
    GpuTypeOption,
    JsonOption,
    LibrariesOption,
    ModelOptions,
    PrecisionOption,
    SizeOption,
    finite,
    grouped,
    positive,
)
from kernelblaster.cli.selection import SplitOption, TagOption
from kernelblaster.cli.settings import ConfigOption, SetOption, configured, setting
from kernelblaster.errors import UsageError

if TYPE_CHECKING:
    from kernelblaster import Problem

DEFAULT_PROBLEM = "23"
DEFAULT_SUBSET = "level1"
LAST_NUMBER = 999_999_999
"""No data set goes further."""


@dataclass(frozen=True)
class ProblemOptions:
    """Which problems, and what is known of techniques."""

    problem_numbers: Annotated[
        str | None, typer.Option("--problem-numbers", help="N, N-M or a,b,c-d; 23 (softmax) if nothing is chosen.")
    ] = None
    start: Annotated[int | None, typer.Option("--start", min=1, help="The first of a range of problem numbers.")] = None
    end: Annotated[int | None, typer.Option("--end", min=1, help="The last of a range of problem numbers.")] = None
    subset: Annotated[
        str | None,
        typer.Option("--subset", help="level1, level2 or level3, or a list of them; level1 beside numbers alone."),
    ] = None
    tag: TagOption = None
    split: SplitOption = None
    problem_dir: Annotated[
        Path | None, typer.Option("--problem-dir", help="Your own problem: a directory with init.cu and driver.cpp.")
    ] = None
    problem: Annotated[
        Path | None,
        typer.Option(
            "--problem",
            help="A KernelBench file (Model, get_inputs, get_init_inputs): its first kernel is written, too.",
        ),
    ] = None
    knowledge_base: Annotated[Path | None, setting("knowledge_base")] = None


@dataclass(frozen=True)
class MachineOptions:
    """Where, and in which terms, candidates are judged."""

    precision: PrecisionOption = None
    device: DeviceOption = None
    gpu_type: GpuTypeOption = None
    size: SizeOption = None
    libraries: LibrariesOption = None


@dataclass(frozen=True)
class ExchangeOptions:
    """How a batch exchange goes."""

    exchange: ExchangeOption = None
    wait: Annotated[bool, typer.Option("--wait", help="Batch exchange: wait for replies, do not exit 75.")] = False


@dataclass(frozen=True)
class SearchOptions:
    """Width, depth and patience of the search."""

    rounds: Annotated[int | None, setting("rounds", min=1, max=1000)] = None
    rollouts: Annotated[int | None, setting("rollouts", min=1, max=1000)] = None
    steps: Annotated[int | None, setting("steps", min=1, max=1000)] = None
    repairs: Annotated[int | None, setting("repairs", min=0)] = None
    patience: Annotated[int | None, setting("patience", min=1)] = None
    seed: Annotated[int | None, setting("seed")] = None
    policy: Annotated[str | None, setting("policy")] = None
    ablate: Annotated[str | None, setting("ablate", metavar="NAME[,NAME]")] = None
    concurrency: Annotated[int | None, setting("concurrency", min=1)] = None


@dataclass(frozen=True)
class BudgetOptions:
    """What the search may cost."""

    timeout: Annotated[float | None, setting("timeout", min=0.1, callback=finite)] = None
    max_minutes: Annotated[float | None, setting("max_minutes", callback=positive)] = None
    max_dollars: Annotated[float | None, setting("max_dollars", callback=positive)] = None
    max_tokens: Annotated[int | None, setting("max_tokens", callback=positive)] = None


@dataclass(frozen=True)
class PlaceOptions:
    """Where settings come from, where results lie, and how they are told."""

    config: ConfigOption = None
    assignments: SetOption = None
    experiment: Annotated[str | None, setting("experiment")] = None
    out: Annotated[Path | None, setting("out")] = None
    dataset_dir: DatasetOption = None
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Continue what an earlier start left.")] = True
    retry: Annotated[bool, typer.Option("--retry", help="Search again where nothing was found.")] = False
    json_output: JsonOption = False


@grouped(ProblemOptions, MachineOptions, ModelOptions, ExchangeOptions, SearchOptions, BudgetOptions, PlaceOptions)
def run(
    problem: ProblemOptions,
    machine: MachineOptions,
    model: ModelOptions,
    replies: ExchangeOptions,
    search: SearchOptions,
    budget: BudgetOptions,
    place: PlaceOptions,
) -> int:
    """Optimise kernels: search, verify, measure, remember.

    Without arguments: level1 problem 23 (softmax). The same command after an interruption continues where it stopped.
    """
    from kernelblaster import list_problems, load_problem, optimize
    from kernelblaster.cli.run_view import TerminalObserver
    from kernelblaster.cli.summary_table import print_summary

    _refuse_contradictions(problem, place)
    groups = (problem, machine, model, replies, search, budget, place)
    parameters = {name: value for group in groups for name, value in vars(group).items()}
    effective = configured(parameters, file=place.config, assignments=place.assignments)
    problems: list[Problem | Path]
    if problem.problem is not None:
        problems = [problem.problem]
    elif problem.problem_dir is not None:
        problems = [load_problem(problem.problem_dir)]
    else:
        problem = _completed(problem)
        dataset = place.dataset_dir or effective.config.dataset
        chosen = (problem.subset, problem.problem_numbers)
        problems = list(list_problems(*chosen, tags=problem.tag or (), split=problem.split, dataset=dataset))
    console = terminal.console(stderr=place.json_output)
    with TerminalObserver(console) as observer:
        summary = optimize(
            problems,
            config=effective,
            observer=observer,
            exchange=replies.exchange,
            wait=replies.wait,
            resume=place.resume,
            retry=place.retry,
        )
    if place.json_output:
        terminal.print_json(summary)
    else:
        print_summary(console, summary)
    return int(summary.exit_code)


def _completed(problem: ProblemOptions) -> ProblemOptions:
    """With a range as numbers; what is chosen when nothing is; and the level that numbers alone are of."""
    if problem.start is not None or problem.end is not None:
        problem = replace(problem, problem_numbers=f"{problem.start or 1}-{problem.end or LAST_NUMBER}")
    if problem.subset is not None or (problem.problem_numbers is None and (problem.tag or problem.split)):
        return problem
    numbers = DEFAULT_PROBLEM if problem.problem_numbers is None else problem.problem_numbers
    return replace(problem, problem_numbers=numbers, subset=DEFAULT_SUBSET)


def _refuse_contradictions(problem: ProblemOptions, place: PlaceOptions) -> None:
    """Raise UsageError for options that would be ignored beside others."""
    choosing = {
        "--problem-numbers": problem.problem_numbers,
        "--start": problem.start,
        "--end": problem.end,
        "--subset": problem.subset,
        "--tag": problem.tag,
        "--split": problem.split,
        "--dataset-dir": place.dataset_dir,
    }
    beside = [name for name, value in choosing.items() if value is not None]
    named = [f"--{name}" for name in ("problem", "problem-dir") if getattr(problem, name.replace("-", "_")) is not None]
    if named and (named[1:] or beside):
        raise UsageError(
            f"{named[0]} names one problem, {[*named[1:], *beside][0]} chooses others", hint="give one of the two"
        )
    if problem.problem is not None and problem.problem.is_dir():
        raise UsageError(f"{problem.problem} is a directory", hint="--problem-dir takes directories")
    if problem.problem is not None and problem.problem.suffix != ".py":
        raise UsageError(f"{problem.problem} is no Python file", hint="--problem-dir takes directories")
    if problem.problem_numbers is not None and (problem.start is not None or problem.end is not None):
        raise UsageError("--problem-numbers beside --start or --end", hint="write --problem-numbers N-M")
