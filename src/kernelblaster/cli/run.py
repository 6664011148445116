"""`kernelblaster run`: optimise one or many problems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli import terminal
from kernelblaster.cli.options import (
    DatasetOption,
    DeviceOption,
    GpuTypeOption,
    JsonOption,
    LibrariesOption,
    ModelTimeoutOption,
    PrecisionOption,
    PriceOption,
    ReplyTokensOption,
    SizeOption,
    environment,
    finite,
    grouped,
    parse_libraries,
    positive,
)
from kernelblaster.config import (
    BudgetConfig,
    Environment,
    EvaluationConfig,
    ModelConfig,
    RunConfig,
    SearchConfig,
)
from kernelblaster.errors import UsageError

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
    problem_dir: Annotated[
        Path | None, typer.Option("--problem-dir", help="Your own problem: a directory with init.cu and driver.cpp.")
    ] = None
    knowledge_base: Annotated[
        Path | None, typer.Option("--knowledge-base", help="Start from this optimization_database.json.")
    ] = None


@dataclass(frozen=True)
class MachineOptions:
    """Where, and in which terms, candidates are judged."""

    precision: PrecisionOption = None
    device: DeviceOption = "auto"
    gpu_type: GpuTypeOption = None
    size: SizeOption = None
    libraries: LibrariesOption = "none"


@dataclass(frozen=True)
class ModelOptions:
    """Who writes candidates."""

    model: Annotated[str | None, typer.Option("--model", help="Model name. [env: MODEL]")] = None
    model_kind: Annotated[
        str,
        typer.Option(
            "--model-kind", help="openai_api, batch_exchange, recorded, or auto: the API where a key or URL is set."
        ),
    ] = "auto"
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Chat completions endpoint. [env: OPENAI_BASE_URL]")
    ] = None
    recording: Annotated[
        Path | None,
        typer.Option(
            "--recording",
            help="Recording to replay, the shipped one if not given; with another --model-kind it is made, as .jsonl.",
        ),
    ] = None
    price: PriceOption = None
    model_concurrency: Annotated[
        int, typer.Option("--model-concurrency", min=1, help="Requests to the model in flight at once.")
    ] = 8
    model_timeout: ModelTimeoutOption = 600
    max_completion_tokens: ReplyTokensOption = None
    exchange: Annotated[
        Path | None, typer.Option("--exchange", help="Folder of the batch exchange; inside the run if not given.")
    ] = None
    wait: Annotated[bool, typer.Option("--wait", help="Batch exchange: wait for replies, do not exit 75.")] = False


@dataclass(frozen=True)
class SearchOptions:
    """Width, depth and patience of the search."""

    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Rounds of rollouts, each from the best so far.")] = 1
    rollouts: Annotated[int, typer.Option(min=1, max=1000, help="Rollouts per round.")] = 10
    steps: Annotated[int, typer.Option(min=1, max=1000, help="Steps per rollout.")] = 10
    repairs: Annotated[int, typer.Option(min=0, help="Repairs per step.")] = 3
    patience: Annotated[int, typer.Option(min=1, help="Fruitless steps before a rollout stops.")] = 4
    seed: Annotated[int, typer.Option(help="Seed of technique selection.")] = 0
    concurrency: Annotated[int, typer.Option(min=1, help="Problems in flight at once.")] = 4


@dataclass(frozen=True)
class BudgetOptions:
    """What the search may cost."""

    timeout: Annotated[float, typer.Option(min=0.1, callback=finite, help="Minutes per problem.")] = 480
    max_minutes: Annotated[
        float | None, typer.Option(callback=positive, help="Minutes for the whole run, earlier starts included.")
    ] = None
    max_dollars: Annotated[float | None, typer.Option(callback=positive, help="Dollars for the whole run.")] = None
    max_tokens: Annotated[int | None, typer.Option(callback=positive, help="Tokens for the whole run.")] = None


@dataclass(frozen=True)
class PlaceOptions:
    """Where results lie, and how they are told."""

    experiment: Annotated[
        str | None,
        typer.Option(
            "--experiment", help="Name under which results collect. [env: EXPERIMENT_NAME, RL_EXPERIMENT_NAME]"
        ),
    ] = None
    out: Annotated[Path, typer.Option("--out", help="Where runs are kept.")] = Path("out")
    dataset_dir: DatasetOption = None
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Continue what an earlier start left.")] = True
    retry: Annotated[bool, typer.Option("--retry", help="Search again where nothing was found.")] = False
    json_output: JsonOption = False


@grouped(ProblemOptions, MachineOptions, ModelOptions, SearchOptions, BudgetOptions, PlaceOptions)
def run(
    problem: ProblemOptions,
    machine: MachineOptions,
    model: ModelOptions,
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

    env = environment()
    _refuse_contradictions(problem, place)
    config = _config(env, problem, machine, model, search, budget, place)
    if problem.problem_dir is not None:
        problems = [load_problem(problem.problem_dir)]
    else:
        problem = _completed(problem)
        dataset = place.dataset_dir or config.dataset
        problems = list(list_problems(problem.subset, problem.problem_numbers, dataset=dataset))
    console = terminal.console(stderr=place.json_output)
    with TerminalObserver(console) as observer:
        summary = optimize(
            problems,
            config=config,
            observer=observer,
            exchange=model.exchange,
            wait=model.wait,
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
    if problem.subset is not None:
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
        "--dataset-dir": place.dataset_dir,
    }
    beside = [name for name, value in choosing.items() if value is not None]
    if problem.problem_dir is not None and beside:
        raise UsageError(f"--problem-dir names one problem, {beside[0]} chooses others", hint="give one of the two")
    if problem.problem_numbers is not None and (problem.start is not None or problem.end is not None):
        raise UsageError("--problem-numbers beside --start or --end", hint="write --problem-numbers N-M")


def _model(given: ModelOptions, env: Environment) -> ModelConfig:
    return ModelConfig(
        kind=given.model_kind,
        name=given.model or env.model,
        base_url=given.base_url or env.openai_base_url,
        api_key=env.openai_api_key,
        recording=given.recording,
        concurrency=given.model_concurrency,
        timeout_s=given.model_timeout,
        max_completion_tokens=given.max_completion_tokens,
        dollars_per_million_prompt=given.price[0] if given.price else None,
        dollars_per_million_completion=given.price[1] if given.price else None,
    )


def _config(
    env: Environment,
    problem: ProblemOptions,
    machine: MachineOptions,
    model: ModelOptions,
    search: SearchOptions,
    budget: BudgetOptions,
    place: PlaceOptions,
) -> RunConfig:
    return RunConfig(
        dataset=env.dataset,
        precision=machine.precision or env.precision,
        experiment=place.experiment or env.experiment,
        out=place.out,
        device=machine.device,
        gpu_type=machine.gpu_type or env.gpu_type,
        size=machine.size,
        libraries=parse_libraries(machine.libraries),
        knowledge_base=problem.knowledge_base,
        concurrency=search.concurrency,
        search=SearchConfig(
            rounds=search.rounds,
            rollouts=search.rollouts,
            steps=search.steps,
            repairs=search.repairs,
            patience=search.patience,
            seed=search.seed,
        ),
        budget=BudgetConfig(
            dollars=budget.max_dollars,
            tokens=budget.max_tokens,
            minutes=budget.max_minutes,
            problem_minutes=budget.timeout,
        ),
        model=_model(model, env),
        evaluation=EvaluationConfig(),
    )
