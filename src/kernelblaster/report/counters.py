"""Counters of the whole call before and after, as far as both or one of the profiles have them."""

from __future__ import annotations

from dataclasses import dataclass

from kernelblaster.devices.metrics import Metric
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.report.scales import short

_FRACTION = 0.05
"""Changes of a smaller share are none that stand out."""


@dataclass(frozen=True)
class Shown:
    """A metric as the table has it: its name here, the factor from Nsight's base unit, and which way is better."""

    metric: Metric
    label: str
    factor: float = 1.0
    unit: str = ""
    better: int = 0
    """1: more is better, -1: less is; 0: neither by itself."""


SHOWN = (
    Shown(Metric.DURATION, "time in kernels", 1e-3, "µs", -1),
    Shown(Metric.SM_THROUGHPUT, "compute, share of peak", 1, "%", 1),
    Shown(Metric.MEMORY_THROUGHPUT, "memory, share of peak", 1, "%", 1),
    Shown(Metric.DRAM_THROUGHPUT, "DRAM, share of peak", 1, "%", 1),
    Shown(Metric.PIPE_TENSOR, "tensor cores busy", 1, "%"),
    Shown(Metric.ISSUE_ACTIVE, "issue slots busy", 1, "%", 1),
    Shown(Metric.INSTRUCTIONS, "warp instructions", 1, "", -1),
    Shown(Metric.THREADS_PER_INSTRUCTION, "threads per instruction", 1, "", 1),
    Shown(Metric.DRAM_READ, "read from DRAM", 1, "B", -1),
    Shown(Metric.DRAM_WRITE, "written to DRAM", 1, "B", -1),
    Shown(Metric.L2_HIT_RATE, "L2 hits", 1, "%"),
    Shown(Metric.L1_HIT_RATE, "L1 hits", 1, "%"),
    Shown(Metric.GLOBAL_LOAD_REQUESTS, "global load requests", 1, "", -1),
    Shown(Metric.LOAD_SECTOR_USE, "bytes used of loaded sectors", 1, "%", 1),
    Shown(Metric.SHARED_LOAD_CONFLICTS, "bank conflicts, loads", 1, "", -1),
    Shown(Metric.ACHIEVED_OCCUPANCY, "occupancy, achieved", 1, "%"),
    Shown(Metric.REGISTERS_PER_THREAD, "registers per thread", 1, ""),
    Shown(Metric.SHARED_PER_BLOCK, "shared memory per block", 1, "B"),
    Shown(Metric.LOCAL_LOADS, "local loads (spills)", 1, "", -1),
    Shown(Metric.STALL_LONG_SCOREBOARD, "stalls: global memory", 1, "", -1),
    Shown(Metric.STALL_SHORT_SCOREBOARD, "stalls: shared memory", 1, "", -1),
    Shown(Metric.STALL_BARRIER, "stalls: barriers", 1, "", -1),
    Shown(Metric.STALL_WAIT, "stalls: fixed latency", 1, "", -1),
)


@dataclass(frozen=True)
class CounterRow:
    """A counter before and after.

    Attributes:
        before, after: with unit; empty where the profile lacks it.
        change: `good`, `bad` or `` (neither, or too small).
        shares: of the larger of the two, in percent, for bars.
    """

    label: str
    meaning: str
    before: str
    after: str
    change: str
    shares: tuple[float, float]


def counters(before: Evaluation | None, after: Evaluation | None) -> tuple[CounterRow, ...]:
    """The table; rows that neither profile has, and rows of zeros, are left out."""
    first, last = _totals(before), _totals(after)
    rows = []
    for shown in SHOWN:
        values = first.get(shown.metric), last.get(shown.metric)
        largest = max((abs(value) for value in values if value is not None), default=0.0)
        # The emulated device shares bytes out among launches: less than one is none.
        if largest >= (1.0 if shown.unit == "B" else 1e-9):
            rows.append(
                CounterRow(
                    label=shown.label,
                    meaning=f"{shown.metric}: {shown.metric.meaning}",
                    before=_text(values[0], shown),
                    after=_text(values[1], shown),
                    change=_change(values[0], values[1], shown.better),
                    shares=(_share(values[0], largest), _share(values[1], largest)),
                )
            )
    return tuple(rows)


def _totals(evaluation: Evaluation | None) -> dict[str, float]:
    return evaluation.profile.totals if evaluation is not None and evaluation.profile is not None else {}


def _share(value: float | None, largest: float) -> float:
    return 0.0 if value is None else round(100 * abs(value) / largest, 1)


def _change(before: float | None, after: float | None, better: int) -> str:
    if before is None or after is None or not better or abs(after - before) <= _FRACTION * max(abs(before), abs(after)):
        return ""
    return "good" if (after - before) * better > 0 else "bad"


def _text(value: float | None, shown: Shown) -> str:
    if value is None:
        return ""
    text = short(value * shown.factor)
    if not shown.unit:
        return text
    return f"{text}{shown.unit}" if text[-1:].isalpha() else f"{text} {shown.unit}"
