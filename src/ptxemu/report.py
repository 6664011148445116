"""How a run looks on a terminal: every kernel with its main metrics, findings, warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from ptxemu.metrics.lines import LineProfile
from ptxemu.metrics.names import NsightMetric
from ptxemu.metrics.profile import COUNTED, KernelLaunch
from ptxemu.program.result import RunResult

SHOWN_METRICS = (
    NsightMetric.DURATION,
    NsightMetric.SM_THROUGHPUT,
    NsightMetric.MEMORY_THROUGHPUT,
    NsightMetric.DRAM_READ,
    NsightMetric.DRAM_WRITE,
    NsightMetric.L1_HIT_RATE,
    NsightMetric.L2_HIT_RATE,
    NsightMetric.ACHIEVED_OCCUPANCY,
    NsightMetric.INSTRUCTIONS,
    NsightMetric.THREADS_PER_INSTRUCTION,
    NsightMetric.GLOBAL_LOAD_SECTORS,
    NsightMetric.GLOBAL_STORE_SECTORS,
    NsightMetric.LOAD_SECTOR_USE,
    NsightMetric.STORE_SECTOR_USE,
    NsightMetric.SHARED_WAVEFRONTS,
    NsightMetric.SHARED_LOAD_CONFLICTS,
    NsightMetric.SHARED_STORE_CONFLICTS,
    NsightMetric.REGISTERS_PER_THREAD,
)
SHOWN_GROUPS = 12
"""Kernels shown; equal launches of one kernel are one group."""
SOURCE_CHARACTERS = 60
_LINE_HEADINGS = (
    ("waiting", "warp", "global", "shared", "", ""),
    ("modelled", "instructions", "sectors", "wavefronts", "line", "source"),
)


@dataclass(frozen=True)
class Style:
    """Emphasis by ANSI escapes; none where the text does not go to a terminal that wants them."""

    colours: bool

    def bold(self, text: str) -> str:
        """A heading."""
        return self._in("1", text)

    def dim(self, text: str) -> str:
        """A remark."""
        return self._in("2", text)

    def good(self, text: str) -> str:
        """Nothing found."""
        return self._in("32", text)

    def bad(self, text: str) -> str:
        """An error or a finding."""
        return self._in("31", text)

    def warning(self, text: str) -> str:
        """What deserves a look."""
        return self._in("33", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours else text


def report_lines(result: RunResult, style: Style) -> Iterator[str]:
    """The report of a run, line by line."""
    count = "1 kernel launch" if len(result.launches) == 1 else f"{len(result.launches)} kernel launches"
    total = f"{count}, {result.kernels_us:.1f} us modelled"
    transfers = f", copies and fills {result.transfers_us:.1f} us modelled" if result.transfers_us else ""
    device = f"{style.bold(result.device.name)} ({result.device.arch})"
    yield f"{device}: {total}{transfers}; executed in {result.seconds:.1f} s"
    groups = _groups(result.launches)
    for launches in groups[:SHOWN_GROUPS]:
        yield from _group(launches, style)
    if len(groups) > SHOWN_GROUPS:
        yield style.dim(f"the longest {SHOWN_GROUPS} of {len(groups)} kernels; --json FILE writes all")
    yield from _findings(result, style)
    for warning in result.warnings:
        yield f"{style.warning('warning:')} {warning}"


def _findings(result: RunResult, style: Style) -> Iterator[str]:
    if result.findings is None:
        return
    for finding in result.findings:
        yield f"{style.bad(finding.tool)} {finding.place}: {finding.describe()}"
    found = len(result.findings)
    told = "nothing found" if found == 0 else "1 finding" if found == 1 else f"{found} findings"
    yield (style.bad if found else style.good)(f"checks: {told}")


def _groups(launches: Sequence[KernelLaunch]) -> list[list[KernelLaunch]]:
    """Launches of one kernel with one grid and block together; the longest group first."""
    found: dict[tuple[object, ...], list[KernelLaunch]] = {}
    for launch in launches:
        found.setdefault((launch.symbol, launch.grid, launch.block), []).append(launch)
    return sorted(found.values(), key=lambda group: -sum(_mean([one], NsightMetric.DURATION) or 0.0 for one in group))


def _mean(launches: Sequence[KernelLaunch], metric: NsightMetric) -> float | None:
    """Mean over launches; None when one of them lacks the metric."""
    values = [launch.metrics[metric] for launch in launches if metric in launch.metrics]
    return sum(values) / len(values) if len(values) == len(launches) else None


def _group(launches: Sequence[KernelLaunch], style: Style) -> Iterator[str]:
    first, count = launches[0], len(launches)
    times = f", {count} launches; means" if count > 1 else ""
    yield f"{style.bold(first.name)} {first.grid}x{first.block}{times}"
    rows = [
        (str(metric), _number(value), metric.unit, "" if metric in COUNTED else "modelled")
        for metric in SHOWN_METRICS
        if (value := _mean(launches, metric)) is not None
    ]
    yield from _table(rows, (str.ljust, str.rjust, str.ljust, str.ljust))
    for key, text in first.notes.items():
        yield f"  {key.replace('_', ' ')}: {text}"
    if first.lines:
        right, left = str.rjust, str.ljust
        yield from _table([*_LINE_HEADINGS, *map(_line, first.lines)], (right, right, right, right, left, left))


def _line(line: LineProfile) -> tuple[str, ...]:
    """A hot source line with its text."""
    counts = (line.instructions, line.global_sectors, line.shared_wavefronts)
    place = f"{PurePath(line.source_file).name}:{line.source_line}"
    text = _text(line.source_file, line.source_line)[:SOURCE_CHARACTERS]
    return f"{line.waiting_share:.0%}", *(f"{count:,}" for count in counts), place, text


def _table(rows: Sequence[Sequence[str]], justify: Sequence[Callable[[str, int], str]]) -> Iterator[str]:
    """Rows in aligned columns, two blanks apart and indented by two."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(justify))]
    for row in rows:
        cells = (pad(cell, width) for pad, cell, width in zip(justify, row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def _text(file: str, number: int) -> str:
    """A line of a source file; nothing where the file cannot be read any more."""
    path = Path(file)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return lines[number - 1].strip() if number <= len(lines) else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
