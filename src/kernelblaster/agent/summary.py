"""An evaluation as a few lines of text for a prompt: the hottest kernels, the metrics that explain them, the time.

A metric that was not collected is not mentioned.
"""

from __future__ import annotations

import math

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, KernelResources
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.replay.transition import metric_deltas, telling_changes

_HOTTEST = 3
_WARP = 32
_REGISTER_UNIT = 8
_MOST_REGISTERS = 255
"""Per thread, on every architecture from sm_35 on."""
_NAME_CHARACTERS = 60
_WARNING_CHARACTERS = 240
_STALLS_SHOWN = 3
_LINES_NOTE = "hot_lines"
"""Told apart, with the lines' text."""

_LINES: tuple[tuple[str, tuple[tuple[Metric, str], ...]], ...] = (
    (
        "speed of light %",
        (
            (Metric.SM_THROUGHPUT, "compute"),
            (Metric.MEMORY_THROUGHPUT, "memory"),
            (Metric.DRAM_THROUGHPUT, "dram"),
            (Metric.L2_THROUGHPUT, "l2"),
            (Metric.L1_THROUGHPUT, "l1"),
            (Metric.ISSUE_ACTIVE, "issue slots"),
        ),
    ),
    (
        "memory",
        (
            (Metric.DRAM_READ, "dram read MB"),
            (Metric.DRAM_WRITE, "dram written MB"),
            (Metric.L1_HIT_RATE, "l1 hit %"),
            (Metric.L2_HIT_RATE, "l2 hit %"),
            (Metric.LOAD_SECTOR_USE, "load sector use %"),
            (Metric.STORE_SECTOR_USE, "store sector use %"),
            (Metric.SHARED_LOAD_CONFLICTS, "shared load conflicts"),
            (Metric.SHARED_STORE_CONFLICTS, "shared store conflicts"),
            (Metric.LOCAL_LOADS, "local loads"),
        ),
    ),
    (
        "occupancy",
        (
            (Metric.ACHIEVED_OCCUPANCY, "achieved %"),
            (Metric.THEORETICAL_OCCUPANCY, "theoretical %"),
            (Metric.REGISTERS_PER_THREAD, "registers/thread"),
            (Metric.SHARED_PER_BLOCK, "shared bytes/block"),
            (Metric.WAVES, "waves"),
        ),
    ),
    (
        "instructions",
        (
            (Metric.INSTRUCTIONS, "warp instructions"),
            (Metric.THREADS_PER_INSTRUCTION, "threads/instruction"),
            (Metric.BRANCH_UNIFORMITY, "uniform branches %"),
            (Metric.PIPE_FMA, "fma pipe %"),
            (Metric.PIPE_ALU, "alu pipe %"),
            (Metric.PIPE_FP16, "half pipe %"),
            (Metric.PIPE_XU, "transcendental pipe %"),
            (Metric.PIPE_LSU, "load/store pipe %"),
            (Metric.PIPE_TENSOR, "tensor pipe %"),
        ),
    ),
)
_STALLS = (
    Metric.STALL_LONG_SCOREBOARD,
    Metric.STALL_SHORT_SCOREBOARD,
    Metric.STALL_BARRIER,
    Metric.STALL_LG_THROTTLE,
    Metric.STALL_MIO_THROTTLE,
    Metric.STALL_MATH_THROTTLE,
    Metric.STALL_WAIT,
    Metric.STALL_GMMA,
    Metric.STALL_MEMBAR,
    Metric.STALL_BRANCH,
    Metric.STALL_NO_INSTRUCTION,
)
_MEGABYTES = frozenset({Metric.DRAM_READ, Metric.DRAM_WRITE})


def profile_summary(evaluation: Evaluation) -> str:
    """The hottest kernels of the profiled call, one short block each; says so when there is no profile."""
    profile = evaluation.profile
    if profile is None or not profile.kernels:
        return "\n".join(["No counters could be collected.", *_resources(evaluation.resources)])
    hottest = profile.longest_first()[:_HOTTEST]
    blocks = [_kernel(kernel, detailed=place == 0) for place, kernel in enumerate(hottest)]
    head = f"{len(profile.kernels)} kernel launch{'es' if len(profile.kernels) > 1 else ''} per call"
    order = ", the longest first" if len(profile.kernels) > 1 else ""
    return "\n".join([f"{head} (counters: {profile.source}){order}:", *blocks, *_complaints(evaluation.resources)])


def longest_kernel_name(evaluation: Evaluation) -> str:
    """Of the kernel that takes longest, as the profiler prints it; empty without a profile."""
    kernels = evaluation.profile.longest_first() if evaluation.profile else []
    return kernels[0].name if kernels else ""


def changed_metrics(before: Evaluation, after: Evaluation) -> list[str]:
    """The metrics by which two kernels differ most; none where either has no profile."""
    if before.profile is None or after.profile is None:
        return []
    return telling_changes(metric_deltas(before.profile.totals, after.profile.totals))


