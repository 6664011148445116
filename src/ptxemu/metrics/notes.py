"""What an emulated profile can say in words: the bottleneck, and where in the source it sits."""

from __future__ import annotations

from pathlib import PurePath

from ptxemu.counters.launch import EXECUTED, Access, LaunchRecord, MemoryInstruction, Space
from ptxemu.model.kernel import KernelEstimate

HOT_LINES = 3
_LEAST_GUESSED = 0.05
"""Share of the instructions that is worth a note."""


def notes(estimate: KernelEstimate) -> dict[str, str]:
    """Facts beside the numbers; a key is present only when there is something to say."""
    record = estimate.record
    found = {
        "sampled": _sampled(record),
        "guessed": _guessed(estimate),
        "occupancy_limiter": str(estimate.occupancy.limiter),
        "bound_by": str(estimate.bound),
        "hot_lines": _hot_lines(record),
        "sparse_access": _sparse_access(record),
        "bank_conflicts": _bank_conflicts(record),
    }
    if estimate.spills:
        resources = estimate.resources
        found["spills"] = f"{resources.spill_store_bytes} bytes stored, {resources.spill_load_bytes} bytes loaded"
    return {key: text for key, text in found.items() if text}


def _sampled(record: LaunchRecord) -> str:
    if record.executed_blocks is None:
        return ""
    share = record.executed_blocks / record.blocks
    return f"{share:.1%} of the blocks were executed; counts are scaled to all, outputs are incomplete"


def _guessed(estimate: KernelEstimate) -> str:
    machine = estimate.machine
    share = machine.guessed / machine.instructions if machine.instructions else 0.0
    if share < _LEAST_GUESSED:
        return ""
    return f"nothing tells how often {share:.0%} of the instructions are executed; counts and times rest on a guess"


def _hot_lines(record: LaunchRecord) -> str:
    """Source lines with most warp instructions."""
    hottest = sorted(record.lines, key=lambda line: line.warp_instructions, reverse=True)[:HOT_LINES]
    return ", ".join(
        f"{_place(line.source_file, line.source_line)} {line.warp_instructions / record.warp_instructions:.0%}"
        for line in hottest
    )


def _sparse_access(record: LaunchRecord) -> str:
    """The global access that wastes most sectors."""
    accesses = record.accesses((Space.GLOBAL, Space.GENERIC), (Access.LOAD, Access.STORE))
    worst = max(accesses, key=lambda one: one.sectors - one.ideal_sectors, default=None)
    if worst is None or worst.sectors <= worst.ideal_sectors:
        return ""
    return (
        f"{worst.op} at {_where(worst)}: {worst.sectors / worst.requests:.1f} sectors per request, "
        f"{worst.ideal_sectors / worst.requests:.1f} would do"
    )


def _bank_conflicts(record: LaunchRecord) -> str:
    """The shared access with most extra passes."""
    worst = max(record.accesses((Space.SHARED,), EXECUTED), key=lambda one: one.conflicts, default=None)
    if worst is None or worst.conflicts == 0:
        return ""
    return f"{worst.op} at {_where(worst)}: {worst.wavefronts / worst.requests:.1f} passes per request"


def _where(one: MemoryInstruction) -> str:
    if one.source_file and one.source_line:
        return _place(one.source_file, one.source_line)
    return f"PTX line {one.ptx_line}"


def _place(file: str, line: int) -> str:
    return f"{PurePath(file).name}:{line}"
