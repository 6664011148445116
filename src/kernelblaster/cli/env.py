"""`kernelblaster env`: problems as tasks for reinforcement learning."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster import Tier
from kernelblaster.cli.env_eval import evaluate, report
from kernelblaster.cli.options import (
    BASELINE_HELP,
    REWARD_HELP,
    DatasetOption,
    DeviceOption,
    GpuTypeOption,
    JsonOption,
    PrecisionOption,
    SizeOption,
    finite,
)
from kernelblaster.cli.progress import Progress
from kernelblaster.cli.settings import ConfigOption, SetOption, configured
from kernelblaster.cli.terminal import visible
from kernelblaster.errors import ExitCode

if TYPE_CHECKING:
    from kernelblaster import DeviceFacts, KernelEnvironments

app = typer.Typer(
    help="Problems as tasks for reinforcement learning, over OpenEnv.", no_args_is_help=True, add_completion=False
)
app.command("eval")(evaluate)
app.command("report")(report)

ProblemArgument = Annotated[str, typer.Argument(help="An exact name: L1_23_Softmax, L1_23 or level1/23.")]
RewardOption = Annotated[str, typer.Option("--reward", help=REWARD_HELP)]
CapOption = Annotated[float, typer.Option("--speedup-cap", help="Speed-up at which the bonus of `seed` is full.")]
BaselineOption = Annotated[str, typer.Option("--baseline", help=BASELINE_HELP)]
TimesOption = Annotated[
    Path | None,
    typer.Option(
        "--pytorch-times",
        help="PyTorch's times on this GPU, of `problems baseline`; the shipped ones if not given. Others are measured.",
    ),
]
SanitizeOption = Annotated[
    bool,
    typer.Option(
        "--sanitize/--no-sanitize", help="Run sanitizers over what crashes or is wrong at the tier full; steps may ask."
    ),
]
GridOption = Annotated[float, typer.Option("--reward-grid", help="Round bonuses to this width; 0 for not.")]


@app.command("list")
def list_problems(
    split: Annotated[
        str | None, typer.Option("--split", help="A task list, such as level1, heldout, softmax; all if none is given.")
    ] = None,
    dataset_dir: DatasetOption = None,
) -> None:
    """List the problems by name, and the splits."""
    given = dict(locals())
    from kernelblaster import environment_problems, problem_identifier

    catalogue = environment_problems(configured(given).config, dataset=dataset_dir)
    for problem in catalogue.problems if split is None else catalogue.tasks(split):
        typer.echo(f"{problem_identifier(problem)}  {problem.split or ''}  {', '.join(problem.tags)}")
    typer.echo(f"splits: {', '.join(catalogue.splits())}", err=True)


@app.command("show")
def show(
    problem: ProblemArgument,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    gpu_type: GpuTypeOption = None,
    size: SizeOption = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    dataset_dir: DatasetOption = None,
) -> None:
    """Print what an agent is told of a problem at `reset`."""
    given = dict(locals())
    from kernelblaster import open_environment

    effective = configured(given, file=config, assignments=assignments).config
    with (
        Progress() as progress,
        open_environment(effective, dataset=dataset_dir, asked=[problem], on_stage=progress.tell) as environments,
    ):
        told = environments.session().reset(problem_id=problem).problem_description
    typer.echo(told)


@app.command("try")
def try_file(
    problem: ProblemArgument,
    file: Annotated[Path, typer.Argument(help="A .cu file, or a reply that holds one.")],
    tier: Annotated[
        Tier, typer.Option("--tier", help="How far: compile, correct (not timed), quick or full.")
    ] = Tier.FULL,
    reward: RewardOption = "seed",
    speedup_cap: CapOption = 4.0,
    reward_grid: GridOption = 0.0,
    baseline: BaselineOption = "start",
    pytorch_times: TimesOption = None,
    sanitize: SanitizeOption = True,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    gpu_type: GpuTypeOption = None,
    size: SizeOption = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Submit one file as an agent would, and print the feedback. Exit code 0 only for the verdict `correct`."""
    given = dict(locals())
    from kernelblaster import KernelAction, open_environment, read_kernel

    effective = configured(given, file=config, assignments=assignments).config
    code = read_kernel(file)
    with (
        Progress() as progress,
        open_environment(
            effective,
            dataset=dataset_dir,
            reward=reward,
            speedup_cap=speedup_cap,
            reward_grid=reward_grid,
            baseline=baseline,
            pytorch_times=pytorch_times,
            sanitize=sanitize,
            asked=[problem],
            on_stage=progress.tell,
        ) as environments,
    ):
        seen = environments.session().step(KernelAction(code=code, problem_id=problem, tier=tier))
    typer.echo(seen.model_dump_json(indent=2) if json_output else visible(seen.feedback))
    return int(ExitCode.OK if seen.correctness_pass else ExitCode.FAILED)


