"""How the hottest launch fills the GPU, as one line for a prompt: tiles, blocks per SM, waves and their tail.

Everything is read off the profile; what the profiler did not record is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, ProfileSource
from kernelblaster.evaluation.results import Evaluation

_LIMITS = {
    Metric.LIMIT_WARPS: "warp slots",
    Metric.LIMIT_REGISTERS: "registers",
    Metric.LIMIT_SHARED: "shared memory",
    Metric.LIMIT_BLOCKS: "block slots",
}


def launch_summary(evaluation: Evaluation, facts: DeviceFacts) -> str:
    """Grid, block, blocks per SM with what limits them, waves and the tail; empty without a profile of kernels."""
    profile = evaluation.profile
    if profile is None or not profile.kernels or profile.source is ProfileSource.EVENTS:
        return ""
    kernel = profile.longest_first()[0]
    blocks = math.prod(kernel.grid)
    resident = _resident(kernel.metrics)
    head = f"Launch: {blocks} blocks of {math.prod(kernel.block)} threads{_held(kernel, resident)}"
    return f"{head}; {_waves(blocks, resident, kernel.metrics.get(Metric.WAVES), facts.sm_count)}."


def _resident(metrics: Mapping[str, float]) -> int | None:
    """Blocks that an SM holds at once; None where a limit is not known."""
    limits = [metrics.get(metric) for metric in _LIMITS]
    known = [limit for limit in limits if limit is not None]
    return int(min(known)) if len(known) == len(limits) and min(known) >= 1 else None


def _held(kernel: KernelProfile, resident: int | None) -> str:
    """What an SM holds, and the resources that allow no more, with what the others would allow."""
    if resident is None:
        return ""
    tight = [name for metric, name in _LIMITS.items() if int(kernel.metrics[metric]) == resident]
    roomy = [f"{name} {kernel.metrics[metric]:.0f}" for metric, name in _LIMITS.items() if name not in tight]
    told = f", {resident} per SM by {_listed(tight)}"
    return f"{told} (by {_listed(roomy)})" if roomy else told


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _waves(blocks: int, resident: int | None, recorded: float | None, sm_count: int) -> str:
    """Waves as recorded, else as reckoned; without either, blocks per SM."""
    if blocks < sm_count:
        return f"{sm_count - blocks} of {sm_count} SMs get no block"
    waves = recorded if recorded else blocks / (resident * sm_count) if resident else None
    if waves is None:
        return f"{blocks / sm_count:.1f} blocks for each of {sm_count} SMs"
    if waves <= 1:
        return f"one wave that fills {waves:.0%} of the block slots of {sm_count} SMs"
    whole = math.ceil(waves)
    last = waves - (whole - 1)
    empty = f"{1 - waves / whole:.0%} of all block slots stay empty"
    return f"{waves:.2f} waves on {sm_count} SMs, the last {last:.0%} full: {empty}"
