"""Source lines of places in a program's host code, by binutils' addr2line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from ptxemu.checks.findings import SourcePlace

_TIMEOUT_S = 60.0
_MADE_BY_NVCC = ".cudafe1."
"""In the names of files that nobody has written."""


def host_lines(
    program: Path, addresses: Sequence[int], system: Sequence[Path], kernels: Iterable[str] = ()
) -> list[SourcePlace | None]:
    """File and line of each address, from the program's beginning; None where it is not known or not its own code.

    Args:
        program: with line numbers, as nvcc's `-Xcompiler=-g1` leaves them.
        addresses: in it.
        system: directories whose headers count for the code that calls into them.
        kernels: readable names; the functions of the host that launch them have the same and are not looked at.
    """
    tool = shutil.which("addr2line")
    if tool is None:
        return [None] * len(addresses)
    done = subprocess.run(
        [tool, "--functions", "--demangle", "--inlines", "--addresses", "-e", str(program), *map(hex, addresses)],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    roots, stubs = (*(directory.resolve() for directory in system), Path("/usr")), {_base(one) for one in kernels}
    # Each address, then its function and line, and those into which that was inlined, the inner ones first.
    chains = re.split(r"^0x[0-9a-f]+\n", done.stdout, flags=re.MULTILINE)[1:]
    found = [next(_places(chain.splitlines(), roots, stubs), None) for chain in chains]
    return found if len(found) == len(addresses) else [None] * len(addresses)


def _places(lines: Sequence[str], system: Sequence[Path], stubs: Collection[str]) -> Iterator[SourcePlace]:
    """Of pairs of a function and `file:12` or `file:12 (discriminator 3)`; `??:0` is no place."""
    for function, line in zip(lines[::2], lines[1::2], strict=False):
        file, _, number = line.partition(" ")[0].rpartition(":")
        if _MADE_BY_NVCC in file or _base(function) in stubs:
            continue
        if number.isdigit() and number != "0" and not any(Path(file).resolve().is_relative_to(one) for one in system):
            yield file, int(number)


def _base(function: str) -> str:
    """A name without results, parameters and arguments of templates: addr2line leaves them out where it inlines."""
    return re.split(r"[(<]", function)[0].split()[-1] if function.split() else ""
