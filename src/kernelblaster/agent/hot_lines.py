"""The source lines at which warps of the hottest kernel wait most, with their text."""

from __future__ import annotations

from kernelblaster.evaluation.results import Evaluation

LINES_SHOWN = 5
LEAST_SHARE = 0.03
"""Of a kernel's waiting; a line below is not worth telling."""
_CODE_CHARACTERS = 80


def hot_lines(evaluation: Evaluation, source: str) -> list[str]:
    """`34% (global memory): acc += a[k];`, the hottest first; empty where the profile knows no lines.

    The percentage is of the kernel's waiting; the reason is left out where none is known.

    Args:
        evaluation: of `source`.
        source: whose lines the profile numbers from 1.
    """
    kernels = evaluation.profile.longest_first() if evaluation.profile else []
    if not kernels:
        return []
    text = source.splitlines()
    found = sorted(kernels[0].lines, key=lambda line: (-line.waiting, line.line))
    return [
        f"{line.waiting:.0%}{f' ({line.reason})' if line.reason else ''}: {_code(text[line.line - 1])}"
        for line in found[:LINES_SHOWN]
        if line.waiting >= LEAST_SHARE and 0 < line.line <= len(text)
    ]


def _code(line: str) -> str:
    bare = " ".join(line.split())
    return bare if len(bare) <= _CODE_CHARACTERS else f"{bare[: _CODE_CHARACTERS - 3]}..."
