"""How one evaluation looks on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernelblaster.devices.metrics import Metric
from kernelblaster.evaluation.types import Evaluation, Verdict

SHOWN_METRICS = (
    Metric.DURATION,
    Metric.DRAM_THROUGHPUT,
    Metric.SM_THROUGHPUT,
    Metric.DRAM_READ,
    Metric.DRAM_WRITE,
    Metric.L1_HIT_RATE,
    Metric.L2_HIT_RATE,
    Metric.INSTRUCTIONS,
)


def print_evaluation(evaluation: Evaluation) -> None:
    """Print verdict, errors, time and counters."""
    console = Console(highlight=False)
    style = "bold green" if evaluation.verdict is Verdict.CORRECT else "bold red"
    where = f"{evaluation.device_name}, {evaluation.precision}, {evaluation.size}"
    console.print(f"[{style}]{evaluation.verdict}[/] {evaluation.problem} on {escape(where)}")
    if evaluation.reason:
        console.print(escape(evaluation.reason))
    if evaluation.log:
        console.print(evaluation.log, markup=False, style="dim")
    _print_errors(console, evaluation)
    _print_time(console, evaluation)
    _print_profile(console, evaluation)
    for warning in evaluation.warnings:
        console.print(f"[yellow]warning:[/] {escape(warning)}")
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in evaluation.seconds.items())
    console.print(f"[dim]seconds: {stages}[/]")


def _print_errors(console: Console, evaluation: Evaluation) -> None:
    if not evaluation.errors:
        return
    table = Table(box=None, header_style="dim")
    for column in ("tensor", "size", "inputs", "max error", "norm error", "of budget", ""):
        table.add_column(column)
    for e in evaluation.errors:
        mark = "[green]ok[/]" if e.passed else "[red]over[/]"
        table.add_row(
            e.tensor, e.size, e.distribution, f"{e.max_error:.3g}", f"{e.norm_error:.3g}", f"{e.budget_ratio:.2f}", mark
        )
    console.print(table)


def _print_time(console: Console, evaluation: Evaluation) -> None:
    timing = evaluation.timing
    if timing is None:
        return
    how = "modelled" if timing.modelled else f"measured, {timing.samples} samples, cold L2"
    console.print(
        f"time: {timing.median_us:.2f} us [{timing.low_us:.2f}, {timing.high_us:.2f}] ({how}); "
        f"{timing.floor_fraction:.0%} of the roofline floor {timing.floor_us:.2f} us",
    )
    if evaluation.comparison is not None:
        c = evaluation.comparison
        console.print(f"against the rival: {c.speedup:.3f}x [{c.low:.3f}, {c.high:.3f}], {c.decision}")


def _print_profile(console: Console, evaluation: Evaluation) -> None:
    profile = evaluation.profile
    if profile is None:
        return
    table = Table(title=f"profile ({profile.source})", title_justify="left", box=None, header_style="dim")
    table.add_column("metric")
    for kernel in profile.kernels:
        table.add_column(kernel.name[:40], justify="right")
    for metric in SHOWN_METRICS:
        values = [kernel.metrics.get(metric) for kernel in profile.kernels]
        if any(value is not None for value in values):
            table.add_row(str(metric), *("" if value is None else f"{value:,.1f}" for value in values))
    console.print(table)
    for warning in profile.warnings:
        console.print(f"[yellow]warning:[/] {escape(warning)}")
