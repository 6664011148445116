"""`kernelblaster baseline`: PyTorch eager and in the modes of torch.compile beside start and final kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from kernelblaster import StandardWorkload
from kernelblaster.cli import terminal
from kernelblaster.cli.options import DatasetOption, JsonOption, PrecisionOption, finite
from kernelblaster.cli.selection import NumbersOption, ProblemsArgument, SplitOption, SubsetOption, TagOption, select
from kernelblaster.cli.settings import ConfigOption, SetOption, configured
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode


def baseline(
    problems: ProblemsArgument = None,
    subset: SubsetOption = None,
    problem_numbers: NumbersOption = None,
    tag: TagOption = None,
    split: SplitOption = None,
    root: Annotated[Path | None, typer.Option("--root", help="A run's directory: its final kernels take part.")] = None,
    precision: PrecisionOption = None,
    size: Annotated[str, typer.Option("--size", "--workload", help="Size that is timed.")] = StandardWorkload.FULL,
    device: Annotated[str, typer.Option("--device", help="PyTorch is timed on a GPU only.", metavar="KIND")] = "cuda",
    seconds: Annotated[float, typer.Option(min=0.1, callback=finite, help="Sampling time per problem.")] = 6.0,
    config: ConfigOption = None,
    assignments: SetOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Time start and final kernels beside PyTorch in turns, with 95 % intervals. Needs a GPU."""
    from kernelblaster import time_baselines
    from kernelblaster.cli.progress import Progress

    effective = configured({"precision": precision, "device": device}, file=config, assignments=assignments).config
    chosen = select(dataset_dir or effective.dataset, subset, problem_numbers, tag, split, problems)
    with Progress() as progress:
        timed = time_baselines(chosen, config=effective, root=root, size=size, seconds=seconds, on_stage=progress.tell)
        rows = list(timed)
    if json_output:
        print_json(rows)
        return int(ExitCode.OK)
    table = Table(title=f"{rows[0].device.name}, {effective.precision}, {size}: median us [95 %]", box=None)
    names = list(dict.fromkeys(name for row in rows for name in (*row.timings, *row.failures)))
    for column in ("problem", *names):
        table.add_column(column)
    for row in rows:
        cells = []
        for name in names:
            timing = row.timings.get(name)
            text = f"{timing.median_us:.1f} [{timing.low_us:.1f}, {timing.high_us:.1f}]" if timing else ""
            cells.append(text or row.failures.get(name, "")[:60])
        table.add_row(f"{row.problem} {row.name}", *cells)
    terminal.console().print(table)
    return int(ExitCode.OK)
