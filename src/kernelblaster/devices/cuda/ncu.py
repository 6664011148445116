"""Nsight Compute: which command collects the product's metrics, and how its CSV becomes kernel profiles.

One call of the launcher is profiled, between the harness' profiler marks, with an explicit list of metrics rather than
sections or sets: fewer replay passes. Clocks are left alone (`--clock-control none`). ncu gives each metric in several
rollups and thousands separators in every number; both are dealt with here. What ncu did not collect stays absent.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile

PERMISSION_ERROR = "ERR_NVGPUCTRPERM"
PERMISSION_HINT = (
    "allow counters for users (driver option NVreg_RestrictProfilingToAdminUsers=0), run as root, "
    "or give the container CAP_PERFMON (driver R565 or newer) or CAP_SYS_ADMIN"
)

WARMUP_KERNEL = "kb_warmup"
"""The harness' empty kernel, which ncu profiles before the candidate's call."""
_REASON_CHARACTERS = 300
NO_KERNEL = "ncu profiled no kernel: the call launched none"
MOST_LAUNCHES = 24
"""Of a call, the first launches are counted in full: each takes half a second and more, in forty passes."""
TIMES = (Metric.DURATION.value, Metric.DRAM_READ.value, Metric.DRAM_WRITE.value)
"""Of every launch of a longer call. They take one pass."""
_IDENTITY = ("ID", "Kernel Name", "Block Size", "Grid Size")
_UNKNOWN_METRIC = re.compile(r"Failed to find metric (?P<name>\S+)")


class NcuFailure(Exception):
    """ncu gave no usable profile. `reason` is one line; `permission` says that counters are not allowed here."""

    def __init__(self, reason: str, *, permission: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permission = permission


def ncu_command(ncu: Path, metrics: Iterable[str] | None = None, *, launches: int | None = None) -> list[str]:
    """Arguments to put before the program; CSV goes to standard output, in base units.

    Of its first `launches`, if given, after the harness' empty kernel.
    """
    names = ",".join(metrics if metrics is not None else [metric.value for metric in Metric])
    most = [] if launches is None else ["--launch-count", str(1 + launches)]
    return [
        str(ncu),
        *most,
        "--metrics",
        names,
        "--clock-control",
        "none",
        "--cache-control",
        "all",
        "--profile-from-start",
        "off",
        "--target-processes",
        "application-only",
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
    ]


def parse_csv(text: str, metrics: Iterable[str] | None = None) -> list[KernelProfile]:
    """Kernel profiles in launch order from the output of `ncu_command`, other lines around it included.

    Of the table's columns those in `metrics` are read, by default the product's.
    Raises NcuFailure when it holds no table, as when ncu was refused.
    """
    rows = list(csv.reader(io.StringIO("\n".join(line for line in text.splitlines() if line.startswith('"')))))
    if not rows or not all(name in rows[0] for name in _IDENTITY):
        raise _failure(text)
    header, body = rows[0], rows[1:]
    launches = [row for row in body if row and row[header.index("ID")].strip()]
    if not launches:
        raise NcuFailure(NO_KERNEL)
    names = [metric.value for metric in Metric] if metrics is None else list(metrics)
    return [_kernel(dict(zip(header, row, strict=True)), names) for row in launches]


def _kernel(cells: dict[str, str], names: Iterable[str]) -> KernelProfile:
    numbers = {name: _number(cells.get(name, "")) for name in names}
    return KernelProfile(
        name=cells["Kernel Name"],
        grid=_extents(cells["Grid Size"]),
        block=_extents(cells["Block Size"]),
        metrics={name: value for name, value in numbers.items() if value is not None},
    )


def _number(cell: str) -> float | None:
    """`5,592,677.33` -> 5592677.33; None for `n/a` and empty cells."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def _extents(cell: str) -> tuple[int, int, int]:
    """`(262144, 1, 1)` -> three integers."""
    x, y, z = (int(part) for part in re.findall(r"\d+", cell))
    return x, y, z


def _failure(text: str) -> NcuFailure:
    if PERMISSION_ERROR in text:
        return NcuFailure(f"ncu may not read counters here ({PERMISSION_ERROR})", permission=True)
    if "No kernels were profiled" in text:
        return NcuFailure(NO_KERNEL)
    errors = [line.removeprefix("==ERROR==").strip() for line in text.splitlines() if line.startswith("==ERROR==")]
    return NcuFailure(f"ncu failed: {' '.join(errors)[:_REASON_CHARACTERS] or text.strip()[-200:] or 'no output'}")


def unknown_metrics(text: str) -> frozenset[str]:
    """Metrics that this ncu said it does not know for this GPU."""
    return frozenset(match["name"].strip(",.'\"") for match in _UNKNOWN_METRIC.finditer(text))
