"""`kernelblaster train tiny | data | export`: what a model is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster.cli import terminal
from kernelblaster.cli.options import grouped
from kernelblaster.cli.settings import configured
from kernelblaster.cli.train_options import DirectoryArgument, JudgeOptions, quieten, tell

if TYPE_CHECKING:
    from kernelblaster import Card, TrainingData

SourcesArgument = Annotated[
    list[Path] | None,
    typer.Argument(help="Recordings, knowledge bases, directories of runs and trainings; what ships if none is given."),
]


@dataclass(frozen=True)
class DataOptions:
    """What `train data` is given beside."""

    sources: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            help="A recording, knowledge base, run or training; again for more. What ships if none is given.",
        ),
    ] = None
    problems: Annotated[
        str | None, typer.Option("--problems", help="Names such as L1_23,L1_19; all if none is given.")
    ] = None
    stages: Annotated[
        str,
        typer.Option("--stages", help="Whose prompts are written: frontend,midend,backend; the last profiles kernels."),
    ] = "frontend,midend"
    form: Annotated[str, typer.Option("--form", help="How much a prompt tells: full or short.")] = "full"
    template: Annotated[
        bool,
        typer.Option("--template", help="Problems for a tiny model instead: a reply is a letter that names a kernel."),
    ] = False
    language: Annotated[str, typer.Option("--language", help="What replies are written in: cuda or triton.")] = "cuda"


@dataclass(frozen=True)
class ExportOptions:
    """What `train export` is given beside."""

    sources: SourcesArgument = None
    judge: Annotated[
        bool, typer.Option("--judge", help="Judge replies without a verdict again, whether they are right.")
    ] = False


def tiny(
    directory: DirectoryArgument = Path("train"),
    seed: Annotated[int, typer.Option("--seed", help="Of the random weights.")] = 0,
) -> None:
    """Write a model of 0.1 million random weights, and settings by which it learns on two CPU cores in minutes."""
    from kernelblaster import write_tiny_model

    quieten()
    settings = write_tiny_model(directory, seed=seed)
    typer.echo(f"kernelblaster train data {directory} --template --config {settings}")


@grouped(JudgeOptions, DataOptions)
def data(judge: JudgeOptions, given: DataOptions) -> int:
    """Write splits, prompts of the stages, and sets to learn from with their cards."""
    from kernelblaster import make_template_data, make_training_data

    config = configured(asdict(judge), file=judge.config, assignments=judge.assignments).config
    posed = () if given.problems is None else given.problems.split(",")
    if given.template:
        made = make_template_data(
            judge.directory, config, problems=posed, stages=given.stages.split(","), dataset=judge.dataset_dir
        )
        return _told(judge, made)
    made = make_training_data(
        judge.directory,
        config,
        sources=given.sources or None,
        problems=posed,
        stages=given.stages.split(","),
        form=given.form,
        language=given.language,
        dataset=judge.dataset_dir,
        on_stage=tell,
    )
    return _told(judge, made)


def _told(judge: JudgeOptions, made: TrainingData) -> int:
    if judge.json_output:
        terminal.print_json({"prompts": made.prompts, "sets": made.cards})
        return 0
    for name, rows in made.prompts.items():
        typer.echo(f"{name}: {rows} rows")
    _show(made.cards)
    return 0


@grouped(JudgeOptions, ExportOptions)
def export(judge: JudgeOptions, given: ExportOptions) -> int:
    """Write what recordings and runs hold as JSON lines for `datasets`, without held-out problems."""
    from kernelblaster import export_training_data

    cards = export_training_data(
        judge.directory,
        given.sources or None,
        judge=given.judge,
        config=configured(asdict(judge), file=judge.config, assignments=judge.assignments).config,
        dataset=judge.dataset_dir,
        on_stage=tell,
    )
    if judge.json_output:
        terminal.print_json(cards)
        return 0
    _show(cards)
    return 0


def _show(cards: Sequence[Card]) -> None:
    for card in cards:
        typer.echo(f"{card.name}: {card.rows} rows of {len(card.problems)} problems")
    left_out = {why: count for card in cards for why, count in card.left_out.items()}
    if left_out:
        typer.echo(f"left out: {', '.join(f'{count} ({why})' for why, count in left_out.items())}", err=True)
