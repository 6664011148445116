"""Quantities that rules may use beside Nsight metrics, all computed here.

`observed` gathers what is known of one profiled call: the metrics of its hottest kernel (where the time goes; the
call's totals when no kernel's duration is known), and the derived quantities below. A quantity is present only when
everything it is computed from is known and its denominator is not 0; an absent one makes conditions unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from enum import StrEnum

from kernelblaster.cuda_source.features import Feature
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, SpeedupScope
from kernelblaster.evaluation.results import Timing


class Derived(StrEnum):
    """Names of derived quantities, as rules spell them."""

    HEADROOM = "derived.headroom"
    """Time of the call / attainable time: 1 where nothing is expected to be left to gain."""
    LAUNCHES = "derived.launches"
    """Kernel launches per call."""
    HOT_KERNEL_SHARE = "derived.hot_kernel_share"
    """Duration of the hottest kernel / durations of all, 0 to 1."""
    MEAN_KERNEL_US = "derived.mean_kernel_us"
    """Mean duration of the call's kernels, microseconds."""
    OUTSIDE_KERNELS_US = "derived.outside_kernels_us"
    """Time of the call minus its kernels' durations, microseconds: copies, allocation, launch gaps."""
    OUTSIDE_KERNELS_SHARE = "derived.outside_kernels_share"
    """The same against the time of the call, 0 to 1."""
    LOAD_SECTORS_PER_REQUEST = "derived.load_sectors_per_request"
    """32-byte sectors per global load instruction of a warp; 4 is ideal for 4-byte lanes, 16 for 16-byte lanes."""
    STORE_SECTORS_PER_REQUEST = "derived.store_sectors_per_request"
    """The same for global stores."""
    ATOMIC_SHARE = "derived.atomic_share"
    """Atomics and reductions / all global requests, percent."""
    BANK_CONFLICT_SHARE = "derived.bank_conflict_share"
    """Shared-memory passes that bank conflicts added / all passes, percent."""
    LOCAL_SHARE = "derived.local_share"
    """Local-memory instructions / all warp instructions, percent."""
    MEMORY_STALL = "derived.memory_stall"
    """Warps waiting for global memory or for room in its queue, per issued instruction."""
    PEAK_MATH_PIPE = "derived.peak_math_pipe"
    """Busiest of the arithmetic pipes, percent of its peak."""
    L2_REUSE = "derived.l2_reuse"
    """Bytes through L2 / bytes through DRAM."""
    OCCUPANCY_SHORTFALL = "derived.occupancy_shortfall"
    """Theoretical minus achieved occupancy, percentage points."""
    REGISTER_LIMITED = "derived.register_limited"
    """Least of the other occupancy limits / the limit by registers; above 1 registers alone limit."""
    SHARED_LIMITED = "derived.shared_limited"
    """Least of the other occupancy limits / the limit by shared memory; above 1 shared memory alone limits."""
    BLOCKS_PER_SM = "derived.blocks_per_sm"
    """Blocks of the grid / SMs."""
    ARCH = "derived.compute_capability"
    """90 on sm_90."""
    LOAD_WAIT_SHARE = "derived.load_wait_share"
    """Of the warps' time between two issues, the part spent waiting for global memory, percent."""
    BARRIER_SHARE = "derived.barrier_share"
    """The same for barriers of the block and memory fences."""
    MATH_WAIT_SHARE = "derived.math_wait_share"
    """The same for busy arithmetic pipes and warp-group products."""
    FIXED_WAIT_SHARE = "derived.fixed_wait_share"
    """The same for instructions of fixed latency."""
    FETCH_SHARE = "derived.fetch_share"
    """The same for instructions that are not there yet: fetches and branches."""
    TAIL_IDLE = "derived.tail_idle"
    """Share of block slots that the last, partial wave leaves empty over the whole kernel, percent."""


_MATH_PIPES = (Metric.PIPE_FMA, Metric.PIPE_ALU, Metric.PIPE_XU, Metric.PIPE_TENSOR)
_OPTIONAL_MATH_PIPES = (Metric.PIPE_FP16, Metric.PIPE_FP64)
"""Pipes some architectures do not have: sm_90 runs half precision on the FMA pipe."""
_SECTOR_BYTES = 32
_STALLS = tuple(metric for metric in Metric if metric.name.startswith("STALL_"))
_FEWEST_STALLS = 3
"""Known stall reasons below which no share of them is told."""


SOURCE = "source."
"""Begins the name of what was found in the kernel's source: 1 where it has the feature, 0 where it has not."""


