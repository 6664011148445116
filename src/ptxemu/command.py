"""The command: builds a program, runs it, reports on standard error, and says by its exit code how it ended.

`main` is `python -m ptxemu`; other command lines call `build_program` and `run_program` with options of theirs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxemu.errors import EmulatorError, InvalidInput, ProgramDoesNotBuild
from ptxemu.program.build import NOT_EMULATABLE_HINT
from ptxemu.program.result import RunResult
from ptxemu.program.run import DEFAULT_ARCH, EmulatedProgram
from ptxemu.program.source import is_source, looks_like_flag_of_nvcc
from ptxemu.report import Style, report_lines

FINDINGS, FAULTED, MISSING, TIMED_OUT, INTERRUPTED = 1, 1, 4, 124, 130
DESCRIPTION = """\
Run a CUDA program on the emulated GPU, and show what its kernels did.

nvcc compiles the program, the CPU executes its PTX. Standard streams are the program's own; the report goes to
standard error. The exit code is the program's; 128 + N when signal N killed it, 124 when it ran out of time.
1: it ended well, but a kernel failed or the checks found something; 2: it does not compile; 4: it needs what the
emulated GPU lacks.
"""


_IN_ORDER = (
    "; what waits for later work of the host or of another stream waits for ever, for all is done in program order"
)
_OUT_OF_REACH = "the host reaches device memory by cudaMemcpy alone; what cudaMallocManaged allocates, both sides reach"


@dataclass(frozen=True)
class CommandOptions:
    """What a person asks for.

    Attributes:
        program: a .cu file with a `main`.
        arguments: of the program.
        arch: `sm_80`, `sm_86`, `sm_89`, `sm_90` or `sm_100`.
        json_file: gets the list of launches with all their metrics.
        record: gets the whole `RunResult`.
        more: further CUDA and C++ files.
        include: further directories with headers.
        nvcc: flags of nvcc.
        lines: source lines to show of each kernel.
        checks: whether memory, races and barriers are checked.
        leaks: whether device memory that is never freed is a finding; implies `checks`.
        sample_millions: warp instructions of a launch that are enough, in millions; 0 executes every block.
        timeout_s: seconds that the program may run.
    """

    program: Path
    arguments: Sequence[str] = ()
    arch: str = DEFAULT_ARCH
    json_file: Path | None = None
    record: Path | None = None
    more: Sequence[Path] = ()
    include: Sequence[Path] = ()
    nvcc: Sequence[str] = ()
    lines: int = 0
    checks: bool = False
    leaks: bool = False
    sample_millions: float = 0.0
    timeout_s: float = 300.0


def build_program(options: CommandOptions, cache_root: Path | None = None) -> EmulatedProgram:
    """The program, linked with the stand-in runtime.

    Raises:
        InvalidInput: results could not be written where they should be, and what `EmulatedProgram.build` raises. The
            compiler's messages are on standard error then.
    """
    for target in (options.json_file, options.record):
        if target is not None and (target.is_dir() or not os.access(target.parent, os.W_OK)):
            raise InvalidInput(f"{target} cannot be written", hint="name a file in a directory that can be written")
    for flag in filter(looks_like_flag_of_nvcc, options.arguments):
        _complain_softly(f"{flag} goes to the program, as all behind --; flags of nvcc are given as --nvcc={flag}")
    try:
        return EmulatedProgram.build(
            options.program,
            more=options.more,
            arch=options.arch,
            include_dirs=options.include,
            nvcc_flags=options.nvcc,
            cache_root=cache_root,
        )
    except ProgramDoesNotBuild as error:
        sys.stderr.write(error.log)
        raise


def run_program(program: EmulatedProgram, options: CommandOptions) -> int:
    """Run it, write what was asked for, report, and return the exit code. Raises as `EmulatedProgram.run`."""
    result = program.run(
        options.arguments,
        timeout_s=options.timeout_s,
        checks=options.checks,
        leaks=options.leaks,
        lines=options.lines,
        sample=int(1e6 * options.sample_millions),
    )
    style = _style()
    for line in report_lines(result, style):
        print(line, file=sys.stderr)
    if options.json_file is not None:
        name = {"device": result.device.name}
        launches = [name | launch for launch in result.encoded()["launches"]]
        options.json_file.write_text(json.dumps(launches, indent=1) + "\n", encoding="utf-8")
    if options.record is not None:
        options.record.write_text(json.dumps(result.encoded(), indent=1) + "\n", encoding="utf-8")
    return _exit_code(result, options)


def _exit_code(result: RunResult, options: CommandOptions) -> int:
    """The exit code of the command; what is special about the program's end is told."""
    code = result.exit_code
    if code is None:
        doing = f": {result.running}" if result.running else ""
        message = f"{options.program} was still running after {options.timeout_s:g} s and was stopped{doing}"
        _complain(message, "give it a smaller size, or more time with --timeout" + (_IN_ORDER if doing else ""))
        return TIMED_OUT
    if code < 0:
        message = f"{options.program} was killed by {signal.Signals(-code).name}"
        if result.host_fault is not None:
            _complain(f"{message}: {result.host_fault}", _OUT_OF_REACH)
        else:
            _complain(message, "it crashed on the host; debug it with gdb")
        return 128 - code
    if result.missing:
        _complain(f"{options.program} needs {', '.join(result.missing)}", NOT_EMULATABLE_HINT)
        return MISSING
    if result.faults and code == 0:
        _complain(f"{options.program} ended with 0 although a kernel failed: {result.faults[0]}", "")
    return code or (FAULTED if result.faults else FINDINGS if result.findings else 0)


