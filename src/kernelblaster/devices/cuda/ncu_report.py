"""What Nsight Compute says beyond metrics: results of its rules, and the source lines at which warps waited.

Both come from the report file of a profiling run, printed as CSV by a second start of ncu that needs no GPU: the page
`details` has a row per rule result, the page `source` (view `cuda,sass`) a table per kernel and file, in which a line
of source is followed by its machine instructions. Formats as ncu 2025.3 writes them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelblaster.devices.profiles import KernelProfile, RuleResult, SourceLine, SpeedupScope

SECTIONS = ("LaunchStats", "Occupancy", "WarpStateStats", "SourceCounters", "MemoryWorkloadAnalysis_Tables")
"""Sections whose rules estimate what mending would bring, and the samples per instruction."""
LINES_KEPT = 8
"""Source lines of a kernel that are kept, by their share of the samples."""
RULE_CHARACTERS = 240
"""Of a rule's explanation."""
_OPTIMISATION = "OPT"
"""Type of a rule result that names something to gain; others inform or warn."""
_SAMPLES = "Warp Stall Sampling (Not-issued Samples)"
_STALLS = {
    "stall_long_sb": "global memory",
    "stall_short_sb": "shared memory or special functions",
    "stall_barrier": "barrier",
    "stall_lg": "queue to global memory",
    "stall_mio": "queue to shared memory",
    "stall_math": "busy arithmetic pipe",
    "stall_gmma": "warp-group products",
    "stall_membar": "memory fence",
    "stall_wait": "fixed latency",
    "stall_no_inst": "instruction fetch",
    "stall_branch_resolving": "branch",
    "stall_drain": "stores",
    "stall_sleep": "sleep",
    "stall_tex": "texture queue",
}


def report_arguments(report: Path) -> list[str]:
    """Arguments of ncu that have it keep a report with rules and samples beside what it prints."""
    sections = [word for name in SECTIONS for word in ("--section", name)]
    return [*sections, "--apply-rules", "yes", "--force-overwrite", "--export", str(report)]


def page_command(ncu: Path, report: Path, page: str) -> list[str]:
    """A command that prints a page of a report: `raw`, `details` or `source`."""
    view = ["--print-source", "cuda,sass"] if page == "source" else []
    return [str(ncu), "--import", str(report), "--csv", "--page", page, "--print-units", "base", *view]


def parse_rules(text: str) -> dict[int, list[RuleResult]]:
    """Results of rules that name something to gain, by the number of the launch; other lines are passed over."""
    rows = list(csv.reader(io.StringIO("\n".join(line for line in text.splitlines() if line.startswith('"')))))
    if not rows or not {"ID", "Rule Name", "Rule Type"} <= set(rows[0]):
        return {}
    found: dict[int, list[RuleResult]] = {}
    for row in rows[1:]:
        cells = dict(zip(rows[0], row, strict=False))
        if cells.get("Rule Type") == _OPTIMISATION and cells["ID"].isdecimal():
            found.setdefault(int(cells["ID"]), []).append(_rule(cells))
    return found


def _rule(cells: dict[str, str]) -> RuleResult:
    scope, percent = cells.get("Estimated Speedup Type", ""), _percent(cells.get("Estimated Speedup", ""))
    known = scope in set(SpeedupScope) and percent is not None
    return RuleResult(
        rule=cells["Rule Name"],
        text=cells.get("Rule Description", "")[:RULE_CHARACTERS],
        percent=percent if known else None,
        scope=SpeedupScope(scope) if known else None,
    )


def _percent(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def parse_lines(text: str, kernels: Sequence[KernelProfile], candidate: str = "candidate") -> list[list[SourceLine]]:
    """Lines of the candidate's file at which warps of each launch waited, the most first.

    Tables come in the order of launches, one for each file that a kernel has lines of. A launch without a table has no
    lines. Shares are of all samples of a launch, those in other files included.

    Args:
        text: page `source`.
        kernels: launches of the report in order, all of them.
        candidate: name of the candidate's file without its suffix.
    """
    tables = list(_tables(text))
    found: list[list[SourceLine]] = []
    for kernel in kernels:
        own: dict[str, list[_Sampled]] = {}
        while tables and tables[0][1] == kernel.name and tables[0][0] not in own:
            path, _, lines = tables.pop(0)
            own[path] = lines
        total = sum(samples for lines in own.values() for _, samples, _ in lines)
        mine = [one for path, lines in own.items() if Path(path).stem == candidate for one in lines if one[1]]
        mine.sort(key=lambda one: (-one[1], one[0]))
        found.append([SourceLine(line=line, waiting=n / total, reason=why) for line, n, why in mine[:LINES_KEPT]])
    return found


_Sampled = tuple[int, int, str]
"""Line, samples of warps that did not issue there, what most of them waited for."""


def _tables(text: str) -> Iterator[tuple[str, str, list[_Sampled]]]:
    """Path, function and lines of each table."""
    path, function = "", ""
    header: list[str] = []
    lines: list[_Sampled] = []
    for row in csv.reader(io.StringIO(text)):
        if len(row) == 2 and row[0] == "File Path":
            if header:
                yield path, function, lines
            path, function, header, lines = row[1], "", [], []
        elif len(row) == 2 and row[0] == "Function Name":
            function = row[1]
        elif row[:1] == ["Line No"]:
            header = row
        elif header and row and row[0].isdecimal():
            lines.append(_sampled(int(row[0]), dict(zip(header, row, strict=False))))
    if header:
        yield path, function, lines


def _sampled(line: int, cells: dict[str, str]) -> _Sampled:
    stalls = {reason: _count(cells.get(f"{name} (Not Issued)", "")) for name, reason in _STALLS.items()}
    most = max(stalls, key=lambda reason: stalls[reason])
    return line, _count(cells.get(_SAMPLES, "")), most if stalls[most] else ""


def _count(cell: str) -> int:
    """Of a cell that may be empty or a dash."""
    digits = cell.replace(",", "")
    return int(digits) if digits.isdecimal() else 0
