"""`kernelblaster problems baseline`: how long PyTorch takes for many problems; and how times are shown."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster import Precision, StandardWorkload, TimesAgain, TorchMode
from kernelblaster.cli import terminal
from kernelblaster.cli.options import DatasetOption, JsonOption, finite
from kernelblaster.cli.selection import NumbersOption, ProblemsArgument, SplitOption, SubsetOption, TagOption, select
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from kernelblaster import CheckRecord, ModeTime, PytorchTimes

RECORDS = Path("out/pytorch_times.jsonl")
DEFAULT_MODES = [TorchMode.EAGER, TorchMode.COMPILE, TorchMode.REDUCE_OVERHEAD]


def baseline(
    problems: ProblemsArgument = None,
    subset: SubsetOption = None,
    problem_numbers: NumbersOption = None,
    tag: TagOption = None,
    split: SplitOption = None,
    precision: Annotated[
        list[Precision] | None, typer.Option("--precision", help="fp16, fp32 or bf16; repeatable; fp16 if not given.")
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option("--workload", "--size", help="Size, repeatable; full if not given.")
    ] = None,
    mode: Annotated[
        list[TorchMode] | None,
        typer.Option("--mode", help="Repeatable; all but max-autotune-no-cudagraphs if not given."),
    ] = None,
    records: Annotated[Path, typer.Option(help="JSONL file of times; what it holds is not timed again.")] = RECORDS,
    seconds: Annotated[float, typer.Option(min=0.05, callback=finite, help="Sampling time per row.")] = 0.5,
    jobs: Annotated[int, typer.Option(min=0, help="Processes that compile at once; 0: one per CPU core.")] = 0,
    minutes: Annotated[
        float | None, typer.Option(min=0, callback=finite, help="Begin no further row after this time.")
    ] = None,
    again: Annotated[
        TimesAgain | None,
        typer.Option("--again", help="Time once more what failed, rows with launches that were not hidden, or all."),
    ] = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Time PyTorch alone on each problem, and go on where an earlier call stopped. Needs a GPU."""
    from kernelblaster import TimesPlan, time_pytorch, wanted_rows
    from kernelblaster.cli.progress import Progress

    modes = mode or DEFAULT_MODES
    plan = TimesPlan(
        problems=select(dataset_dir, subset, problem_numbers, tag, split, problems),
        precisions=precision or [Precision.FP16],
        workloads=workload or [StandardWorkload.FULL],
        modes=modes,
        seconds=seconds,
        jobs=jobs or os.cpu_count() or 1,
        minutes=minutes,
        again=again,
    )
    wanted = wanted_rows(plan)
    if not wanted:
        raise UsageError("none of the problems declares that size", hint="see `problems list`")
    with Progress() as progress:
        found = list(time_pytorch(plan, records, progress.tell))
    failed = [row for row in found if row.failures]
    if json_output:
        print_json(found)
    else:
        console = terminal.console()
        for row in failed:
            told = "; ".join(f"{name}: {why}" for name, why in row.failures.items())
            console.print(f"{row.problem} {row.precision} {row.workload}: {told}", soft_wrap=True, markup=False)
        left = f", {wanted - len(found)} not timed yet" if wanted > len(found) else ""
        console.print(f"{len(found) - len(failed)} of {wanted} timed{left}; times in {records}", soft_wrap=True)
    return int(ExitCode.OK if len(found) - len(failed) == wanted else ExitCode.FAILED)


def best_cells(rows: Sequence[PytorchTimes], gpus: Sequence[str]) -> list[str]:
    """One problem's fastest mode on each of these GPUs, and the share of the attainable speed that it reaches."""
    found = {row.gpu: row for row in rows}
    cells = []
    for gpu in gpus:
        best = found[gpu].best if gpu in found else None
        if best is None:
            cells.append("")
        else:
            mode, time = best
            cells.append(f"{time.us:.1f} {mode}{_share(found[gpu].attainable_us, time.us)}{_host_bound(time)}")
    return cells


def times_table(rows: Sequence[PytorchTimes], starts: Sequence[CheckRecord]) -> Table:
    """Times of PyTorch's modes and of the start, with floor, attainable time and the share of it that each reaches.

    `launches`: the share of samples whose launches were not hidden, or that they were replayed as a CUDA graph.
    """
    from rich.table import Table

    versions = "\n".join(dict.fromkeys(told_versions(row) for row in rows if row.times))
    table = Table(
        box=None, header_style="dim", title="us: median [95 %]", title_justify="left",
        caption=versions or None, caption_justify="left",
    )  # fmt: skip
    for column in ("GPU", "precision", "size", "what", "device time", "wall time", "launches"):
        table.add_column(column, min_width=8 if column == "what" else None)
    for column in ("floor", "attainable", "of it"):
        table.add_column(column)
    for row in rows:
        bounds = ["" if us is None else f"{us:.1f}" for us in (row.floor_us, row.attainable_us)]
        for mode, time in row.times.items():
            device = f"{time.us:.1f} [{time.low_us:.1f}, {time.high_us:.1f}]"
            wall = f"{time.wall_us:.1f} [{time.wall_low_us:.1f}, {time.wall_high_us:.1f}]"
            share = _share(row.attainable_us, time.us).strip(" ()")
            table.add_row(row.gpu, row.precision, row.workload, mode, device, wall, launches(time), *bounds, share)
        for mode, reason in row.failures.items():
            table.add_row(row.gpu, row.precision, row.workload, mode, reason, "", "", *bounds, "")
    for start in starts:
        bounds = ["" if us is None else f"{us:.1f}" for us in (start.floor_us, start.attainable_us)]
        device = f"{start.median_us:.1f} [{start.low_us:.1f}, {start.high_us:.1f}]"
        share = _share(start.attainable_us, start.median_us or math.inf).strip(" ()")
        table.add_row(start.device, start.precision, start.workload, "init.cu", device, "", "", *bounds, share)
    return table


def launches(time: ModeTime) -> str:
    """How the launches of a mode were kept out of its device time, where that was not plain."""
    if time.graph:
        return "graph"
    told = f"{time.exposed_share:.0%} not hidden" if time.exposed else ""
    return f"{told}{_host_bound(time)}"


def told_versions(row: PytorchTimes) -> str:
    """What PyTorch was, and whether it multiplied in TF32."""
    parts = [f"PyTorch {row.torch}"]
    if row.settings is not None:
        found = row.settings
        parts += [f"CUDA {found.cuda}", f"cuDNN {found.cudnn}", f"Triton {found.triton}"]
    parts.append(f"driver {row.driver}")
    if row.settings is not None:
        matmul, cudnn = ("on" if used else "off" for used in (found.tf32_matmul, found.tf32_cudnn))
        parts.append(f"TF32: products {matmul}, cuDNN {cudnn}")
    return ", ".join(parts)


def _host_bound(time: ModeTime) -> str:
    return ", host-bound" if time.host_bound else ""


def _share(attainable_us: float | None, us: float) -> str:
    return "" if attainable_us is None else f" ({attainable_us / us:.0%})"
