"""`kernelblaster run`: optimise one or many problems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli.options import (
    DatasetOption,
    DeviceOption,
    GpuTypeOption,
    JsonOption,
    LibrariesOption,
    PrecisionOption,
    PriceOption,
    SizeOption,
    environment,
    parse_libraries,
    positive,
)
from kernelblaster.config import BudgetConfig, EvaluationConfig, ModelConfig, RunConfig, SearchConfig

DEFAULT_PROBLEM = "23"
DEFAULT_SUBSET = "level1"


def run(
    problem_numbers: Annotated[
        str | None, typer.Option("--problem-numbers", help="N, N-M or a,b,c-d; 23 (softmax) if nothing is chosen.")
    ] = None,
    subset: Annotated[str | None, typer.Option("--subset", help="level1, level2 or level3, or a list of them.")] = None,
    problem_dir: Annotated[
        Path | None, typer.Option("--problem-dir", help="Your own problem: a directory with init.cu and driver.cpp.")
    ] = None,
    knowledge_base: Annotated[
        Path | None, typer.Option("--knowledge-base", help="Start from this optimization_database.json.")
    ] = None,
    precision: PrecisionOption = None,
    device: DeviceOption = "auto",
    gpu_type: GpuTypeOption = None,
    size: SizeOption = None,
    libraries: LibrariesOption = "none",
    model: Annotated[str | None, typer.Option("--model", help="Model name. [env: MODEL]")] = None,
    model_kind: Annotated[
        str,
        typer.Option(
            "--model-kind", help="openai_api, batch_exchange, recorded, or auto: the API where a key or URL is set."
        ),
    ] = "auto",
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Chat completions endpoint. [env: OPENAI_BASE_URL]")
    ] = None,
    recording: Annotated[Path | None, typer.Option("--recording", help="Recording to replay; the shipped one.")] = None,
    price: PriceOption = None,
    exchange: Annotated[
        Path | None, typer.Option("--exchange", help="Folder of the batch exchange; inside the run if not given.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Batch exchange: wait for replies, do not exit 75.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of rollouts; each starts from the best so far.")] = 1,
    rollouts: Annotated[int, typer.Option(min=1, help="Rollouts per round.")] = 10,
    steps: Annotated[int, typer.Option(min=1, help="Steps per rollout.")] = 10,
    repairs: Annotated[int, typer.Option(min=0, help="Repairs per step.")] = 3,
    patience: Annotated[int, typer.Option(min=1, help="Fruitless steps before a rollout stops.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of technique selection.")] = 0,
    concurrency: Annotated[int, typer.Option(min=1, help="Problems in flight at once.")] = 4,
    timeout: Annotated[float, typer.Option(min=0.1, help="Minutes per problem.")] = 480,
    max_minutes: Annotated[
        float | None, typer.Option(callback=positive, help="Minutes for the whole run, earlier starts included.")
    ] = None,
    max_dollars: Annotated[float | None, typer.Option(callback=positive, help="Dollars for the whole run.")] = None,
    max_tokens: Annotated[int | None, typer.Option(callback=positive, help="Tokens for the whole run.")] = None,
    experiment: Annotated[
        str | None, typer.Option("--experiment", help="Name under which results collect. [env: EXPERIMENT_NAME]")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Where runs are kept.")] = Path("out"),
    dataset_dir: DatasetOption = None,
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Continue what an earlier start left.")] = True,
    retry: Annotated[bool, typer.Option("--retry", help="Search again where nothing was found.")] = False,
    json_output: JsonOption = False,
) -> int:
    """Optimise kernels: search, verify, measure, remember.

    Without arguments: level1 problem 23 (softmax). The same command after an interruption continues where it stopped.
    """
    from kernelblaster.runs.choose import choose_model_config
    from kernelblaster.runs.command import RunRequest, run_command

    env = environment()
    model_config = choose_model_config(
        ModelConfig(
            name=model or env.model,
            base_url=base_url or env.openai_base_url,
            api_key=env.openai_api_key,
            recording=recording,
            dollars_per_million_prompt=price[0] if price else None,
            dollars_per_million_completion=price[1] if price else None,
        ),
        model_kind,
    )
    config = RunConfig(
        dataset=env.dataset,
        precision=precision or env.precision,
        experiment=experiment or env.experiment_name,
        out=out,
        device=device,
        gpu_type=gpu_type or env.gpu_type,
        size=size,
        libraries=parse_libraries(libraries),
        knowledge_base=knowledge_base,
        concurrency=concurrency,
        search=SearchConfig(
            rounds=rounds, rollouts=rollouts, steps=steps, repairs=repairs, patience=patience, seed=seed
        ),
        budget=BudgetConfig(dollars=max_dollars, tokens=max_tokens, minutes=max_minutes, problem_minutes=timeout),
        model=model_config.config,
        evaluation=EvaluationConfig(),
    )
    if problem_numbers is None and subset is None and problem_dir is None:
        problem_numbers, subset = DEFAULT_PROBLEM, DEFAULT_SUBSET
    return run_command(
        RunRequest(
            config=config,
            model_reason=model_config.reason,
            problem_numbers=problem_numbers,
            subset=subset,
            problem_dir=problem_dir,
            dataset_dir=dataset_dir,
            exchange=exchange,
            wait=wait,
            resume=resume,
            retry=retry,
            json_output=json_output,
        )
    )
