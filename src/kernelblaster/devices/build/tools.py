"""Runs compilers and binutils over what may be a candidate: isolated, bounded, with a clean environment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.sandbox.isolation import FileView, SystemView, named_in
from kernelblaster.sandbox.limits import CommandResult, Limits
from kernelblaster.sandbox.process import clean_environment, run
from kernelblaster.sandbox.text import printable_lines

COMPILE_TIMEOUT_S = 300.0
"""Template-heavy kernels take a minute; a template bomb takes for ever."""
OUTPUT_BYTES = 16 << 20
"""Read of what a tool has printed."""
LOG_CHARACTERS = 16_000
"""Kept of a log."""
COMPILER_LIMITS = Limits(
    memory_bytes=16 << 30, file_bytes=1 << 30, disk_bytes=4 << 30, tasks=128, output_bytes=64 << 20, forks=True
)


@dataclass(frozen=True)
class ToolStep:
    """A command of several that run in one sandbox.

    Attributes:
        argv: its words.
        output: the file that its standard output goes to, if any.
        errors: whether its standard error goes there, too.
        optional: whether the steps after it run although it failed.
    """

    argv: tuple[str, ...]
    output: str | None = None
    errors: bool = False
    optional: bool = False

    @property
    def line(self) -> str:
        """As a shell reads it."""
        line = shlex.join(self.argv)
        if self.output is not None:
            line = f"{line} > {shlex.quote(self.output)}{' 2>&1' if self.errors else ''}"
        return f"{{ {line} || true; }}" if self.optional else line


def run_tool(tools: Toolchain, argv: Sequence[str], scratch: Path, named: Sequence[str] = ()) -> CommandResult:
    """Run a compiler over what may be a candidate.

    It sees the toolchain, `scratch`, and what its arguments, and those in `named`, name: an assembler embeds any file
    that it sees.
    """
    return run(
        argv,
        timeout_s=COMPILE_TIMEOUT_S,
        limits=COMPILER_LIMITS,
        cwd=scratch,
        environment=clean_environment(scratch, {"LC_ALL": "C"}),
        view=FileView(readable=(*tools.directories, *named_in([*argv, *named])), system=SystemView.TOOLS),
    )


def run_tools(tools: Toolchain, steps: Sequence[ToolStep], scratch: Path) -> CommandResult:
    """Run tools one after the other until one fails, in one sandbox: to set it up takes longer than most of them."""
    script = " && ".join(step.line for step in steps)
    return run_tool(tools, ["/bin/sh", "-c", script], scratch, [word for step in steps for word in step.argv])


def tool_output(path: Path) -> str:
    """What a tool has printed of a candidate, in printable ASCII; of a long text the beginning and the end."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        beginning = file.read(OUTPUT_BYTES // 2)
        at = max(file.tell(), path.stat().st_size - OUTPUT_BYTES // 2)
        file.seek(at)
        return printable_lines(beginning + file.read(OUTPUT_BYTES // 2))


def is_cut_off(path: Path) -> bool:
    """Whether `tool_output` leaves something of a file out."""
    return path.exists() and path.stat().st_size > OUTPUT_BYTES


def bounded(log: str) -> str:
    """The beginning of a log, where compilers put the first error, and its end."""
    if len(log) <= LOG_CHARACTERS:
        return log
    half = LOG_CHARACTERS // 2
    return f"{log[:half]}\n... {len(log) - 2 * half} characters left out ...\n{log[-half:]}"


def first_error(log: str) -> str:
    """The first error message of compiler, assembler or linker, on one line."""
    match = re.search(r"^.*\b(?:[Ee]rror|[Ff]atal|multiple definition)\b.*$", log, re.MULTILINE)
    return match[0].strip()[:500] if match else "the compiler failed without an error message"


def undefined_reference(log: str) -> str | None:
    """`undefined: name, name`, of a linker's log; None when it names none."""
    names = dict.fromkeys(re.findall(r"undefined reference to [`']([^'`]+)'", log))
    return f"undefined: {', '.join(names)}" if names else None