@app.command("serve")
def serve(
    host: Annotated[
        str, typer.Option("--host", help="Address; 0.0.0.0 for all. Nobody is asked who he is.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 8000,
    capacity: Annotated[int, typer.Option("--capacity", min=1, max=1024, help="Sessions at once.")] = 64,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Submissions judged at once; as many as processors, at most 8, if none."),
    ] = None,
    waiting: Annotated[
        int, typer.Option("--waiting", min=0, help="Submissions that may wait; one more is told when to come back.")
    ] = 64,
    idle_minutes: Annotated[
        float,
        typer.Option("--idle-minutes", min=0.1, callback=finite, help="Silence of a client that ends its session."),
    ] = 60.0,
    canary_minutes: Annotated[
        float,
        typer.Option(
            "--canary-minutes", min=0, callback=finite, help="Judge kernels with known verdicts again after so many."
        ),
    ] = 30.0,
    judge: Annotated[
        bool, typer.Option("--judge", help="Judge for `train` elsewhere, too: it is told seeds of inputs.")
    ] = False,
    reward: RewardOption = "seed",
    speedup_cap: CapOption = 4.0,
    reward_grid: GridOption = 0.0,
    baseline: BaselineOption = "start",
    pytorch_times: TimesOption = None,
    sanitize: SanitizeOption = True,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    gpu_type: GpuTypeOption = None,
    size: SizeOption = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    dataset_dir: DatasetOption = None,
) -> None:
    """Serve the environment over OpenEnv, on websockets and HTTP, until it is interrupted."""
    given = dict(locals())
    from kernelblaster import default_workers, open_environment, serve_environment

    effective = configured(given, file=config, assignments=assignments).config
    opening = partial(
        open_environment,
        effective,
        dataset=dataset_dir,
        reward=reward,
        speedup_cap=speedup_cap,
        reward_grid=reward_grid,
        baseline=baseline,
        pytorch_times=pytorch_times,
        sanitize=sanitize,
        canary_minutes=canary_minutes,
        workers=workers or default_workers(),
        waiting=waiting,
    )
    with ExitStack() as starting:
        progress = starting.enter_context(Progress())

        def announce(environments: KernelEnvironments, port: int) -> None:
            starting.close()
            _announce(environments.judge.facts, host, port)

        serve_environment(
            opening,
            host=host,
            port=port,
            capacity=capacity,
            idle_s=60.0 * idle_minutes,
            judging=judge,
            on_stage=progress.tell,
            on_bound=partial(_bound, host),
            on_ready=announce,
        )


def _bound(host: str, port: int) -> None:
    typer.echo(f"http://{host}:{port}/health is 503 until kernels can be judged", err=True)


def _announce(facts: DeviceFacts, host: str, port: int) -> None:
    times = "modelled" if facts.kind == "emulated" else "measured"
    typer.echo(f"{facts.name} ({facts.kind}): times are {times}. ws://{host}:{port}/ws", err=True)
    if host not in ("127.0.0.1", "localhost", "::1"):
        typer.echo("Whoever reaches this address can submit code: there is no authentication.", err=True)
