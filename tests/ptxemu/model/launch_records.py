"""Synthetic launch records: plain kernels described by what each thread does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ptxemu.counters.launch import Access, LaunchRecord, MemoryInstruction, Space
from ptxemu.machine.ptxas import PtxasResources


def resources(name: str = "kernel", *, registers: int = 32, spill_bytes: int = 0) -> PtxasResources:
    """What ptxas would say."""
    return PtxasResources(
        name=f"{name}(float *)",
        symbol=name,
        registers=registers,
        shared_bytes=0,
        spill_store_bytes=spill_bytes,
        spill_load_bytes=spill_bytes,
        stack_bytes=0,
    )


def access(
    space: Space,
    op: Access,
    requests: int,
    *,
    bytes_per_lane: int = 4,
    sectors_per_request: float | None = None,
    hits: float = 0.0,
    ways: int = 1,
) -> MemoryInstruction:
    """A fully active warp access; `ways` multiplies shared passes, `sectors_per_request` spreads global ones."""
    ideal = requests * bytes_per_lane
    sectors = ideal if sectors_per_request is None else int(requests * sectors_per_request)
    on_device = space is not Space.SHARED
    lines = max(1, bytes_per_lane // 4)
    return MemoryInstruction(
        space=space,
        op=op,
        bytes_per_lane=bytes_per_lane,
        requests=requests,
        lanes=32 * requests,
        sectors=sectors if on_device else 0,
        ideal_sectors=ideal if on_device else 0,
        l1_hit_sectors=int(sectors * hits) if on_device else 0,
        l1_shared_sectors=0,
        missed_requests=round(requests * (1 - hits)) if on_device else 0,
        shared_requests=0,
        wavefronts=requests * lines * ways,
    )


OPERATIONS = {
    "int": "add_b32",
    "imad": "mad_lo_b32",
    "idiv": "div_s32",
    "fp32": "add_f32",
    "ffma": "fma_rn_f32",
    "fdiv": "div_rn_f32",
    "xu": "ex2_approx_ftz_f32",
    "cvt": "cvt_rn_f32_s32",
    "alu": "setp_lt_s32",
    "shfl": "shfl_down_b32",
    "bar": "bar_sync",
    "branch": "bra",
    "tensor": "mma_f16_f16",
}
"""An operation of each class; those of memory instructions follow from the accesses."""


def operations(classes: Mapping[str, int]) -> dict[str, int]:
    """One operation for each class."""
    return {OPERATIONS[name]: count for name, count in classes.items() if name in OPERATIONS}


def waits(classes: Mapping[str, int], memory: Sequence[MemoryInstruction], warps: int) -> dict[str, int]:
    """As of loops unrolled by four: a warp waits for its first load and each fourth, and for half its arithmetic."""
    loads = sum(one.requests for one in memory if one.space is Space.GLOBAL and one.op is Access.LOAD)
    shared = sum(one.requests for one in memory if one.space is Space.SHARED)
    arithmetic = sum(count for name, count in classes.items() if name in ("int", "fp32", "ffma", "alu", "imad"))
    return {
        "global": max(min(loads, warps), loads // 4),
        "shared": max(min(shared, warps), shared // 8),
        "arithmetic": arithmetic // 2,
        "division": sum(count for name, count in classes.items() if name in ("idiv", "fdiv")),
        "shuffle": classes.get("shfl", 0),
        "special": classes.get("xu", 0) // 2,
    }


@dataclass(frozen=True)
class Copy:
    """A copy kernel: each thread moves `per_thread` values of `width` bytes."""

    blocks: int
    threads: int = 256
    width: int = 4
    per_thread: int = 1
    sectors_per_load: float | None = None

    def record(self) -> LaunchRecord:
        """Its counts: about eight instructions to start, two integer ones and the access per value and side."""
        warps = self.blocks * self.threads // 32
        requests = warps * self.per_thread
        load = access(
            Space.GLOBAL,
            Access.LOAD,
            requests,
            bytes_per_lane=self.width,
            sectors_per_request=self.sectors_per_load,
        )
        store = access(Space.GLOBAL, Access.STORE, requests, bytes_per_lane=self.width)
        size = requests * 32 * self.width
        return launch(
            blocks=self.blocks,
            threads=self.threads,
            classes={"int": 8 * warps + 2 * requests, "ld_global": requests, "st_global": requests},
            memory=(load, store),
            unique_read_bytes=size,
            unique_write_bytes=size,
        )


def launch(
    *,
    blocks: int,
    threads: int = 256,
    classes: dict[str, int],
    memory: tuple[MemoryInstruction, ...] = (),
    unique_read_bytes: int = 0,
    unique_write_bytes: int = 0,
    static_shared: int = 0,
    branches: int = 0,
    divergent_branches: int = 0,
    tensor_fma: int = 0,
) -> LaunchRecord:
    """A record whose totals follow from its parts."""
    instructions = sum(classes.values())
    loads = [one for one in memory if one.space is Space.GLOBAL and one.op is Access.LOAD]
    stores = [one for one in memory if one.space is Space.GLOBAL and one.op is Access.STORE]
    return LaunchRecord(
        kernel="kernel",
        grid=(blocks, 1, 1),
        block=(threads, 1, 1),
        static_shared=static_shared,
        dynamic_shared=0,
        local_bytes=0,
        blocks=blocks,
        warps=blocks * -(-threads // 32),
        warp_instructions=instructions,
        thread_instructions=32 * instructions,
        classes=classes,
        thread_classes={name: 32 * count for name, count in classes.items()},
        operations=operations(classes),
        tensor_fma=tensor_fma,
        waits=waits(classes, memory, blocks * -(-threads // 32)),
        ptx_lines={},
        longest_warp_instructions=instructions * 32 // (blocks * threads),
        hottest_atomic_passes=0,
        memory=memory,
        l2_read_sectors=sum(one.sectors - one.l1_hit_sectors for one in loads),
        l2_write_sectors=sum(one.sectors for one in stores),
        unique_read_bytes=unique_read_bytes,
        unique_write_bytes=unique_write_bytes,
        branches=branches,
        divergent_branches=divergent_branches,
        barriers=classes.get("bar", 0),
    )
