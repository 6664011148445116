"""`kernelblaster emulate`: run any CUDA program on the emulated GPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from kernelblaster.cli.options import finite, grouped, positive


@dataclass(frozen=True)
class EmulateOptions:
    """What a person asks for; the names are those of `ptxemu.command.CommandOptions`, which gets what is not None."""

    program: Annotated[Path, typer.Argument(help="A CUDA program, one of whose files has a main.")]
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="Further .cu and C++ files; arguments of the program, -- before them.", metavar="ARGS"),
    ] = None
    arch: Annotated[str, typer.Option("--arch", help="sm_80, sm_86, sm_89, sm_90 or sm_100.")] = "sm_90"
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the list of launches with all their metrics to this file.")
    ] = None
    record: Annotated[
        Path | None, typer.Option("--record", help="Write device, exit code, findings and launches to this file.")
    ] = None
    include: Annotated[
        list[Path] | None, typer.Option("--include", "-I", help="A further directory with headers; repeatable.")
    ] = None
    more: Annotated[
        list[Path] | None,
        typer.Option("--with", help="A further .cu or C++ file of the program; repeatable.", metavar="FILE"),
    ] = None
    nvcc: Annotated[
        list[str] | None, typer.Option("--nvcc", help='Flags of nvcc, as in --nvcc="-O2 -DN=8".', metavar="FLAGS")
    ] = None
    lines: Annotated[
        int, typer.Option("--lines", min=0, help="Show the N source lines of each kernel at which warps wait most.")
    ] = 0
    checks: Annotated[
        bool, typer.Option("--checks/--no-checks", help="Check memory, races and barriers; takes longer.")
    ] = False
    leaks: Annotated[bool, typer.Option("--leaks", help="With the checks, find device memory that is never freed.")] = (
        False
    )
    sample_millions: Annotated[
        float,
        typer.Option(
            "--sample",
            min=0,
            callback=finite,
            help="Millions of warp instructions that are enough of one launch: counts are scaled from some of its"
            " blocks, outputs are incomplete. 0: all blocks.",
        ),
    ] = 0
    timeout_s: Annotated[float, typer.Option("--timeout", callback=positive, help="Seconds the program may run.")] = 300


class EmulateCommand(TyperCommand):
    """Passes `--` on, behind which no word is a file of the program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Words as options and arguments."""
        at = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*args[:at], *["--"][: len(args) - at], *args[at:]])


@grouped(EmulateOptions)
def emulate(options: EmulateOptions) -> int:
    """Run a CUDA program on the emulated GPU, and show what its kernels did.

    nvcc compiles the program, the CPU executes its PTX. Standard streams are the program's own; the report goes to
    standard error. The exit code is the program's; 128 + N when signal N killed it, 124 when it ran out of time.
    1: it ended well, but a kernel failed or the checks found something; 2: it does not compile; 4: it needs what the
    emulated GPU lacks.
    """
    from kernelblaster import cache_dir, translated_errors
    from kernelblaster.cli.progress import Progress
    from ptxemu.command import CommandOptions, build_program, nvcc_flags, run_program, sources_and_arguments

    given = {name: value for name, value in vars(options).items() if value is not None}
    with translated_errors():
        further, arguments = sources_and_arguments(options.arguments or ())
        more = (*further, *(options.more or ()))
        command = CommandOptions(
            **given | {"arguments": arguments, "more": more, "nvcc": nvcc_flags(options.nvcc or ())}
        )
        with Progress() as progress:
            progress.tell(f"building {command.program} for the emulated GPU")
            built = build_program(command, cache_dir())
        return run_program(built, command)


app = typer.Typer(add_completion=False)
app.command("emulate", cls=EmulateCommand)(emulate)
