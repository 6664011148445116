"""`kernelblaster import` and `kernelblaster export`: problems and results in the formats of other tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli import terminal
from kernelblaster.cli.options import DatasetOption, JsonOption, PrecisionOption
from kernelblaster.cli.settings import configured
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode

RUN_RECORD = "run.json"


class Form(StrEnum):
    """The values of `--format`."""

    FLASHINFER = "flashinfer"
    SOL = "sol"


def import_problems(
    source: Annotated[
        Path, typer.Argument(help="A checkout of KernelBench, a FlashInfer-Bench trace set, or SOL-ExecBench problems.")
    ],
    directory: Annotated[Path, typer.Argument(help="Where the problem directories are made.")],
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", help="Import this definition, of KernelBench level1/019_ReLU, 19_ReLU or ReLU; may be repeated."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that were edited since they were imported, too.")
    ] = False,
    json_output: JsonOption = False,
) -> int:
    """Make problem directories of definitions. Exit code 1 when one of them cannot be a problem."""
    import kernelblaster as library

    report = library.import_problems(source, directory, names=name, overwrite=overwrite)
    if json_output:
        print_json(
            {
                "problems": [
                    {
                        "definition": one.definition,
                        "directory": str(one.directory),
                        "sizes": list(one.sizes),
                        "start": one.start,
                        "notes": list(one.notes),
                    }
                    for one in report.problems
                ],
                "refused": report.refused,
            }
        )
    else:
        console = terminal.console()
        for one in report.problems:
            start = f"start: {one.start}" if one.start else "no start"
            console.print(f"{one.definition}: {len(one.sizes)} sizes, {start}  {one.directory}", soft_wrap=True)
            for note in one.notes:
                console.print(f"  {note}", soft_wrap=True, markup=False)
        for definition, reason in report.refused.items():
            console.print(f"{definition} was not imported: {reason}", soft_wrap=True, markup=False)
    return int(ExitCode.FAILED if report.refused else ExitCode.OK)


def export(
    what: Annotated[str, typer.Argument(help="level1/23, a problem directory, or the directory of a run.")],
    directory: Annotated[Path, typer.Argument(help="Of the data set that is written, or added to.")],
    form: Annotated[Form, typer.Option("--format", help="Whose format.")],
    precision: PrecisionOption = None,
    emulated_times: Annotated[
        bool, typer.Option("--emulated-times", help="Export modelled times, under hardware marked as emulated.")
    ] = False,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Write a problem with its start, or all kernels and evaluations of a run, for another tool."""
    import kernelblaster as library

    if (Path(what) / RUN_RECORD).is_file():
        report = library.export_run(
            Path(what), directory, form=form.value, dataset_dir=dataset_dir, modelled_times=emulated_times
        )
    else:
        config = configured({"precision": precision}).config
        place = Path(what)
        report = library.export_problem(
            place if place.is_dir() else library.load_problem(what, dataset=dataset_dir or config.dataset),
            directory,
            form=form.value,
            precision=config.precision,
            modelled_times=emulated_times,
        )
    if json_output:
        print_json(vars(report))
    else:
        console = terminal.console()
        console.print(
            f"{', '.join(report.definitions) or 'nothing'}: {report.solutions} solutions, {report.traces} traces"
            f"  {directory}",
            soft_wrap=True,
        )
        for note in report.notes:
            console.print(f"  {note}", soft_wrap=True, markup=False)
    return int(ExitCode.OK)
