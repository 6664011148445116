"""`kernelblaster report`: build the HTML page of a run again, or one that compares several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli.options import file_to_write
from kernelblaster.errors import ExitCode


def report(
    run_dirs: Annotated[
        list[Path], typer.Argument(metavar="run_dir ...", help="Directories of runs: those that hold run.json.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            callback=file_to_write,
            help="Where the comparison of several runs goes, in a directory that is there.  [default: comparison.html]",
        ),
    ] = None,
) -> int:
    """Build report.html of a run again; of several runs comparison.html, which sets them side by side."""
    from kernelblaster import UsageError, build_report, compare_runs

    if len(run_dirs) == 1 and output is not None:
        raise UsageError("--output is for the comparison of several runs", hint="report.html lies in the run itself")
    typer.echo(build_report(run_dirs[0]) if len(run_dirs) == 1 else compare_runs(run_dirs, output))
    return int(ExitCode.OK)
