"""What README.md says of the forty problems: one number and one picture, from the rows of the table."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from outcomes import MODES, NEAR, Row, geometric_mean, of_level
from problems import FROM_NAIVE_START, REPOSITORY
from results_picture import DARK, LIGHT, Beside, picture

from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.runs.pytorch_baseline import FINAL

README = REPOSITORY / "README.md"
IMAGES = REPOSITORY / "docs" / "images"
BEGIN, END = "<!-- h200 -->\n", "<!-- /h200 -->\n"


def beside(rows: Sequence[Row]) -> Iterator[Beside]:
    """The rows that have a kernel of ours, in their order; of one sitting, where there is one."""
    for row in rows:
        name = f"{row.name} {row.title}"
        if row.near is not None:
            timed = {mode: row.near.us(mode) for mode in MODES if mode in row.near.times.timings}
            yield Beside(name, row.near.us(FINAL), timed.pop(TorchMode.EAGER), min(timed.values()), row.ended)
        elif row.own_us is not None:
            compiled = [us for mode, us in row.pytorch_us.items() if mode is not TorchMode.EAGER]
            eager = row.pytorch_us.get(TorchMode.EAGER)
            yield Beside(name, row.own_us, eager, min(compiled, default=None), row.ended)


def headline(rows: Sequence[Row], gpu: str, torch: str) -> str:
    """What stands between the marks."""
    ratios, known = [row.ratio for row in rows], sorted({row.level for row in rows})
    levels = ", ".join(
        f"{geometric_mean(row.ratio for row in of_level(rows, level)):.2f} at level {level}" for level in known
    )
    faster, surely = sum(ratio > 1 for ratio in ratios), sum(row.faster for row in rows)
    most = max(row.replies for row in rows)
    return (
        f"**{geometric_mean(ratios):.2f} times** the speed of the fastest of PyTorch eager, torch.compile, its "
        f"max-autotune and its\nreduce-overhead: geometric mean over {len(rows)} KernelBench problems at full shapes "
        f"({levels};\n{gpu}, fp16, PyTorch {torch}, no library calls).\n"
        f"Faster on {faster} of {len(rows)}, on {surely} beyond what intervals and "
        f"sittings leave open. One or two replies of a\nmodel a problem, more where PyTorch was still faster "
        f"({most} at most, repairs included){_unasked(rows)}; "
        f"{_begun(rows)} problems began from the kernels of two earlier\n"
        f"searches (152 exchanges). {_without_largest(rows).strip()}\n"
        f"{_unended(rows)}Kernels and PyTorch by one rule in two sittings{_near(rows)}.\n"
        "[docs/results/forty/results.md](docs/results/forty/results.md) has every time.\n\n<picture>\n"
        '  <source media="(prefers-color-scheme: dark)" srcset="docs/images/h200-dark.svg">\n'
        '  <img src="docs/images/h200.svg" alt="PyTorch\'s time over our kernel\'s, per problem">\n</picture>\n'
    )


def _near(rows: Sequence[Row]) -> str:
    near = sum(row.near is not None for row in rows)
    of = near + sum(row.near is None and abs(row.ratio - 1) <= NEAR for row in rows)
    return f"; {near} of {of} whose ratio is nearly 1 in turns in one" if near else ""


def _unasked(rows: Sequence[Row]) -> str:
    unasked = sum(row.replies == 0 for row in rows)
    return f", none for\n{unasked} whose start was near the attainable time" if unasked else ""


def _without_largest(rows: Sequence[Row]) -> str:
    largest = max(rows, key=lambda row: row.ratio)
    rest = [row for row in rows if row is not largest]
    if not rest:
        return ""
    told = f"it is {geometric_mean(row.ratio for row in rest):.2f}"
    beside_it = [row.ratio for row in of_level(rest, largest.level)]
    if beside_it:
        told += f", and level {largest.level} {geometric_mean(beside_it):.2f}"
    return f"Without {largest.name} ({largest.ratio:.0f} times) {told}. "


def _begun(rows: Sequence[Row]) -> int:
    """Problems whose start was a kernel that had been published for them."""
    return sum(row.name not in FROM_NAIVE_START for row in rows)


def _unended(rows: Sequence[Row]) -> str:
    ended = sum(row.ended for row in rows)
    if ended == len(rows):
        return ""
    unmeasured = sum(row.own_us is None for row in rows)
    missing = f", {unmeasured} without a measured kernel as 1" if unmeasured else ""
    return f"{ended} searches have ended; the others count with what they have{missing}.\n"


def with_headline(readme: str, rows: Sequence[Row], gpu: str, torch: str) -> str:
    """The README with it. Raises SystemExit where that has no marks."""
    told = headline(rows, gpu, torch)
    text, changed = re.subn(rf"{BEGIN}.*?{END}", lambda _: BEGIN + told + END, readme, flags=re.DOTALL)
    if changed != 1:
        raise SystemExit(f"README.md has no {BEGIN.strip()}")
    return text


def write(rows: Sequence[Row], gpu: str, torch: str) -> None:
    """Put number and picture where they are shipped."""
    drawn = list(beside(rows))
    for name, colours in (("h200.svg", LIGHT), ("h200-dark.svg", DARK)):
        (IMAGES / name).write_text(picture(drawn, colours), encoding="utf-8")
    README.write_text(with_headline(README.read_text(encoding="utf-8"), rows, gpu, torch), encoding="utf-8")
