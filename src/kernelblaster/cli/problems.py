"""`kernelblaster problems`: list, show and audit problems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from kernelblaster import Precision, StandardWorkload
from kernelblaster.cli import terminal
from kernelblaster.cli.listing import listing
from kernelblaster.cli.options import DatasetOption, JsonOption, PrecisionOption
from kernelblaster.cli.problem_checks import check
from kernelblaster.cli.problem_times import baseline, best_cells, times_table
from kernelblaster.cli.selection import (
    NumbersOption,
    ProblemsArgument,
    SplitOption,
    SubsetOption,
    TagOption,
    select,
    that_declare,
)
from kernelblaster.cli.settings import configured
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode, ProblemError

if TYPE_CHECKING:
    from rich.table import Table

    from kernelblaster import Problem, PytorchTimes, TensorSpec

app = typer.Typer(help="List, show and audit problems.", no_args_is_help=True, add_completion=False)

app.command("check")(check)
app.command("baseline")(baseline)


def _facts(problem: Problem, times: list[PytorchTimes], mends: str | None) -> dict[str, object]:
    return {
        "problem": str(problem.id),
        "name": problem.name,
        "directory": str(problem.directory),
        "sizes": {str(size): values for size, values in problem.workloads.items()},
        "scalars": problem.scalars,
        "tags": problem.tags,
        "split": problem.split,
        "mends": mends,
        "weakly_verified": problem.weakly_verified,
        "pytorch": [row.model_dump(mode="json") for row in times],
    }


def _readable_mends(problem: Problem) -> str | None:
    """None, and a line on standard error, for notes that are damaged: the list has all other problems, and this one."""
    try:
        return problem.mends
    except ProblemError as error:
        typer.echo(error.message, err=True)
        return None


def _main_size(problem: Problem) -> str:
    """`full`, or the last that is declared; empty where a problem declares none."""
    return StandardWorkload.FULL if StandardWorkload.FULL in problem.workloads else [*problem.workloads, ""][-1]


def _told_size(problem: Problem, size: str) -> str:
    """`full: m=2048, k=1024`"""
    if not size:
        return ""
    return f"{size}: {', '.join(f'{name}={extent}' for name, extent in problem.workloads[size].items())}"


def _marked(problem: Problem, name: str) -> str:
    """The name, and that its driver judges itself where that is so."""
    return f"{name} (weakly verified)" if problem.weakly_verified else name


def _tensor_table(specs: Sequence[TensorSpec]) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="dim")
    for column in ("role", "tensor", "dtype", "shape", "MB"):
        table.add_column(column)
    for s in specs:
        table.add_row(s.role, s.name, s.dtype.label, " x ".join(map(str, s.shape)), f"{s.bytes / 1e6:,.1f}")
    return table


@app.command("list")
def list_problems(
    subset: SubsetOption = None,
    problem_numbers: NumbersOption = None,
    tag: TagOption = None,
    split: SplitOption = None,
    precision: PrecisionOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """List the problems of the data set, with PyTorch's times at full size where they are known."""
    from kernelblaster import known_times

    problems = select(dataset_dir, subset, problem_numbers, tag, split)
    known = {problem.id: known_times(problem) for problem in problems}
    if json_output:
        print_json([_facts(p, known[p.id], _readable_mends(p)) for p in problems])
        return int(ExitCode.OK)
    shown = {p.id: [row for row in known[p.id] if row.precision == (precision or Precision.FP16)] for p in problems}
    gpus = list(dict.fromkeys(row.gpu for rows in shown.values() for row in rows))
    timed = [f"PyTorch us, {precision or Precision.FP16}, {gpu}" for gpu in gpus]
    rows = [
        (
            str(problem.id),
            _marked(problem, problem.name),
            ", ".join(problem.tags),
            *best_cells(shown[problem.id], gpus),
            _told_size(problem, _main_size(problem)),
        )
        for problem in problems
    ]
    times = range(3, 3 + len(timed))
    for line in listing(("problem", "name", "tags", *timed, "size"), rows, terminal.width(), whole=(0, *times)):
        typer.echo(line)
    return int(ExitCode.OK)


@app.command("show")
def show(
    problem: Annotated[str, typer.Argument(help="level1/23, 23, 023_Softmax, or a directory.")],
    size: Annotated[
        str | None,
        typer.Option("--size", "--workload", help="Size whose tensors are listed; full or the last if not given."),
    ] = None,
    precision: PrecisionOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Show one problem: tensors at one size, what PyTorch and its start take there, launcher, where its files lie."""
    from kernelblaster import describe_tensors, known_starts, known_times, load_problem, read_launcher

    found = load_problem(problem, dataset=dataset_dir or configured().config.dataset)
    if size:
        found.require_reference()
    size, mends = size or _main_size(found), found.mends
    # One whose driver judges itself declares no tensors.
    specs = () if found.weakly_verified else describe_tensors(found, size, precision or Precision.FP16)
    launcher, times, starts = read_launcher(found), known_times(found, size=size), known_starts(found, size=size)
    if json_output:
        tensors = [
            {"name": s.name, "role": s.role, "dtype": s.dtype.label, "shape": s.shape, "bytes": s.bytes} for s in specs
        ]
        told_starts = [row.model_dump(mode="json") for row in starts]
        facts = {**_facts(found, times, mends), "starts": told_starts}
        print_json({**facts, "size": size, "launcher": launcher, "tensors": tensors})
        return int(ExitCode.OK)
    console = terminal.console()
    console.print(f"{escape(_marked(found, found.title))}  {escape(str(found.directory))}", soft_wrap=True)
    if found.tags:
        console.print(f"{', '.join(found.tags)} ({found.split})")
    if mends:
        console.print(escape(mends))
    if specs:
        console.print(_tensor_table(specs))
    for declared in found.workloads:
        told = _told_size(found, declared)
        console.print(f"{escape(told)}{'  (listed above)' if declared == size else ''}", soft_wrap=True)
    if times or starts:
        console.print(times_table(times, starts))
    console.print(launcher, markup=False, soft_wrap=True)
    return int(ExitCode.OK)


@app.command("audit")
def audit(
    problems: ProblemsArgument = None,
    subset: SubsetOption = None,
    problem_numbers: NumbersOption = None,
    tag: TagOption = None,
    split: SplitOption = None,
    precision: Annotated[
        Precision | None,
        typer.Option("--precision", help="In which kernels are held against it; all if not given."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--size", "--workload", help="At which size; if not given the cheap one. full needs a GPU."),
    ] = None,
    records: Annotated[
        Path | None, typer.Option(help="JSONL file of audits; what it holds of unchanged references is not repeated.")
    ] = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Fail problems that a trivial kernel would pass: constant, insensitive to an input, equal to zeros or a copy."""
    from kernelblaster import audit_problem, audit_problems
    from kernelblaster.cli.progress import Progress

    chosen = that_declare(select(dataset_dir, subset, problem_numbers, tag, split, problems), size)
    precisions = [precision] if precision else list(Precision)
    with Progress() as progress:
        audited = audit_problems(chosen, precisions, partial(audit_problem, size=size), records, progress.tell, size)
        findings = {one.problem: list(one.faults) for one in audited}
    if json_output:
        print_json(findings)
    else:
        console = terminal.console()
        for name, faults in findings.items():
            told = "[green]sound[/]" if not faults else f"[red]{escape('; '.join(faults))}[/]"
            console.print(f"{name}: {told}", soft_wrap=True)
    return int(ExitCode.FAILED if any(findings.values()) else ExitCode.OK)
