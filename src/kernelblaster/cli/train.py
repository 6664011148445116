"""`kernelblaster train`: train a model to write kernels, with rewards from the judge."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster.cli import terminal
from kernelblaster.cli.options import (
    file_to_write,
    finite,
    grouped,
)
from kernelblaster.cli.progress import Progress
from kernelblaster.cli.settings import ConfigOption, SetOption, configured, setting
from kernelblaster.cli.train_compare import compare
from kernelblaster.cli.train_data import data, export, tiny
from kernelblaster.cli.train_options import DirectoryArgument, JudgeOptions, quieten, tell

if TYPE_CHECKING:
    from kernelblaster import ArmFigures, Estimate, Metrics

app = typer.Typer(help="Train a model to write kernels, in stages of GRPO.", no_args_is_help=True, add_completion=False)
app.command("tiny")(tiny)
app.command("data")(data)
app.command("export")(export)


@dataclass(frozen=True)
class TrainOptions:
    """The settings of training that have options; `--set train.NAME=VALUE` reaches all."""

    base_model: Annotated[Path | None, setting("base_model")] = None
    preset: Annotated[str | None, setting("preset")] = None
    training_steps: Annotated[int | None, setting("training_steps", min=1)] = None
    generations: Annotated[int | None, setting("generations", min=2)] = None
    stage_reward: Annotated[str | None, setting("stage_reward")] = None
    loss: Annotated[str | None, setting("loss")] = None
    advantage: Annotated[str | None, setting("advantage")] = None
    beta: Annotated[float | None, setting("beta", min=0, callback=finite)] = None
    turns: Annotated[int | None, setting("turns", min=1)] = None
    training_seed: Annotated[int | None, setting("training_seed")] = None
    max_judged: Annotated[int | None, setting("max_judged", min=1)] = None
    minutes: Annotated[float | None, setting("minutes", callback=finite)] = None


@dataclass(frozen=True)
class EvaluationOptions:
    """What `train eval` is given beside."""

    weights: Annotated[str, typer.Option("--weights", help="base, sft, frontend, midend or backend.")] = "midend"
    stage: Annotated[str, typer.Option("--stage", help="Whose prompts are asked: frontend, midend or backend.")] = (
        "frontend"
    )
    split: Annotated[str, typer.Option("--split", help="heldout or train.")] = "heldout"
    against: Annotated[
        str, typer.Option("--against", help="Weights that were evaluated on the same before: tells the difference.")
    ] = ""
    greedy: Annotated[
        bool, typer.Option("--greedy", help="The one likeliest completion of each prompt, in place of samples.")
    ] = False


@app.command("sft")
@grouped(JudgeOptions, TrainOptions)
def sft(judge: JudgeOptions, given: TrainOptions) -> int:
    """Stage 0: supervised fine-tuning on correct replies, which teaches the reply format. Judges nothing."""
    from kernelblaster import train_warmup

    quieten()
    effective = configured(asdict(given), file=judge.config, assignments=judge.assignments)
    with Progress() as progress:
        record = train_warmup(
            judge.directory, effective.config, on_progress=_Doing(progress, effective.config.train.steps)
        )
    tell(f"{record.updates} updates made")
    if judge.json_output:
        terminal.print_json(record)
        return 0
    typer.echo(f"learned {record.rows} replies; {record.left_out} were too long")
    return 0


@app.command("frontend")
@grouped(JudgeOptions, TrainOptions)
def frontend(judge: JudgeOptions, given: TrainOptions) -> int:
    """Stage 1: from a reference to a correct kernel."""
    return _train("frontend", judge, given)


@app.command("midend")
@grouped(JudgeOptions, TrainOptions)
def midend(judge: JudgeOptions, given: TrainOptions) -> int:
    """Stage 2: from a correct kernel to a faster one."""
    return _train("midend", judge, given)


@app.command("backend")
@grouped(JudgeOptions, TrainOptions)
def backend(judge: JudgeOptions, given: TrainOptions) -> int:
    """Stage 3: a faster kernel on one GPU, with counters, bottleneck and a technique in the prompt."""
    return _train("backend", judge, given)


@app.command("eval")
@grouped(JudgeOptions, TrainOptions, EvaluationOptions)
def evaluate(judge: JudgeOptions, given: TrainOptions, asked: EvaluationOptions) -> int:
    """Sample and judge completions for held-out prompts."""
    from kernelblaster import evaluate_trained

    quieten()
    effective = configured({**asdict(judge), **asdict(given)}, file=judge.config, assignments=judge.assignments)
    with Progress() as progress:
        found = evaluate_trained(
            judge.directory,
            asked.weights,
            effective.config,
            stage=asked.stage,
            split=asked.split,
            against=asked.against,
            greedy=asked.greedy,
            dataset=judge.dataset_dir,
            on_stage=progress.tell,
            on_progress=lambda moment, step: progress.tell(f"prompt {step + 1}: {_AFTER.get(moment, 'the next one')}"),
        )
    if judge.json_output:
        terminal.print_json(found)
        return 0
    _show_arm(found)
    return 0


app.command("compare")(compare)


@app.command("serve")
def serve(
    directory: DirectoryArgument = Path("train"),
    base_model: Annotated[Path | None, setting("base_model")] = None,
    weights: Annotated[str, typer.Option("--weights", help="base, sft, frontend, midend or backend.")] = "midend",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 8001,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Requests that are answered at once.")] = 8,
    config: ConfigOption = None,
    assignments: SetOption = None,
) -> None:
    """Answer a search on this machine with a trained model, without vLLM; until Ctrl-C."""
    from kernelblaster import serve_trained

    quieten()
    effective = configured({"base_model": base_model}, file=config, assignments=assignments)
    serve_trained(
        directory,
        weights,
        effective.config,
        port=port,
        batch=batch,
        on_ready=lambda url: typer.echo(f"{weights} answers: kernelblaster run --base-url {url} --model {weights}"),
    )


@app.command("page")
def page(
    path: Annotated[Path, typer.Argument(callback=file_to_write, help="Where to write the page.")],
    directories: Annotated[list[Path], typer.Argument(help="Directories of trainings that differ in their seed.")],
) -> None:
    """Write curves of several trainings on one page, a line each."""
    from kernelblaster import write_training_page

    write_training_page(path, directories)
    typer.echo(path)


def _train(stage: str, judge: JudgeOptions, given: TrainOptions) -> int:
    from kernelblaster import train_stage

    quieten()
    effective = configured({**asdict(judge), **asdict(given)}, file=judge.config, assignments=judge.assignments)
    with Progress() as progress:
        record = train_stage(
            judge.directory,
            stage,
            effective.config,
            dataset=judge.dataset_dir,
            on_stage=progress.tell,
            on_step=_tell_step,
            on_progress=_Doing(progress, effective.config.train.steps),
        )
    if judge.json_output:
        terminal.print_json(record)
        return 0
    figures = record.metrics
    if figures is not None and figures.reward is not None:
        typer.echo(f"{figures.completions} completions judged, mean reward {figures.reward:.3f}")
    if record.left_out:
        longer = f"{record.left_out} of {record.rows + record.left_out} prompts were too long"
        typer.echo(f"{longer} (train.prompt_tokens={record.plan['prompt_tokens']}) and not asked")
    if record.updates < record.config.steps:
        typer.echo(f"{record.updates} of {record.config.steps} updates made: the same command continues")
    typer.echo(f"{judge.directory / 'report.html'} has the curves")
    return 0


def _show_arm(found: ArmFigures) -> None:
    typer.echo(
        f"{found.overall.completions} completions on {len(found.problems)} problems, of which each counts the same"
    )
    for name, one in found.estimates.items():
        typer.echo(f"{name}: {_interval(one)}")
    for name, one in found.differences.items():
        typer.echo(f"{name}, minus {found.against}: {_interval(one)}{'' if one.decided else ' (not decided)'}")
    if found.winners is not None:
        held = sum(one.gain > 1 for one in found.winners)
        typer.echo(f"{held} of {len(found.winners)} fastest kernels were faster again in fresh processes, and clean")
    if found.overall.machine_failures:
        typer.echo(f"the machine failed to judge {found.overall.machine_failures} more", err=True)


def _interval(one: Estimate) -> str:
    spread = "too few problems for an interval" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
    return f"{one.value:.3f} ({spread})"


_AFTER = {"generating": "writing completions", "generated": "judging", "judged": "updating", "saving": "saving"}
"""Moment of a stage -> what it does from then on."""


class _Doing:
    """Shows what a stage does now.

    Args:
        progress: where it is shown.
        steps: updates in all.
    """

    def __init__(self, progress: Progress, steps: int) -> None:
        self._progress = progress
        self._steps = steps
        progress.tell("loading the model")

    def __call__(self, moment: str, step: int) -> None:
        now = _AFTER.get(moment)
        place = step + 1 if moment in ("generating", "generated", "judged") else step
        self._progress.tell(f"update {place} of {self._steps}: {now}" if now else f"{step} updates made")


def _tell_step(step: int, figures: Metrics) -> None:
    told = {
        "reward": figures.reward, "correct": figures.correct_rate, "faster": figures.fast.get("1"),
        "hacks": figures.hack_rate, "cut off": figures.truncated_rate, "groups that differ": figures.informative_groups,
    }  # fmt: skip
    known = ", ".join(f"{name} {value:.2f}" for name, value in told.items() if value is not None)
    lost = f", {figures.machine_failures} not judged" if figures.machine_failures else ""
    typer.echo(f"step {step}: {known}{lost}", err=True)
