"""`kernelblaster baseline`: PyTorch eager and torch.compile beside start and final kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from kernelblaster.cli import terminal
from kernelblaster.cli.options import DatasetOption, DeviceOption, JsonOption, PrecisionOption, environment, finite
from kernelblaster.cli.terminal import print_json
from kernelblaster.config import RunConfig
from kernelblaster.errors import DeviceError, ExitCode, UsageError
from kernelblaster.problems.problem import Size


def baseline(
    problem_numbers: Annotated[str | None, typer.Option("--problem-numbers", help="N, N-M or a,b,c-d.")] = None,
    subset: Annotated[str | None, typer.Option("--subset", help="level1, level2 or level3, or a list of them.")] = None,
    root: Annotated[Path | None, typer.Option("--root", help="A run's directory: its final kernels take part.")] = None,
    precision: PrecisionOption = None,
    size: Annotated[str, typer.Option("--size", "--workload", help="Size that is timed.")] = Size.FULL,
    device: DeviceOption = "cuda",
    seconds: Annotated[float, typer.Option(min=0.1, callback=finite, help="Sampling time per problem.")] = 6.0,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Time PyTorch and kernels of one precision in turns, with 95 % intervals. Needs a GPU."""
    from kernelblaster.cli.progress import Progress
    from kernelblaster.evaluation.correctness.input_store import InputStore
    from kernelblaster.paths import data_dir
    from kernelblaster.problems.dataset import Dataset
    from kernelblaster.records.layout import FINAL_KERNEL
    from kernelblaster.runs.choices import choose_device
    from kernelblaster.runs.pytorch_baseline import FINAL, START, BaselinePlan, measure_baseline

    if root is not None and not root.is_dir():
        raise UsageError(f"there is no run at {root}", hint="give the directory that `run` named")
    env = environment()
    config = RunConfig(dataset=env.dataset, precision=precision or env.precision, device=device)
    problems = Dataset(dataset_dir or data_dir() / env.dataset).select(subset=subset, numbers=problem_numbers)
    rows = []
    with Progress() as progress:
        try:
            chosen = choose_device(config, progress.tell).device
        except DeviceError as error:
            raise DeviceError(error.message, hint="use a machine that has one: PyTorch is timed there only") from error
        for problem in problems:
            progress.tell(f"timing {problem.id} {problem.name}")
            kernels = {START: problem.init_path.read_text(encoding="utf-8")}
            final = root / f"level{problem.id.level}" / problem.slug / FINAL_KERNEL if root else None
            if final is not None and final.is_file():
                kernels[FINAL] = final.read_text(encoding="utf-8")
            with InputStore() as inputs:
                plan = BaselinePlan(kernels=kernels, seconds=seconds)
                rows.append(measure_baseline(problem, config.precision, size, chosen, inputs, plan))
    if json_output:
        print_json(rows)
        return int(ExitCode.OK)
    table = Table(title=f"{chosen.facts.name}, {config.precision}, {size}: median us [95 %]", box=None)
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
