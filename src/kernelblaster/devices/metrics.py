"""The metrics this product speaks of, by their Nsight Compute names.

One table: name, unit, how kernels combine into a whole call, meaning. Profilers fill these names, rules and
prompts read them; nothing else in the package spells a metric name. A metric that was not collected is absent
from a profile: this module holds no default values, and no thresholds (those belong to the knowledge base).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Unit(StrEnum):
    """Base unit of a metric as Nsight Compute reports it with `--print-units base`."""

    NANOSECOND = "ns"
    BYTE = "byte"
    CYCLE = "cycle"
    INSTRUCTION = "inst"
    SECTOR = "sector"
    REQUEST = "request"
    WAVEFRONT = "wavefront"
    PERCENT = "%"
    RATIO = "ratio"
    THREAD = "thread"
    BLOCK = "block"
    REGISTER = "register/thread"


class Rollup(StrEnum):
    """How the values of several kernels become one value of the call."""

    SUM = "sum"
    MEAN = "mean"
    """Mean weighted by `gpu__time_duration.sum`."""


class Metric(StrEnum):
    """A metric name; a member is the string itself, and carries `unit`, `rollup` and `meaning`."""

    unit: Unit
    rollup: Rollup
    meaning: str

    def __new__(cls, name: str, unit: Unit, rollup: Rollup, meaning: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.unit = unit
        member.rollup = rollup
        member.meaning = meaning
        return member

    # fmt: off
    # Time and speed of light
    DURATION = "gpu__time_duration.sum", Unit.NANOSECOND, Rollup.SUM, "time of the kernel on the GPU"
    ELAPSED_CYCLES = "sm__cycles_elapsed.max", Unit.CYCLE, Rollup.SUM, "SM clock cycles the kernel took"
    SM_THROUGHPUT = (
        "sm__throughput.avg.pct_of_peak_sustained_elapsed", Unit.PERCENT, Rollup.MEAN,
        "busiest unit inside the SMs against its peak: compute speed of light")
    MEMORY_THROUGHPUT = (
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", Unit.PERCENT, Rollup.MEAN,
        "busiest part of the memory system against its peak: memory speed of light")
    DRAM_THROUGHPUT = (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", Unit.PERCENT, Rollup.MEAN,
        "DRAM bandwidth against its peak")
    L1_THROUGHPUT = (
        "l1tex__throughput.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "L1/shared-memory unit against its peak")
    L2_THROUGHPUT = (
        "lts__throughput.avg.pct_of_peak_sustained_elapsed", Unit.PERCENT, Rollup.MEAN,
        "L2 cache against its peak")

    # DRAM, L2, L1
    DRAM_READ = "dram__bytes_read.sum", Unit.BYTE, Rollup.SUM, "bytes read from DRAM"
    DRAM_WRITE = "dram__bytes_write.sum", Unit.BYTE, Rollup.SUM, "bytes written to DRAM"
    L2_READ_SECTORS = "lts__t_sectors_op_read.sum", Unit.SECTOR, Rollup.SUM, "32-byte sectors read through L2"
    L2_WRITE_SECTORS = "lts__t_sectors_op_write.sum", Unit.SECTOR, Rollup.SUM, "32-byte sectors written through L2"
    L2_HIT_RATE = "lts__t_sector_hit_rate.pct", Unit.PERCENT, Rollup.MEAN, "sectors served by L2 without DRAM"
    L1_HIT_RATE = "l1tex__t_sector_hit_rate.pct", Unit.PERCENT, Rollup.MEAN, "sectors served by L1 without L2"
    GLOBAL_LOAD_SECTORS = (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", Unit.SECTOR, Rollup.SUM,
        "sectors that global loads asked for")
    GLOBAL_LOAD_REQUESTS = (
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", Unit.REQUEST, Rollup.SUM,
        "global load requests: warp instructions")
    GLOBAL_STORE_SECTORS = (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", Unit.SECTOR, Rollup.SUM,
        "sectors that global stores wrote")
    GLOBAL_STORE_REQUESTS = (
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", Unit.REQUEST, Rollup.SUM,
        "global store requests: warp instructions")
    GLOBAL_ATOMIC_REQUESTS = (
        "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", Unit.REQUEST, Rollup.SUM,
        "global atomics that return a value")
    GLOBAL_REDUCTION_REQUESTS = (
        "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", Unit.REQUEST, Rollup.SUM,
        "global atomics that return nothing")
    LOAD_SECTOR_USE = (
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", Unit.PERCENT, Rollup.MEAN,
        "share of each loaded 32-byte sector that threads asked for")
    STORE_SECTOR_USE = (
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", Unit.PERCENT, Rollup.MEAN,
        "share of each stored 32-byte sector that threads wrote")
    BULK_READ = (
        "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", Unit.BYTE, Rollup.SUM,
        "bytes that bulk copies (TMA) brought into shared memory")
    BULK_WRITE = (
        "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum", Unit.BYTE, Rollup.SUM,
        "bytes that bulk copies (TMA) wrote from shared memory")
    LOCAL_LOADS = (
        "smsp__sass_inst_executed_op_local_ld.sum", Unit.INSTRUCTION, Rollup.SUM,
        "loads from local memory: spills or indexed arrays")
    LOCAL_STORES = (
        "smsp__sass_inst_executed_op_local_st.sum", Unit.INSTRUCTION, Rollup.SUM,
        "stores to local memory: spills or indexed arrays")

    # Shared memory
    SHARED_WAVEFRONTS = (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", Unit.WAVEFRONT, Rollup.SUM,
        "passes through shared memory")
    SHARED_LOAD_WAVEFRONTS = (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", Unit.WAVEFRONT, Rollup.SUM,
        "passes of loads through shared memory")
    SHARED_STORE_WAVEFRONTS = (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", Unit.WAVEFRONT, Rollup.SUM,
        "passes of stores through shared memory")
    SHARED_LOAD_CONFLICTS = (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", Unit.WAVEFRONT, Rollup.SUM,
        "extra passes of shared loads because of bank conflicts")
    SHARED_STORE_CONFLICTS = (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", Unit.WAVEFRONT, Rollup.SUM,
        "extra passes of shared stores because of bank conflicts")

    # Instructions and pipes
    INSTRUCTIONS = "smsp__inst_executed.sum", Unit.INSTRUCTION, Rollup.SUM, "warp instructions executed"
    THREADS_PER_INSTRUCTION = (
        "smsp__thread_inst_executed_per_inst_executed.ratio", Unit.RATIO, Rollup.MEAN,
        "active threads per warp instruction; 32 without divergence")
    BRANCH_UNIFORMITY = (
        "smsp__sass_average_branch_targets_threads_uniform.pct", Unit.PERCENT, Rollup.MEAN,
        "branches on which all threads of the warp agreed")
    ISSUE_ACTIVE = (
        "smsp__issue_active.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "cycles in which a scheduler issued an instruction")
    PIPE_FMA = (
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "fp32 and integer multiply-add pipe")
    PIPE_ALU = (
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "integer, logic and comparison pipe")
    PIPE_FP16 = (
        "sm__inst_executed_pipe_fma_type_fp16.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "half-precision arithmetic outside the tensor cores; Nsight has it under this name from sm_86 on")
    PIPE_FP64 = (
        "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "double-precision pipe")
    PIPE_XU = (
        "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "transcendental functions and conversions")
    PIPE_LSU = (
        "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "load/store unit")
    PIPE_TENSOR = (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "tensor cores")

    # Occupancy and launch
    ACHIEVED_OCCUPANCY = (
        "sm__warps_active.avg.pct_of_peak_sustained_active", Unit.PERCENT, Rollup.MEAN,
        "warps resident on an SM against its limit, as achieved")
    THEORETICAL_OCCUPANCY = (
        "sm__maximum_warps_per_active_cycle_pct", Unit.PERCENT, Rollup.MEAN,
        "warps resident on an SM against its limit, as the launch allows")
    LIMIT_BLOCKS = "launch__occupancy_limit_blocks", Unit.BLOCK, Rollup.MEAN, "blocks per SM the hardware allows"
    LIMIT_REGISTERS = (
        "launch__occupancy_limit_registers", Unit.BLOCK, Rollup.MEAN, "blocks per SM that registers allow")
    LIMIT_SHARED = (
        "launch__occupancy_limit_shared_mem", Unit.BLOCK, Rollup.MEAN, "blocks per SM that shared memory allows")
    LIMIT_WARPS = "launch__occupancy_limit_warps", Unit.BLOCK, Rollup.MEAN, "blocks per SM that warp slots allow"
    REGISTERS_PER_THREAD = (
        "launch__registers_per_thread", Unit.REGISTER, Rollup.MEAN, "registers allocated per thread")
    SHARED_PER_BLOCK = (
        "launch__shared_mem_per_block", Unit.BYTE, Rollup.MEAN,
        "shared memory per block: static, dynamic and the driver's own")
    SHARED_STATIC = (
        "launch__shared_mem_per_block_static", Unit.BYTE, Rollup.MEAN, "statically declared shared memory per block")
    SHARED_DYNAMIC = (
        "launch__shared_mem_per_block_dynamic", Unit.BYTE, Rollup.MEAN, "shared memory per block asked for at launch")
    GRID_SIZE = "launch__grid_size", Unit.BLOCK, Rollup.MEAN, "blocks of the launch"
    BLOCK_SIZE = "launch__block_size", Unit.THREAD, Rollup.MEAN, "threads per block"
    WAVES = (
        "launch__waves_per_multiprocessor", Unit.RATIO, Rollup.MEAN,
        "blocks of the grid against blocks the whole GPU holds at once")

    # Why warps wait: average warps stalled per issued instruction
    STALL_LONG_SCOREBOARD = (
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for global or local memory")
    STALL_SHORT_SCOREBOARD = (
        "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for shared memory or the transcendental unit")
    STALL_BARRIER = (
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for the other warps of the block")
    STALL_LG_THROTTLE = (
        "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for room in the queue to global memory")
    STALL_MIO_THROTTLE = (
        "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for room in the shared-memory and special-function queue")
    STALL_MATH_THROTTLE = (
        "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for a busy arithmetic pipe")
    STALL_WAIT = (
        "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for a fixed-latency instruction")
    STALL_GMMA = (
        "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for warp-group products")
    STALL_MEMBAR = (
        "smsp__average_warps_issue_stalled_membar_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for a memory fence")
    STALL_BRANCH = (
        "smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for a branch to resolve")
    STALL_NO_INSTRUCTION = (
        "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio", Unit.RATIO, Rollup.MEAN,
        "waiting for instructions to be fetched")
    # fmt: on


_BY_NAME: dict[str, Metric] = {str(metric): metric for metric in Metric}


def rollup_of(name: str) -> Rollup:
    """How `name` combines over kernels: by the table, else sums for `.sum`, means for the rest."""
    known = _BY_NAME.get(name)
    if known is not None:
        return known.rollup
    return Rollup.SUM if name.endswith(".sum") else Rollup.MEAN
