"""`kernelblaster train`: a writer of kernels, trained on the judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster.cli import terminal
from kernelblaster.cli.options import (
    DatasetOption,
    DeviceOption,
    GpuTypeOption,
    JsonOption,
    PrecisionOption,
    SizeOption,
)
from kernelblaster.cli.settings import ConfigOption, SetOption, configured

if TYPE_CHECKING:
    from kernelblaster import Card

app = typer.Typer(help="Train a writer of kernels on the judge, in two stages of GRPO.", no_args_is_help=True)

DirectoryArgument = Annotated[Path, typer.Argument(help="Directory of the training; the same again continues.")]
SourcesArgument = Annotated[
    list[Path] | None,
    typer.Argument(help="Recordings, and directories of runs; the shipped recordings if none is given."),
]


@app.command("data")
def data(
    directory: DirectoryArgument,
    sources: SourcesArgument = None,
    problems: Annotated[
        str | None, typer.Option("--problems", help="Names between commas, such as L1_23,L1_19; all if none is given.")
    ] = None,
    form: Annotated[str, typer.Option("--form", help="How much a prompt tells: full or short.")] = "full",
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    gpu_type: GpuTypeOption = None,
    size: SizeOption = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> None:
    """Write splits, prompts of both stages, and sets to learn from with their cards."""
    given = dict(locals())
    from kernelblaster import make_training_data

    made = make_training_data(
        directory,
        configured(given, file=config, assignments=assignments).config,
        sources=sources or None,
        problems=() if problems is None else problems.split(","),
        form=form,
        dataset=dataset_dir,
        on_stage=lambda stage: typer.echo(stage, err=True),
    )
    if json_output:
        terminal.print_json({"prompts": made.prompts, "sets": made.cards})
        return
    for name, rows in made.prompts.items():
        typer.echo(f"{name}: {rows} rows")
    _show(made.cards)


@app.command("export")
def export(
    directory: Annotated[Path, typer.Argument(help="Where to write.")],
    sources: SourcesArgument = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> None:
    """Write what recordings and runs hold as JSON lines for `datasets`, without held-out problems."""
    from kernelblaster import export_training_data

    cards = export_training_data(directory, sources or None, dataset=dataset_dir)
    if json_output:
        terminal.print_json(cards)
        return
    _show(cards)


def _show(cards: Sequence[Card]) -> None:
    for card in cards:
        typer.echo(f"{card.name}: {card.rows} rows of {len(card.problems)} problems")
    left_out = {why: count for card in cards for why, count in card.left_out.items()}
    if left_out:
        typer.echo(f"left out: {', '.join(f'{count} ({why})' for why, count in left_out.items())}", err=True)
