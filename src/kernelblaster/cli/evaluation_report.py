"""How one evaluation looks on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from kernelblaster import Evaluation, Metric, Timing, Verdict, short_name
from kernelblaster.cli import terminal

SHOWN_METRICS = (
    (Metric.DURATION, "time, us", 1e-3),
    (Metric.SM_THROUGHPUT, "SM throughput, % of peak", 1.0),
    (Metric.DRAM_THROUGHPUT, "DRAM throughput, % of peak", 1.0),
    (Metric.DRAM_READ, "DRAM read, MB", 1e-6),
    (Metric.DRAM_WRITE, "DRAM written, MB", 1e-6),
    (Metric.L1_HIT_RATE, "L1 hit rate, %", 1.0),
    (Metric.L2_HIT_RATE, "L2 hit rate, %", 1.0),
    (Metric.INSTRUCTIONS, "warp instructions, thousands", 1e-3),
)
"""Metric, what it is called here, and the factor from Nsight's base unit."""
SHOWN_KERNELS = 4
BUILT_AS = "candidate.cu"
"""What compilers know every kernel by."""
_NAME_CHARACTERS = 32


def print_evaluation(evaluation: Evaluation, title: str, file: str = BUILT_AS) -> None:
    """Print verdict, errors, time and counters of the kernel that `title` names, and that tools shall call `file`."""
    console = terminal.console()
    style = "bold green" if evaluation.verdict is Verdict.CORRECT else "bold red"
    console.print(f"[bold]{escape(title)}[/]", soft_wrap=True)
    what = f"{evaluation.precision}, size {evaluation.workload}"
    if evaluation.weakly_verified:
        what = "types and sizes of its own driver"
    where = f"{evaluation.device_name}, {what}"
    weak = " [yellow](weakly verified)[/]" if evaluation.weakly_verified else ""
    console.print(f"[{style}]{evaluation.verdict}[/]{weak} on {escape(where)}", soft_wrap=True)
    if not evaluation.outputs_judged:
        console.print(f"[yellow]outputs were judged at smaller sizes, not at {evaluation.workload}[/]", soft_wrap=True)
    if evaluation.isolation is not None:
        company = ", verified beside others" if evaluation.in_company else ""
        console.print(f"[dim]isolation: {evaluation.isolation}{company}[/]", soft_wrap=True)
    if evaluation.reason:
        console.print(escape(evaluation.reason.replace(BUILT_AS, file)), soft_wrap=True)
    _print_log(console, evaluation, file)
    _print_errors(console, evaluation)
    _print_time(console, evaluation)
    _print_profile(console, evaluation)
    for warning in [*evaluation.warnings, *(evaluation.profile.warnings if evaluation.profile else [])]:
        console.print(f"[yellow]warning:[/] {escape(warning)}", soft_wrap=True)
    stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in evaluation.seconds.items())
    console.print(f"[dim]took: {stages}[/]", soft_wrap=True)


def _print_log(console: Console, evaluation: Evaluation, file: str) -> None:
    """Compiler or runtime output; its first line is left out where it repeats the reason."""
    lines = evaluation.log.splitlines()
    if lines and lines[0].strip() in evaluation.reason:
        del lines[0]
    for line in lines:
        console.print(f"  {line.replace(BUILT_AS, file)}", markup=False, style="dim", soft_wrap=True)


def _print_errors(console: Console, evaluation: Evaluation) -> None:
    if not evaluation.errors:
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("output", "size", "inputs", "max error", "norm error", "of budget"):
        table.add_column(column, justify="right" if "error" in column or "budget" in column else "left")
    for e in evaluation.errors:
        style = "" if e.passed else "red"
        figures = (f"{e.max_error:.3g}", f"{e.norm_error:.3g}", f"{e.budget_ratio:.0%}")
        table.add_row(e.tensor, e.workload, e.distribution, *figures, style=style)
    console.print(Padding(table, (0, 0, 0, 2)))


def _print_time(console: Console, evaluation: Evaluation) -> None:
    timing = evaluation.timing
    if timing is None:
        return
    console.print(f"time: {_interval(timing)}; {_bounds(timing)}", soft_wrap=True)
    _print_conditions(console, timing)
    c = evaluation.comparison
    if c is not None:
        style = {"faster": "green", "slower": "red"}.get(c.decision, "yellow")
        kind = "modelled" if c.candidate.modelled else "95 % interval"
        if c.sessions:
            kind = f"least and greatest of {len(c.sessions)} pairs of processes"
        console.print(
            f"baseline: {_interval(c.baseline)}; [{style}]{c.decision}[/], {c.speedup:.3f}x "
            f"\\[{c.low:.3f}, {c.high:.3f}] ({kind})",
            soft_wrap=True,
        )
        if c.batches is not None:
            launches = "" if c.batches.launches_hidden else ", launches included"
            console.print(
                f"[dim]{c.batches.calls} calls in a row: {c.batches.candidate_us:.2f} us each by the judge's own clock"
                f"{launches}; baseline {c.batches.baseline_us:.2f} us[/]",
                soft_wrap=True,
            )


def _bounds(timing: Timing) -> str:
    """How far from the two bounds a time is: what well-written code reaches, and what nothing can pass."""
    told = []
    if timing.attainable_us is not None:
        share = timing.attainable_us / timing.median_us
        told.append(f"{share:.0%} of the attainable speed (a well-written kernel: {timing.attainable_us:.2f} us)")
    if timing.floor_us is not None:
        told.append(f"roofline floor {timing.floor_us:.2f} us")
    return ", ".join(told) or "no bound is known"


def _print_conditions(console: Console, timing: Timing) -> None:
    known = timing.conditions
    if known is not None:
        console.print(
            f"[dim]SM clock {known.sm_mhz_low:.0f} to {known.sm_mhz_high:.0f} MHz, {known.temperature_high:.0f} "
            f"degrees Celsius; {known.discarded} blocks of samples thrown away at a lower one[/]",
            soft_wrap=True,
        )


def _interval(timing: Timing) -> str:
    if timing.modelled:
        return f"{timing.median_us:.2f} us, modelled{_sampled(timing.executed_share)}"
    return (
        f"{timing.median_us:.2f} us \\[{timing.low_us:.2f}, {timing.high_us:.2f}], measured "
        f"({timing.samples} samples, cold L2)"
    )


def _sampled(share: float) -> str:
    return f" from {share:.3g} of the blocks" if share < 1 else ""


def _print_profile(console: Console, evaluation: Evaluation) -> None:
    profile = evaluation.profile
    if profile is None or not profile.kernels:
        return
    hottest = profile.longest_first()[:SHOWN_KERNELS]
    counted = f"emulated: counts are counted{_sampled(profile.executed_share)}, times and rates modelled"
    source = counted if evaluation.device == "emulated" else "ncu"
    more = len(profile.kernels) - len(hottest)
    rest = f"; the longest {len(hottest)} of {len(profile.kernels)} launches" if more else ""
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column(f"counters ({profile.source})")
    for kernel in hottest:
        table.add_column(short_name(kernel.name)[:_NAME_CHARACTERS], justify="right")
    for metric, label, factor in SHOWN_METRICS:
        values = [kernel.metrics.get(metric) for kernel in hottest]
        if any(value is not None for value in values):
            table.add_row(label, *("" if value is None else f"{value * factor:,.1f}" for value in values))
    console.print(f"[dim]profile ({source}{rest})[/]", soft_wrap=True)
    console.print(Padding(table, (0, 0, 0, 2)))
