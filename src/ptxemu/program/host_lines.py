"""Source lines of places in a program's host code, by binutils' addr2line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ptxemu.checks.findings import SourcePlace

_TIMEOUT_S = 60.0


def host_lines(program: Path, addresses: Sequence[int], system: Sequence[Path]) -> list[SourcePlace | None]:
    """File and line of each address, from the program's beginning; None where it is not known or not its own code.

    Args:
        program: with line numbers, as nvcc's `-Xcompiler=-g1` leaves them.
        addresses: in it.
        system: directories whose headers count for the code that calls into them.
    """
    tool = shutil.which("addr2line")
    if tool is None:
        return [None] * len(addresses)
    done = subprocess.run(
        [tool, "--inlines", "--addresses", "-e", str(program), *map(hex, addresses)],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    roots = (*(directory.resolve() for directory in system), Path("/usr"))
    # Each address, then its line and those into which that was inlined, the inner ones first.
    chains = re.split(r"^0x[0-9a-f]+\n", done.stdout, flags=re.MULTILINE)[1:]
    found = [next(_places(chain.splitlines(), roots), None) for chain in chains]
    return found if len(found) == len(addresses) else [None] * len(addresses)


def _places(lines: Sequence[str], system: Sequence[Path]) -> Iterator[SourcePlace]:
    """Of `file:12` or `file:12 (discriminator 3)`; `??:0` is no place."""
    for line in lines:
        file, _, number = line.partition(" ")[0].rpartition(":")
        if number.isdigit() and number != "0" and not any(Path(file).resolve().is_relative_to(one) for one in system):
            yield file, int(number)
