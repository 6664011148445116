"""`kernelblaster problems check`: judge the starting kernels of many problems."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from kernelblaster import CheckAgain, Precision, StandardWorkload
from kernelblaster.cli import terminal
from kernelblaster.cli.options import DatasetOption, DeviceOption, GpuTypeOption, JsonOption, finite
from kernelblaster.cli.selection import NumbersOption, ProblemsArgument, SplitOption, SubsetOption, TagOption, select
from kernelblaster.cli.settings import ConfigOption, SetOption, configured
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from kernelblaster import CheckPlan

RECORDS = Path("out/problem_checks.jsonl")
WorkloadsOption = Annotated[
    list[str] | None,
    typer.Option("--workload", "--size", help="Size, repeatable; if not given small, or what a named problem has."),
]


def check(
    problems: ProblemsArgument = None,
    subset: SubsetOption = None,
    problem_numbers: NumbersOption = None,
    tag: TagOption = None,
    split: SplitOption = None,
    precision: Annotated[
        list[Precision] | None, typer.Option("--precision", help="fp16, fp32 or bf16; repeatable; all if not given.")
    ] = None,
    workload: WorkloadsOption = None,
    device: DeviceOption = None,
    gpu_type: GpuTypeOption = None,
    records: Annotated[Path, typer.Option(help="JSONL file of outcomes; what it holds is not judged again.")] = RECORDS,
    jobs: Annotated[int, typer.Option(min=0, help="Processes that judge; 0: one per CPU core.")] = 0,
    minutes: Annotated[
        float | None, typer.Option(min=0, callback=finite, help="Begin no further problem after this time.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.05, callback=finite, help="Timing per start, at most.")] = 0.5,
    again: Annotated[
        CheckAgain | None,
        typer.Option(
            "--again",
            help="Judge once more what was refused, or all; if not given, what an earlier judge refused.",
        ),
    ] = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Judge the start of each problem, go on where an earlier call stopped. Fails unless each has one that passes."""
    given = {"device": device, "gpu_type": gpu_type}
    effective = configured(given, file=config, assignments=assignments).config
    from kernelblaster import CheckPlan, check_problems
    from kernelblaster.cli.progress import Progress

    chosen = select(dataset_dir, subset, problem_numbers, tag, split, problems)
    sizes = workload or ([*dict.fromkeys(p.cheap_workload for p in chosen)] if problems else [StandardWorkload.SMALL])
    if not any(size in problem.workloads for problem in chosen for size in sizes):
        raise UsageError(f"none of the problems declares the size {', '.join(sizes)}", hint="see `problems list`")
    judged = [problem for problem in chosen if problem.has_start]
    for problem in chosen:
        if problem not in judged:
            typer.echo(f"{problem.title} has no {problem.init_file}: there is nothing to judge", err=True)
    if not judged:
        raise UsageError("none of the problems has a starting kernel", hint="write it, or have `run` search for it")
    plan = CheckPlan(
        problems=judged,
        precisions=precision or list(Precision),
        workloads=sizes,
        jobs=jobs or os.cpu_count() or 1,
        minutes=minutes,
        seconds=seconds,
        again=again,
    )
    found, console = [], terminal.console()
    with Progress() as progress:
        for record in check_problems(plan, effective, records, progress.tell):
            found.append(record)
            if not json_output and not record.passed:
                line = f"{record.title} {record.precision} {record.workload}: {record.verdict}"
                console.print(f"[red]{escape(f'{line}: {record.reason}')}[/]", soft_wrap=True)
                if record.hint:
                    console.print(f"  -> {record.hint}", markup=False, soft_wrap=True)
    passed, wanted = sum(record.passed for record in found), _wanted(plan)
    if json_output:
        print_json(found)
    else:
        left = f", {wanted - len(found)} not judged yet" if wanted > len(found) else ""
        console.print(f"{passed} of {wanted} correct{left}; outcomes in {records}", soft_wrap=True)
    return int(ExitCode.OK if passed == wanted and len(judged) == len(chosen) else ExitCode.FAILED)


def _wanted(plan: CheckPlan) -> int:
    """How many verdicts a plan asks for: problems have the precisions and sizes that they declare."""
    return sum(
        len(set(plan.precisions) & set(p.precisions)) * len(set(plan.workloads) & set(p.workloads))
        for p in plan.problems
    )
