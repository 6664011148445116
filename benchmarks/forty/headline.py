"""What README.md says of the forty problems: one number and one picture, from the rows of the table."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from outcomes import Row, geometric_mean
from problems import REPOSITORY
from results_picture import DARK, LIGHT, Beside, picture

from kernelblaster.evaluation.timing.torch_mode import TorchMode

README = REPOSITORY / "README.md"
IMAGES = REPOSITORY / "docs" / "images"
BEGIN, END = "<!-- h200 -->\n", "<!-- /h200 -->\n"


def beside(rows: Sequence[Row]) -> Iterator[Beside]:
    """The rows that have a kernel of ours, in their order."""
    for row in rows:
        if row.own_us is not None:
            compiled = [us for mode, us in row.pytorch_us.items() if mode is not TorchMode.EAGER]
            eager = row.pytorch_us.get(TorchMode.EAGER)
            yield Beside(f"{row.name} {row.title}", row.own_us, eager, min(compiled, default=None), row.ended)


def headline(rows: Sequence[Row], gpu: str, torch: str) -> str:
    """What stands between the marks."""
    ratios, ended = [row.ratio for row in rows], sum(row.ended for row in rows)
    unmeasured = sum(row.own_us is None for row in rows)
    known = sorted({row.level for row in rows})
    levels = ", ".join(f"{_mean(rows, level):.2f} at level {level}" for level in known)
    return (
        f"**{geometric_mean(ratios):.2f} times** the speed of the fastest of PyTorch eager and torch.compile's modes: "
        f"geometric mean over\n{len(rows)} KernelBench problems at full shapes ({levels}; {gpu}, fp16, PyTorch "
        f"{torch},\nno library calls), two replies of a model a problem at most; faster on "
        f"{sum(ratio > 1 for ratio in ratios)} of {len(rows)}. {ended} searches have ended;\nthe others count "
        f"with what they have, {unmeasured} that have no measured kernel as 1. Kernels and PyTorch by one rule in two "
        "sittings.\n[docs/results/forty/results.md](docs/results/forty/results.md) has every time.\n\n<picture>\n"
        '  <source media="(prefers-color-scheme: dark)" srcset="docs/images/h200-dark.svg">\n'
        '  <img src="docs/images/h200.svg" alt="PyTorch\'s time over our kernel\'s, per problem">\n</picture>\n'
    )


def _mean(rows: Sequence[Row], level: int) -> float:
    return geometric_mean(row.ratio for row in rows if row.level == level)


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
