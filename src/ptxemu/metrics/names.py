"""The metrics that the emulator knows, by their Nsight Compute names, in the base unit that Nsight gives them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

GUESSED_INSTRUCTIONS = "ptxemu__inst_executed_guessed.pct"
"""The emulator's own metric, in percent of the instructions: those in code of which nothing tells how often it is
executed. Absent where there is none."""


class NsightMetric(StrEnum):
    """A metric name; a member is the string itself, and carries its `unit`."""

    unit: str

    def __new__(cls, name: str, unit: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.unit = unit
        return member

    DURATION = "gpu__time_duration.sum", "ns"
    ELAPSED_CYCLES = "sm__cycles_elapsed.max", "cycle"
    SM_THROUGHPUT = "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"
    MEMORY_THROUGHPUT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%"
    DRAM_THROUGHPUT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%"
    L1_THROUGHPUT = "l1tex__throughput.avg.pct_of_peak_sustained_active", "%"
    L2_THROUGHPUT = "lts__throughput.avg.pct_of_peak_sustained_elapsed", "%"
    DRAM_READ = "dram__bytes_read.sum", "byte"
    DRAM_WRITE = "dram__bytes_write.sum", "byte"
    L2_READ_SECTORS = "lts__t_sectors_op_read.sum", "sector"
    L2_WRITE_SECTORS = "lts__t_sectors_op_write.sum", "sector"
    L2_HIT_RATE = "lts__t_sector_hit_rate.pct", "%"
    L1_HIT_RATE = "l1tex__t_sector_hit_rate.pct", "%"
    GLOBAL_LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sector"
    GLOBAL_LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "request"
    GLOBAL_STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sector"
    GLOBAL_STORE_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "request"
    GLOBAL_ATOMIC_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", "request"
    GLOBAL_REDUCTION_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", "request"
    LOAD_SECTOR_USE = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "%"
    STORE_SECTOR_USE = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", "%"
    TMA_READ = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", "byte"
    TMA_WRITE = "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum", "byte"
    LOCAL_LOADS = "smsp__sass_inst_executed_op_local_ld.sum", "inst"
    LOCAL_STORES = "smsp__sass_inst_executed_op_local_st.sum", "inst"
    SHARED_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "wavefront"
    SHARED_LOAD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "wavefront"
    SHARED_STORE_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "wavefront"
    SHARED_LOAD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "wavefront"
    SHARED_STORE_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "wavefront"
    INSTRUCTIONS = "smsp__inst_executed.sum", "inst"
    THREADS_PER_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio", "ratio"
    BRANCH_UNIFORMITY = "smsp__sass_average_branch_targets_threads_uniform.pct", "%"
    ISSUE_ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active", "%"
    PIPE_FMA = "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "%"
    PIPE_ALU = "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", "%"
    PIPE_FP16 = "sm__inst_executed_pipe_fma_type_fp16.avg.pct_of_peak_sustained_active", "%"
    PIPE_FP64 = "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active", "%"
    PIPE_XU = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", "%"
    PIPE_LSU = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active", "%"
    PIPE_TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%"
    ACHIEVED_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active", "%"
    THEORETICAL_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct", "%"
    LIMIT_BLOCKS = "launch__occupancy_limit_blocks", "block"
    LIMIT_REGISTERS = "launch__occupancy_limit_registers", "block"
    LIMIT_SHARED = "launch__occupancy_limit_shared_mem", "block"
    LIMIT_WARPS = "launch__occupancy_limit_warps", "block"
    REGISTERS_PER_THREAD = "launch__registers_per_thread", "register/thread"
    SHARED_PER_BLOCK = "launch__shared_mem_per_block", "byte"
    SHARED_STATIC = "launch__shared_mem_per_block_static", "byte"
    SHARED_DYNAMIC = "launch__shared_mem_per_block_dynamic", "byte"
    GRID_SIZE = "launch__grid_size", "block"
    BLOCK_SIZE = "launch__block_size", "thread"
    WAVES = "launch__waves_per_multiprocessor", "ratio"
    STALL_LONG_SCOREBOARD = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "ratio"
    STALL_SHORT_SCOREBOARD = "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", "ratio"
    STALL_BARRIER = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "ratio"
    STALL_LG_THROTTLE = "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", "ratio"
    STALL_MIO_THROTTLE = "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", "ratio"
    STALL_MATH_THROTTLE = "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", "ratio"
    STALL_WAIT = "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "ratio"
    STALL_GMMA = "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio", "ratio"
