"""How many machine instructions a launch executes, and of which pipes, from the PTX instructions that were counted.

For launches whose machine code is not at hand; where it is, `machine/` reads it. ptxas merges some PTX instructions,
drops others (moves, address arithmetic), and expands a few into many (division, 64-bit integers). What an instruction
becomes depends on its surroundings; here each operation has one mean for all:

    machine instructions = sum over operations of executed x mean

The means are in `expansion.json`: fitted to what Nsight Compute counted of half of the conformance kernels on an H200,
as `benchmarks/ptxemu/emulator_fit.py` does. An operation that no kernel of that half executes keeps the mean it is
expected to have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ptxemu.counters.launch import EXECUTED, LaunchRecord, MachineCounts, Space
from ptxemu.decoding import decode
from ptxemu.machine.ptxas import PtxasResources
from ptxemu.model.traffic import DEVICE_SPACES

WARP = "warp"
"""What each warp executes beside its PTX: reading its place in the grid, and the stack pointer."""
_MEMORY_OPERATIONS = ("ld_", "st_", "atom_", "wmma_load", "wmma_store")


@dataclass(frozen=True)
class Means:
    """Machine instructions per executed operation, none negative: all of them, and those of three pipes."""

    instructions: float
    alu: float
    fma: float
    xu: float

    def __post_init__(self) -> None:
        if min(self.instructions, self.alu, self.fma, self.xu) < 0:
            raise ValueError(f"means are never negative: {self}")


@dataclass(frozen=True)
class Expected(Means):
    """Means of operations that the fit says nothing about."""

    operations: str
    """Regular expression of their whole names."""


@dataclass(frozen=True)
class ExpansionFile:
    """`expansion.json`: what is fitted, and for the rest the first entry that matches; the last matches everything."""

    format: str
    source: str
    fitted: dict[str, Means]
    expected: tuple[Expected, ...]

    def expected_of(self, name: str) -> Means:
        """Means of an operation before any fit."""
        return next(entry for entry in self.expected if re.fullmatch(entry.operations, name))


def executed(record: LaunchRecord) -> Iterator[tuple[str, int]]:
    """Operations with how often warps executed them, under the names that `expansion.json` has.

    Memory instructions go by space, access and width; those that read parameters become operands and are left out.
    """
    named = {name: count for name, count in record.operations.items() if not name.startswith(_MEMORY_OPERATIONS)}
    yield from named.items()
    for one in record.memory:
        if one.space is not Space.PARAM:
            yield f"{one.space}.{one.op}.{one.bytes_per_lane}", one.requests
    yield WARP, record.warps


def mean_machine_counts(record: LaunchRecord, resources: PtxasResources) -> MachineCounts:
    """What a launch executes as machine code whose text is not at hand.

    Each spill is taken to be executed once by each warp. A warp reads the index of its thread in each dimension of the
    block that has several.
    """
    counted = [(count, _mean(name)) for name, count in executed(record)]
    indices = record.warps * sum(1 for extent in record.block if extent > 1)
    shared = list(record.accesses((Space.SHARED,), EXECUTED))
    device = record.accesses(DEVICE_SPACES, EXECUTED)
    spill_loads, spill_stores = (
        size // 4 * record.warps for size in (resources.spill_load_bytes, resources.spill_store_bytes)
    )
    through_lsu = sum(one.requests for one in (*shared, *device)) + record.count("shfl")
    return MachineCounts(
        instructions=sum(count * mean.instructions for count, mean in counted),
        alu=sum(count * mean.alu for count, mean in counted),
        fma=sum(count * mean.fma for count, mean in counted),
        fma_heavy=0.0,
        halves=record.count("fp16"),
        xu=sum(count * mean.xu for count, mean in counted),
        lsu=through_lsu + spill_loads + spill_stores + indices,
        adu=record.count("bar") + record.warps,
        tensor_halves=0.0,
        shared_passes=sum(max(one.wavefronts, one.requests) for one in shared) + record.count("shfl") + indices,
        spill_loads=spill_loads,
        spill_stores=spill_stores,
    )


def read_expansion() -> ExpansionFile:
    """The file that comes with the package."""
    text = files("ptxemu.model").joinpath("expansion.json").read_text(encoding="utf-8")
    return decode(ExpansionFile, json.loads(text), strict=True)


_file = cache(read_expansion)


@cache
def _mean(name: str) -> Means:
    return _file().fitted.get(name) or _file().expected_of(name)