def budget_summary(evaluation: Evaluation, facts: DeviceFacts) -> str:
    """What the hottest kernel takes of an SM's registers and shared memory; empty where it is not known.

    Registers are given to warps in units of 8 per thread.
    """
    kernels = evaluation.profile.longest_first() if evaluation.profile else []
    if not kernels:
        return ""
    kernel = kernels[0]
    registers, shared = (kernel.metrics.get(one) for one in (Metric.REGISTERS_PER_THREAD, Metric.SHARED_PER_BLOCK))
    if registers is None or shared is None:
        return ""
    threads = math.ceil(math.prod(kernel.block) / _WARP) * _WARP
    own = math.ceil(registers / _REGISTER_UNIT) * _REGISTER_UNIT * threads
    most = min(_MOST_REGISTERS, facts.registers_per_sm // threads // _REGISTER_UNIT * _REGISTER_UNIT)
    return (
        f"Budget of an SM: a block takes {own} of {facts.registers_per_sm} registers and {shared / 1024:.1f} of "
        f"{facts.shared_per_sm // 1024} KB shared memory; one block of {threads} threads may use up to {most} "
        f"registers per thread and {facts.shared_per_block // 1024} KB."
    )


def time_summary(evaluation: Evaluation) -> str:
    """Time of the call against the attainable time; empty when it was not timed."""
    timing = evaluation.timing
    if timing is None:
        return ""
    how = "modelled" if timing.modelled else "measured"
    if timing.executed_share < 1:
        how += f" from {timing.executed_share:.2g} of the blocks"
    if timing.attainable_us is None or timing.headroom is None:
        return f"Time of the call: {timing.median_us:.2f} us ({how})."
    return (
        f"Time of the call: {timing.median_us:.2f} us ({how}); a well-written kernel should reach about "
        f"{timing.attainable_us:.2f} us here, so {timing.headroom:.2f}x is left."
    )


def gpu_summary(facts: DeviceFacts) -> str:
    """What an author must know of the GPU, in a few lines."""
    peaks = ", ".join(f"{name} {value / 1e12:.0f}" for name, value in facts.peak_flops.items())
    text = (
        f"{facts.name} ({facts.arch}, compiled for {facts.compile_arch}): {facts.sm_count} SMs at "
        f"{facts.clock_mhz:.0f} MHz, {facts.max_warps_per_sm} warps and {facts.registers_per_sm} registers per SM, "
        f"shared memory {facts.shared_per_block // 1024} KB per block (opt-in) and {facts.shared_per_sm // 1024} KB "
        f"per SM, L2 {facts.l2_bytes / 2**20:.0f} MB, DRAM {facts.peak_bandwidth / 1e9:.0f} GB/s, "
        f"peak TFLOP/s: {peaks}."
    )
    if facts.kind is DeviceKind.EMULATED:
        text += (
            " The code runs on an emulator of this GPU, which executes its PTX and models its time. It has mma, wmma, "
            "ldmatrix, cp.async and clusters, but no wgmma, tensor maps, textures or dynamic parallelism: those end as "
            "`not_emulatable`."
        )
    return text


def _kernel(kernel: KernelProfile, *, detailed: bool) -> str:
    """The launch, its time and its metrics; without details only the speeds of light."""
    grid, block = ("x".join(str(extent) for extent in shape) for shape in (kernel.grid, kernel.block))
    lines = [f"* {kernel.name[:_NAME_CHARACTERS]} <<<{grid}, {block}>>>{_time(kernel)}"]
    for title, metrics in _LINES if detailed else _LINES[:1]:
        shown = [f"{label} {_number(metric, kernel)}" for metric, label in metrics if metric in kernel.metrics]
        if shown:
            lines.append(f"  {title}: {', '.join(shown)}")
    if not detailed:
        return "\n".join(lines)
    stalls = _stalls(kernel)
    if stalls:
        lines.append(f"  warps wait mostly: {stalls}")
    notes = [f"{name}: {text}" for name, text in kernel.notes.items() if name != _LINES_NOTE or not kernel.lines]
    if notes:
        lines.append("  " + ", ".join(notes)[:200])
    return "\n".join(lines)


def _time(kernel: KernelProfile) -> str:
    duration = kernel.metrics.get(Metric.DURATION)
    return "" if duration is None else f" {duration / 1000:.2f} us"


def _number(metric: Metric, kernel: KernelProfile) -> str:
    value = kernel.metrics[metric]
    return f"{value / 1e6:.4g}" if metric in _MEGABYTES else f"{value:.4g}"


def _stalls(kernel: KernelProfile) -> str:
    known = sorted(((kernel.metrics[metric], metric) for metric in _STALLS if metric in kernel.metrics), reverse=True)
    return ", ".join(f"{metric.meaning} {value:.2g}" for value, metric in known[:_STALLS_SHOWN] if value > 0)


def _resources(resources: list[KernelResources]) -> list[str]:
    return [
        f"* {kernel.name[:_NAME_CHARACTERS]}: {kernel.registers} registers, {kernel.shared_bytes} shared bytes"
        for kernel in resources[:_HOTTEST]
    ] + _complaints(resources)


def _complaints(resources: list[KernelResources]) -> list[str]:
    """What the compiler could not do well."""
    spills = [
        f"* {kernel.name[:_NAME_CHARACTERS]} spills {kernel.spill_store_bytes} bytes to local memory"
        for kernel in resources
        if kernel.spill_store_bytes
    ]
    losses = [
        f"* ptxas of {kernel.name[:_NAME_CHARACTERS]}: {warning[:_WARNING_CHARACTERS]}"
        for kernel in resources
        for warning in kernel.warnings
    ]
    return [*spills[:_HOTTEST], *losses[:_HOTTEST]]
