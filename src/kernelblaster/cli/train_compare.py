"""`kernelblaster train compare`: all arms of several trainings in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli import terminal
from kernelblaster.cli.options import JsonOption, file_to_write


def compare(
    directories: Annotated[list[Path], typer.Argument(help="Directories of trainings whose weights were evaluated.")],
    runs: Annotated[
        list[Path] | None,
        typer.Option("--run", help="Directory of a search without training, as an arm; again for more."),
    ] = None,
    stage: Annotated[str, typer.Option("--stage", help="Whose prompts: frontend, midend or backend.")] = "midend",
    split: Annotated[str, typer.Option("--split", help="heldout or train.")] = "heldout",
    against: Annotated[str, typer.Option("--against", help="The arm that differences are to; the first if none.")] = "",
    resampled: Annotated[
        str, typer.Option("--resample", help="What the bootstrap draws: problem, or family and problems in it.")
    ] = "problem",
    out: Annotated[
        Path | None, typer.Option("--out", callback=file_to_write, help="Write the table there, as Markdown.")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Compare weights of several trainings, seeds pooled, with intervals over problems; refuses what is not alike."""
    from kernelblaster import compare_trainings, markdown_of

    table = compare_trainings(
        directories, runs=runs or [], stage=stage, split=split, against=against, resampled=resampled, output=out
    )
    if json_output:
        terminal.print_json(table)
    elif out is None:
        typer.echo(markdown_of(table))
    else:
        typer.echo(out)