NSIGHT = "nsight."
"""Begins the name of a rule of Nsight Compute: percent of the hottest kernel's time that mending may save."""


def observed(
    profile: Profile, facts: DeviceFacts, timing: Timing | None, features: Set[Feature] | None = None
) -> dict[str, float]:
    """Metric or derived name -> value, for everything that is known and finite.

    Args:
        profile: of one call.
        facts: of the device.
        timing: of the whole call; None when it was not timed.
        features: what the candidate's source contains; None when it is not known.
    """
    hottest = hottest_kernel(profile)
    values = {str(name): value for name, value in profile.totals.items()}
    if hottest is not None:
        values.update({str(name): value for name, value in hottest.metrics.items()})
        values.update(_of_rules(hottest))
    values = {name: value for name, value in values.items() if math.isfinite(value) and not _nothing(name, value)}
    derived: dict[Derived, float | None] = {Derived.HEADROOM: timing.headroom if timing else None}
    derived |= _of_call(profile, hottest, timing.median_us if timing else None)
    derived |= _of_memory(values)
    derived |= _of_launch(values, hottest, profile.source, facts)
    derived |= _of_stalls(values)
    derived[Derived.ARCH] = float(facts.compute_capability)
    found = {str(name): value for name, value in derived.items() if value is not None and math.isfinite(value)}
    written = {f"{SOURCE}{feature}": float(feature in features) for feature in Feature} if features is not None else {}
    return values | found | written


def without_rules(profile: Profile) -> Profile:
    """A profile as if Nsight Compute's rules had not been asked."""
    return profile.model_copy(
        update={"kernels": [kernel.model_copy(update={"rules": []}) for kernel in profile.kernels]}
    )


def _of_rules(kernel: KernelProfile) -> dict[str, float]:
    """Estimates for the whole kernel, the largest of each rule."""
    found: dict[str, float] = {}
    for one in kernel.rules:
        if one.scope is SpeedupScope.GLOBAL and one.percent is not None:
            name = f"{NSIGHT}{one.rule}"
            found[name] = max(found.get(name, 0.0), one.percent)
    return found


def _nothing(name: str, value: float) -> bool:
    """Whether a value is what Nsight Compute gives for the use of sectors when there were none: no kernel uses 0 %."""
    return value == 0 and name in (Metric.LOAD_SECTOR_USE, Metric.STORE_SECTOR_USE)


def hottest_kernel(profile: Profile) -> KernelProfile | None:
    """The kernel with the longest duration; None when there are several and a duration is unknown."""
    if len(profile.kernels) == 1:
        return profile.kernels[0]
    if not profile.kernels or any(Metric.DURATION not in kernel.metrics for kernel in profile.kernels):
        return None
    return max(profile.kernels, key=lambda kernel: kernel.metrics[Metric.DURATION])


def _of_call(profile: Profile, hottest: KernelProfile | None, call_us: float | None) -> dict[Derived, float | None]:
    kernels_ns = profile.totals.get(Metric.DURATION)
    hottest_ns = hottest.metrics.get(Metric.DURATION) if hottest is not None else None
    counted = profile.source is not ProfileSource.EVENTS
    launches = float(len(profile.kernels)) if counted else None
    kernels_us = kernels_ns / 1e3 if kernels_ns is not None and counted else None
    outside = max(0.0, call_us - kernels_us) if call_us is not None and kernels_us is not None else None
    return {
        Derived.LAUNCHES: launches,
        Derived.HOT_KERNEL_SHARE: _ratio(hottest_ns, kernels_ns),
        Derived.MEAN_KERNEL_US: _ratio(kernels_us, launches),
        Derived.OUTSIDE_KERNELS_US: outside,
        Derived.OUTSIDE_KERNELS_SHARE: _ratio(outside, call_us),
    }