def _style() -> Style:
    return Style(colours=sys.stderr.isatty() and not os.environ.get("NO_COLOR"))


def _complain_softly(message: str) -> None:
    print(f"{_style().warning('warning:')} {message}", file=sys.stderr)


def _complain(message: str, hint: str) -> None:
    style = _style()
    print(f"{style.bad('error:')} {message}", file=sys.stderr)
    if hint:
        print(f"  {style.dim('->')} {hint}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code, having told what went wrong."""
    try:
        options = parse_options(sys.argv[1:] if argv is None else argv)
        if sys.stderr.isatty():
            print(_style().dim(f"building {options.program} for the emulated GPU"), file=sys.stderr)
        return run_program(build_program(options), options)
    except EmulatorError as error:
        _complain(error.message, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


def entry() -> None:
    """The console script."""
    sys.exit(main())


def parse_options(argv: Sequence[str]) -> CommandOptions:
    """Options of a command line; ends the process with code 2 where it cannot be read.

    What follows `--` goes to the program as it is.
    """
    own, after = _at_dashes(argv)
    parsed = _parser().parse_intermixed_args(list(own))
    further, arguments = sources_and_arguments([*parsed.arguments, *(["--", *after] if len(own) < len(argv) else [])])
    return CommandOptions(
        program=parsed.program,
        arguments=arguments,
        arch=parsed.arch,
        json_file=parsed.json,
        record=parsed.record,
        more=(*further, *parsed.more),
        include=tuple(parsed.include),
        nvcc=nvcc_flags(parsed.nvcc),
        lines=parsed.lines,
        checks=parsed.checks,
        leaks=parsed.leaks,
        sample_millions=parsed.sample,
        timeout_s=parsed.timeout,
    )


def sources_and_arguments(words: Sequence[str]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Further files of a program, by their names, and its arguments, of which all behind `--` are."""
    before, after = _at_dashes(words)
    sources = tuple(Path(word) for word in before if is_source(Path(word)))
    return sources, (*(word for word in before if not is_source(Path(word))), *after)


def _at_dashes(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before the first `--`, and what behind it."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def nvcc_flags(given: Sequence[str]) -> tuple[str, ...]:
    """Flags as a shell would separate them. Raises InvalidInput."""
    try:
        return tuple(flag for one in given for flag in shlex.split(one))
    except ValueError as error:
        raise InvalidInput(f"--nvcc does not read: {error}", hint="close all quotation marks") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ptxemu",
        usage="ptxemu [options] PROGRAM.cu [FILE.cu ...] [-- ARGUMENT ...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("program", type=Path, metavar="PROGRAM.cu", help="a CUDA program, one of whose files has a main")
    add(
        "arguments",
        nargs="*",
        metavar="ARGS",
        help="further .cu and C++ files; arguments of the program, -- before them",
    )
    add("--arch", default=DEFAULT_ARCH, help="sm_80, sm_86, sm_89, sm_90 or sm_100 (default %(default)s)")
    add("--checks", action=argparse.BooleanOptionalAction, default=False, help="check memory, races and barriers")
    add("--leaks", action="store_true", help="with the checks, find device memory that is never freed")
    add("--lines", type=_number(int, 0), default=0, metavar="N", help="show the N lines at which warps wait most")
    add("--json", type=Path, metavar="FILE", help="write the list of launches with all their metrics")
    add("--record", type=Path, metavar="FILE", help="write device, exit code, findings and launches")
    add("-I", "--include", type=Path, action="append", default=[], metavar="DIR", help="a directory with headers")
    add("--with", dest="more", type=Path, action="append", default=[], metavar="FILE", help="a further .cu or C++ file")
    add("--nvcc", action="append", default=[], metavar="FLAGS", help='flags of nvcc, as in --nvcc="-O2 -DN=8"')
    add(
        "--sample",
        type=_number(float, 0),
        default=0.0,
        metavar="M",
        help="millions of warp instructions that are enough of one launch: counts are scaled from some of its blocks,"
        " outputs are incomplete; 0: all blocks",
    )
    add("--timeout", type=_number(float, 1e-3), default=300.0, metavar="S", help="seconds (default %(default)s)")
    return parser


def _number(kind: Callable[[str], float], least: float) -> Callable[[str], float]:
    """Reads a finite number that is not below `least`."""

    def read(text: str) -> float:
        value = kind(text)
        if not math.isfinite(value) or value < least:
            raise argparse.ArgumentTypeError(f"{text} is not a finite number from {least:g} on")
        return value

    return read
