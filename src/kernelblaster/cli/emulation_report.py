"""How the kernels of an emulated program look on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from kernelblaster.cli import terminal
from kernelblaster.devices.metrics import Metric
from ptxemu.metrics.lines import LineProfile
from ptxemu.metrics.profile import COUNTED
from ptxemu.program.result import Emulation, KernelLaunch

SHOWN_METRICS = (
    Metric.DURATION,
    Metric.SM_THROUGHPUT,
    Metric.MEMORY_THROUGHPUT,
    Metric.DRAM_READ,
    Metric.DRAM_WRITE,
    Metric.L1_HIT_RATE,
    Metric.L2_HIT_RATE,
    Metric.ACHIEVED_OCCUPANCY,
    Metric.INSTRUCTIONS,
    Metric.THREADS_PER_INSTRUCTION,
    Metric.GLOBAL_LOAD_SECTORS,
    Metric.GLOBAL_STORE_SECTORS,
    Metric.LOAD_SECTOR_USE,
    Metric.STORE_SECTOR_USE,
    Metric.SHARED_WAVEFRONTS,
    Metric.SHARED_LOAD_CONFLICTS,
    Metric.SHARED_STORE_CONFLICTS,
    Metric.REGISTERS_PER_THREAD,
)
SHOWN_GROUPS = 12
"""Kernels shown; equal launches of one kernel are one group."""

SOURCE_CHARACTERS = 60
_JUSTIFIED: tuple[JustifyMethod, ...] = ("left", "right", "left", "left")
"""Columns of metrics: name, value, unit, whether it is modelled."""


def print_emulation(emulation: Emulation) -> None:
    """Print every kernel with its main metrics on standard error."""
    console = terminal.console(stderr=True)
    groups = _groups(emulation.launches)
    device = escape(emulation.device.name)
    total = f"{len(emulation.launches)} kernel launches, {emulation.kernels_us:.1f} us modelled"
    transfers = f", copies and fills {emulation.transfers_us:.1f} us modelled" if emulation.transfers_us else ""
    console.print(
        f"[bold]{device}[/] ({emulation.device.arch}): {total}{transfers}; executed in {emulation.seconds:.1f} s",
        soft_wrap=True,
    )
    for launches in groups[:SHOWN_GROUPS]:
        _print_group(console, launches)
    if len(groups) > SHOWN_GROUPS:
        console.print(f"[dim]the longest {SHOWN_GROUPS} of {len(groups)} kernels; --json FILE writes all[/]")
    _print_findings(console, emulation)
    for warning in emulation.warnings:
        console.print(f"[yellow]warning:[/] {escape(warning)}", soft_wrap=True)


def _print_findings(console: Console, emulation: Emulation) -> None:
    if emulation.findings is None:
        return
    for finding in emulation.findings:
        console.print(f"[red]{finding.tool}[/] {finding.place}: {escape(finding.describe())}", soft_wrap=True)
    found = len(emulation.findings)
    style = "red" if found else "green"
    told = "nothing found" if found == 0 else "1 finding" if found == 1 else f"{found} findings"
    console.print(f"[{style}]checks: {told}[/]")


def _groups(launches: Sequence[KernelLaunch]) -> list[list[KernelLaunch]]:
    """Launches of one kernel with one grid and block together; the longest group first."""
    found: dict[tuple[object, ...], list[KernelLaunch]] = {}
    for launch in launches:
        found.setdefault((launch.symbol, launch.grid, launch.block), []).append(launch)
    return sorted(found.values(), key=lambda group: -sum(_mean([one], Metric.DURATION) or 0.0 for one in group))


def _mean(launches: Sequence[KernelLaunch], metric: Metric) -> float | None:
    """Mean over launches; None when one of them lacks the metric."""
    values = [launch.metrics[metric] for launch in launches if metric in launch.metrics]
    return sum(values) / len(values) if len(values) == len(launches) else None


def _print_group(console: Console, launches: Sequence[KernelLaunch]) -> None:
    first, count = launches[0], len(launches)
    times = f", {count} launches; means" if count > 1 else ""
    console.print(f"[bold]{escape(first.name)}[/] {first.grid}x{first.block}{times}", soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False)
    for justify in _JUSTIFIED:
        table.add_column(justify=justify)
    for metric in SHOWN_METRICS:
        value = _mean(launches, metric)
        if value is not None:
            table.add_row(str(metric), _number(value), metric.unit, "" if metric in COUNTED else "[dim]modelled[/]")
    console.print(Padding(table, (0, 0, 0, 2)))
    for key, text in first.notes.items():
        console.print(f"  {key.replace('_', ' ')}: {escape(text)}", soft_wrap=True)
    _print_lines(console, first.lines)


def _print_lines(console: Console, lines: Sequence[LineProfile]) -> None:
    """Hot lines of one launch with their text."""
    if not lines:
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("waiting\nmodelled", "warp\ninstructions", "global\nsectors", "shared\nwavefronts"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("line", no_wrap=True)
    table.add_column("source", no_wrap=True)
    for line in lines:
        counts = (line.instructions, line.global_sectors, line.shared_wavefronts)
        place = f"{PurePath(line.source_file).name}:{line.source_line}"
        text = escape(_text(line.source_file, line.source_line)[:SOURCE_CHARACTERS])
        table.add_row(f"{line.waiting_share:.0%}", *(f"{count:,}" for count in counts), place, text)
    console.print(Padding(table, (0, 0, 0, 2)))


def _text(file: str, number: int) -> str:
    """A line of a source file; nothing where the file cannot be read any more."""
    path = Path(file)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return lines[number - 1].strip() if number <= len(lines) else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
