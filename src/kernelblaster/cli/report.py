"""`kernelblaster report`: build the HTML page of a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.errors import ExitCode


def report(
    run_dir: Annotated[Path, typer.Argument(help="Directory of a run: the one that holds run.json.")],
) -> int:
    """Build report.html of a run again."""
    from kernelblaster import build_report

    typer.echo(build_report(run_dir))
    return int(ExitCode.OK)
