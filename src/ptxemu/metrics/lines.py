"""Where in the source a launch spends its instructions, its traffic and its waiting; needs `-lineinfo`.

Instructions, sectors and wavefronts are counted. The waiting share is an estimate: each instruction waits for the
latency of what it does (a load for L1 or DRAM by its hits, shared memory once a pass, anything else for the ALU),
divided by how many of its kind a warp usually keeps in flight. It says where warps of this launch stand, not how long
the launch takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ptxemu.counters.launch import EXECUTED, Access, LaunchRecord, MemoryInstruction, Space
from ptxemu.model.architecture import GpuModel, Latency

MEMORY_PARALLELISM = 4.0
"""Loads of one warp in flight together: nvcc unrolls simple loops by four."""
SHARED_PARALLELISM = 8.0
"""Shared-memory loads of one warp in flight together: inner loops over a tile are unrolled further."""
ARITHMETIC_PARALLELISM = 2.0
"""Independent arithmetic instructions of one warp."""
_DEVICE_SPACES = (Space.GLOBAL, Space.GENERIC, Space.LOCAL, Space.TEXTURE)


@dataclass(frozen=True)
class LineProfile:
    """One source line of one launch."""

    source_file: str
    source_line: int
    instructions: int
    """Warp instructions executed."""
    global_sectors: int
    """32-byte sectors of global and local loads, stores and atomics."""
    shared_wavefronts: int
    waiting_share: float
    """Part of all waiting of the launch, 0 to 1; modelled."""


def line_profiles(record: LaunchRecord, gpu: GpuModel, most: int) -> tuple[LineProfile, ...]:
    """The `most` lines with the largest share of waiting, largest first; none without line information."""
    accesses: dict[tuple[str, int], list[MemoryInstruction]] = {}
    for one in record.memory:
        if one.op in EXECUTED and one.source_file is not None and one.source_line is not None:
            accesses.setdefault((one.source_file, one.source_line), []).append(one)
    latency = gpu.architecture.latency
    waits = {
        (line.source_file, line.source_line): _wait(
            line.warp_instructions, accesses.get((line.source_file, line.source_line), ()), latency
        )
        for line in record.lines
    }
    total = sum(waits.values()) or 1.0
    profiles = [
        LineProfile(
            source_file=line.source_file,
            source_line=line.source_line,
            instructions=line.warp_instructions,
            global_sectors=sum(one.sectors for one in accesses.get(place, ()) if one.space in _DEVICE_SPACES),
            shared_wavefronts=sum(one.wavefronts for one in accesses.get(place, ()) if one.space is Space.SHARED),
            waiting_share=waits[place] / total,
        )
        for line in record.lines
        for place in [(line.source_file, line.source_line)]
    ]
    return tuple(sorted(profiles, key=lambda one: -one.waiting_share)[:most])


def _wait(instructions: int, accesses: Iterable[MemoryInstruction], latency: Latency) -> float:
    """Clocks that warps wait at one line, summed over warps."""
    clocks, plain = 0.0, instructions
    for one in accesses:
        if one.space is Space.SHARED:
            clocks += max(one.requests, one.wavefronts) * latency.shared / SHARED_PARALLELISM
        elif one.space not in _DEVICE_SPACES or one.op in (Access.STORE, Access.REDUCTION):
            continue
        elif one.op is Access.ATOMIC:
            clocks += one.requests * latency.atomic
        else:
            hits = one.l1_hit_sectors / one.sectors if one.sectors else 0.0
            mean = hits * latency.l1 + (1 - hits) * latency.dram
            clocks += one.requests * mean / MEMORY_PARALLELISM
        plain -= one.requests
    return clocks + max(0, plain) * latency.alu / ARITHMETIC_PARALLELISM
