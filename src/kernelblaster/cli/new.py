"""`kernelblaster new`: begin a problem of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from kernelblaster.cli import terminal
from kernelblaster.errors import ExitCode


def new(
    directory: Annotated[Path, typer.Argument(metavar="NAME", help="Directory to make; its name is the problem's.")],
) -> int:
    """Make the directory of a problem of your own, ready to be judged and to be rewritten."""
    from kernelblaster import create_problem

    problem = create_problem(directory)
    console, name, argument = terminal.console(), escape(str(directory)), escape(shlex.quote(str(directory)))
    for path, holds in (
        (problem.reference_path, "what is computed, in PyTorch; sizes and scalars"),
        (problem.init_path, "the kernel to begin with"),
        (problem.driver_path, "what the launcher gets"),
    ):
        console.print(f"{name}/{path.name:14}{holds}", soft_wrap=True)
    console.print("It is correct as it is. Replace the computation in all three, then:")
    for command, does in (
        ("problems show", "its tensors and its launcher"),
        ("problems check", "judges the start"),
        ("problems audit", "would a trivial kernel pass?"),
        ("run --problem-dir", "makes it faster"),
    ):
        console.print(f"  kernelblaster {command} {argument}  [dim]# {does}[/]", soft_wrap=True)
    return int(ExitCode.OK)
