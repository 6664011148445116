"""`kernelblaster emulate`: run any CUDA program on the emulated GPU."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster.cli.errors import tell
from kernelblaster.cli.options import finite, positive
from kernelblaster.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from ptxemu.program.result import Emulation
    from ptxemu.program.run import EmulatedProgram


def emulate(
    program: Annotated[Path, typer.Argument(help="A CUDA program with its own main, one .cu file.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the program; put -- before them.", metavar="ARGS")
    ] = None,
    arch: Annotated[str, typer.Option("--arch", help="sm_80, sm_86, sm_89, sm_90 or sm_100.")] = "sm_90",
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the list of launches with all their metrics to this file.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Write device, exit code, findings and launches to this file.")
    ] = None,
    include: Annotated[
        list[Path] | None, typer.Option("--include", "-I", help="A further directory with headers; repeatable.")
    ] = None,
    lines: Annotated[
        int, typer.Option("--lines", min=0, help="Show the N source lines of each kernel at which warps wait most.")
    ] = 0,
    checks: Annotated[
        bool, typer.Option("--checks/--no-checks", help="Check memory, races and barriers; takes longer.")
    ] = False,
    sample: Annotated[
        float,
        typer.Option(
            min=0,
            callback=finite,
            help="Millions of warp instructions that are enough of one launch: counts are scaled from some of its"
            " blocks, outputs are incomplete. 0: all blocks.",
        ),
    ] = 0,
    timeout: Annotated[float, typer.Option(callback=positive, help="Seconds the program may run.")] = 300,
) -> int:
    """Run a CUDA program on the emulated GPU, and show what its kernels did.

    nvcc compiles the program, the CPU executes its PTX. Standard streams are the program's own; the report goes to
    standard error. The exit code is the program's; 128 + N when signal N killed it, 124 when it ran out of time.
    1: it ended well, but the checks found something; 2: it does not compile; 4: it needs what the emulated GPU lacks.
    """
    from kernelblaster.cli.emulation_report import print_emulation

    for target in (json_file, record):
        _refuse_unless_writable(target)
    built = _build(program, arch, include or ())
    emulation = built.run(arguments or (), timeout_s=timeout, checks=checks, lines=lines, sample=int(1e6 * sample))
    print_emulation(emulation)
    if json_file is not None:
        json_file.write_text(_launches(emulation), encoding="utf-8")
    if record is not None:
        record.write_text(emulation.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return _exit_code(program, emulation, timeout)


def _build(program: Path, arch: str, include: Sequence[Path]) -> EmulatedProgram:
    """The program, linked with the emulated runtime. Raises ProgramDoesNotBuild once the compiler's words are shown."""
    from kernelblaster.cli.progress import Progress
    from ptxemu.program.run import EmulatedProgram, ProgramDoesNotBuild

    try:
        with Progress() as progress:
            progress.tell(f"building {program} for the emulated GPU")
            return EmulatedProgram.build(program, arch=arch, include_dirs=include)
    except ProgramDoesNotBuild as error:
        sys.stderr.write(error.log)
        raise


def _exit_code(program: Path, emulation: Emulation, timeout_s: float) -> int:
    """The exit code of the command; what is special about the program's end is told."""
    code = emulation.exit_code
    if code is None:
        message = f"{program} was still running after {timeout_s:g} s and was stopped"
        tell(message, hint="give it a smaller size, or more time with --timeout")
        return int(ExitCode.TIMED_OUT)
    if code < 0:
        tell(f"{program} was killed by {signal.Signals(-code).name}", hint="it crashed on the host; debug it with gdb")
        return 128 - code
    return code or int(ExitCode.FAILED if emulation.findings else ExitCode.OK)


def _refuse_unless_writable(target: Path | None) -> None:
    """Raise UsageError before a program runs whose results could not be written."""
    if target is not None and (target.is_dir() or not os.access(target.parent, os.W_OK)):
        raise UsageError(f"{target} cannot be written", hint="name a file in a directory that can be written")


def _launches(emulation: Emulation) -> str:
    """A JSON list; each launch names its device, which says that it is emulated."""
    name = {"device": emulation.device.name}
    return json.dumps([name | launch.model_dump(mode="json") for launch in emulation.launches], indent=1) + "\n"
