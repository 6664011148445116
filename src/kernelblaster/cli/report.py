"""`kernelblaster report`: build the HTML page of a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from kernelblaster.errors import ExitCode, UsageError


def report(
    run_dir: Annotated[Path, typer.Argument(help="Directory of a run: the one that holds summary.json.")],
) -> int:
    """Build report.html of a run again."""
    from kernelblaster.records.layout import RunLayout
    from kernelblaster.records.summary import RunSummary
    from kernelblaster.report.build import write_report

    path = run_dir / "summary.json"
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist",
            hint="give the directory that `run` named; one that was cut off writes it when it is continued",
        )
    try:
        summary = RunSummary.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path} is damaged", hint="give the same `run` command again; it writes it anew") from error
    layout = RunLayout(experiment=run_dir.resolve().parent, run=run_dir.resolve())
    typer.echo(write_report(summary, layout))
    return int(ExitCode.OK)
