"""What limits a kernel, where, and what to try, on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelblaster import Evaluation, short_name
from kernelblaster.cli import terminal

if TYPE_CHECKING:
    from kernelblaster import Advice

_CANDIDATE = re.compile(r"\bcandidate\.(?:cu|py)\b")
_HOT = re.compile(r"\bcandidate\.(?:cu|py):(\d+) (\d+)%")
_NOTES = {
    "sparse_access": "wasted sectors",
    "bank_conflicts": "bank conflicts",
    "spills": "spills",
    "occupancy_limiter": "occupancy is limited by",
}
_CODE_CHARACTERS = 90


def print_advice(evaluation: Evaluation, advice: Advice, source: str, file: str) -> None:
    """Print bottleneck, evidence, hot lines, faulty accesses and suggestions.

    Args:
        source: text of the kernel that was judged.
        file: what it is called here.
    """
    console = terminal.console()
    found = advice.bottleneck
    sure = f"confidence {found.confidence:.2f}" if found.confidence else "no rule holds"
    console.print(f"bottleneck: {found.state} ({sure}): {advice.meaning}", style="bold", markup=False, soft_wrap=True)
    for line in found.evidence:
        console.print(f"  {line}", markup=False, soft_wrap=True)
    for line in (*_hot_lines(evaluation, source, file), *_notes(evaluation, file)):
        console.print(line, markup=False, soft_wrap=True)
    if advice.suggestions:
        console.print("to try:", style="bold")
    for one in advice.suggestions:
        basis = f"from {one.attempts} attempts" if one.attempts else "a curated guess"
        console.print(
            f"  {one.technique}: {one.summary} ({one.expected_speedup:.2f}x expected, {basis})",
            markup=False,
            soft_wrap=True,
        )


def _hot_lines(evaluation: Evaluation, source: str, file: str) -> Iterator[str]:
    """The lines of the longest kernel with most warp instructions, as the profiler tells them."""
    kernels = evaluation.profile.longest_first() if evaluation.profile else []
    lines = source.splitlines()
    shares = _HOT.findall(kernels[0].notes.get("hot_lines", "")) if kernels else []
    if shares:
        yield "hot lines, by share of the longest kernel's warp instructions:"
    for number, percent in shares:
        code = lines[int(number) - 1].strip()[:_CODE_CHARACTERS] if int(number) <= len(lines) else ""
        yield f"  {percent:>3} %  {file}:{number}  {code}"


def _notes(evaluation: Evaluation, file: str) -> Iterator[str]:
    told = [
        f"{label}: {_CANDIDATE.sub(lambda _: file, kernel.notes[name])} ({short_name(kernel.name)})"
        for kernel in (evaluation.profile.kernels if evaluation.profile else [])
        for name, label in _NOTES.items()
        if name in kernel.notes
    ]
    yield from dict.fromkeys(told)