def _of_memory(values: Mapping[str, float]) -> dict[Derived, float | None]:
    get = values.get
    loads, stores = get(Metric.GLOBAL_LOAD_REQUESTS), get(Metric.GLOBAL_STORE_REQUESTS)
    atomics = _sum(values, (Metric.GLOBAL_ATOMIC_REQUESTS, Metric.GLOBAL_REDUCTION_REQUESTS))
    requests = None if loads is None or stores is None or atomics is None else loads + stores + atomics
    conflicts = _sum(values, (Metric.SHARED_LOAD_CONFLICTS, Metric.SHARED_STORE_CONFLICTS))
    local = _sum(values, (Metric.LOCAL_LOADS, Metric.LOCAL_STORES))
    l2_sectors = _sum(values, (Metric.L2_READ_SECTORS, Metric.L2_WRITE_SECTORS))
    l2_bytes = None if l2_sectors is None else l2_sectors * _SECTOR_BYTES
    pipes = _known(values, _MATH_PIPES)
    return {
        Derived.LOAD_SECTORS_PER_REQUEST: _ratio(get(Metric.GLOBAL_LOAD_SECTORS), loads),
        Derived.STORE_SECTORS_PER_REQUEST: _ratio(get(Metric.GLOBAL_STORE_SECTORS), stores),
        Derived.ATOMIC_SHARE: _percent(atomics, requests),
        Derived.BANK_CONFLICT_SHARE: _percent(conflicts, get(Metric.SHARED_WAVEFRONTS)),
        Derived.LOCAL_SHARE: _percent(local, get(Metric.INSTRUCTIONS)),
        Derived.MEMORY_STALL: _sum(values, (Metric.STALL_LONG_SCOREBOARD, Metric.STALL_LG_THROTTLE)),
        Derived.PEAK_MATH_PIPE: (
            None if pipes is None else max(*pipes, *(values[name] for name in _OPTIONAL_MATH_PIPES if name in values))
        ),
        Derived.L2_REUSE: _ratio(l2_bytes, _sum(values, (Metric.DRAM_READ, Metric.DRAM_WRITE))),
    }


def _of_stalls(values: Mapping[str, float]) -> dict[Derived, float | None]:
    """Shares of the time between two issues of a warp: that of the issue itself counts 1, each stall its ratio."""
    stalls = {metric: values[metric] for metric in _STALLS if metric in values}
    between = 1.0 + sum(stalls.values()) if len(stalls) >= _FEWEST_STALLS else None

    def share(*metrics: Metric) -> float | None:
        known = [stalls[metric] for metric in metrics if metric in stalls]
        return _percent(sum(known), between) if known else None

    return {
        Derived.LOAD_WAIT_SHARE: share(Metric.STALL_LONG_SCOREBOARD, Metric.STALL_LG_THROTTLE),
        Derived.BARRIER_SHARE: share(Metric.STALL_BARRIER, Metric.STALL_MEMBAR),
        Derived.MATH_WAIT_SHARE: share(Metric.STALL_MATH_THROTTLE, Metric.STALL_GMMA),
        Derived.FIXED_WAIT_SHARE: share(Metric.STALL_WAIT),
        Derived.FETCH_SHARE: share(Metric.STALL_NO_INSTRUCTION, Metric.STALL_BRANCH),
    }


def _of_launch(
    values: Mapping[str, float], hottest: KernelProfile | None, source: ProfileSource, facts: DeviceFacts
) -> dict[Derived, float | None]:
    get = values.get
    blocks = get(Metric.GRID_SIZE)
    if blocks is None and hottest is not None and source is not ProfileSource.EVENTS:
        blocks = float(math.prod(hottest.grid))
    theoretical, achieved = get(Metric.THEORETICAL_OCCUPANCY), get(Metric.ACHIEVED_OCCUPANCY)
    waves = get(Metric.WAVES)
    return {
        Derived.OCCUPANCY_SHORTFALL: None if theoretical is None or achieved is None else theoretical - achieved,
        Derived.REGISTER_LIMITED: _limited(values, Metric.LIMIT_REGISTERS),
        Derived.SHARED_LIMITED: _limited(values, Metric.LIMIT_SHARED),
        Derived.BLOCKS_PER_SM: _ratio(blocks, float(facts.sm_count)),
        Derived.TAIL_IDLE: 100 * (1 - waves / math.ceil(waves)) if waves is not None and waves > 1 else None,
    }


def _limited(values: Mapping[str, float], by: Metric) -> float | None:
    limits = (Metric.LIMIT_BLOCKS, Metric.LIMIT_REGISTERS, Metric.LIMIT_SHARED, Metric.LIMIT_WARPS)
    others = _known(values, [limit for limit in limits if limit is not by])
    return None if others is None else _ratio(min(others), values.get(by))


def _known(values: Mapping[str, float], names: Iterable[str]) -> list[float] | None:
    found = [values.get(name) for name in names]
    present = [value for value in found if value is not None]
    return present if len(present) == len(found) else None


def _sum(values: Mapping[str, float], names: Iterable[str]) -> float | None:
    found = _known(values, names)
    return None if found is None else sum(found)


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator


def _percent(numerator: float | None, denominator: float | None) -> float | None:
    share = _ratio(numerator, denominator)
    return None if share is None else 100 * share
