"""Compares a case on the emulated device with the same case on a real GPU: outputs, counters, time, bottleneck.

An output that names 0 ulps must have the same bytes. Another may differ by its ulps: in each sample, of
max(|value|, mean |value| of the output), and in each sum of neighbours, of the sum of that many such values.
Counters are compared for the whole case, which weighs cases alike however many launches they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance_emulated import EmulatedCase
from conformance_suite import CapturedCase, Output

from kernelblaster.devices.emulated.translation import kernel_profile
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, totals
from ptxemu.metrics.profile import kernel_launch
from ptxemu.model.architecture import GpuModel
from ptxemu.model.call import estimate_call

EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}


@dataclass(frozen=True)
class Counter:
    """A counter that is compared by its relative error.

    Attributes:
        metric: its name.
        target: median relative error that is aimed at.
        floor: smaller values are compared as if they were this large; the cases where both are, not at all.
    """

    metric: Metric
    target: float
    floor: float


COUNTERS = (
    Counter(Metric.INSTRUCTIONS, 0.05, 1),
    Counter(Metric.GLOBAL_LOAD_REQUESTS, 0.05, 1),
    Counter(Metric.GLOBAL_LOAD_SECTORS, 0.05, 1),
    Counter(Metric.GLOBAL_STORE_REQUESTS, 0.05, 1),
    Counter(Metric.GLOBAL_STORE_SECTORS, 0.05, 1),
    Counter(Metric.SHARED_WAVEFRONTS, 0.05, 1),
    Counter(Metric.L2_READ_SECTORS, 0.05, 1e4),
    Counter(Metric.L2_WRITE_SECTORS, 0.05, 1e4),
    Counter(Metric.DRAM_READ, 0.15, 2e6),
    Counter(Metric.DRAM_WRITE, 0.15, 2e6),
)
POINTS = (
    Metric.L1_HIT_RATE,
    Metric.L2_HIT_RATE,
    Metric.THEORETICAL_OCCUPANCY,
    Metric.ACHIEVED_OCCUPANCY,
    Metric.LOAD_SECTOR_USE,
    Metric.STORE_SECTOR_USE,
    Metric.DRAM_THROUGHPUT,
    Metric.L2_THROUGHPUT,
    Metric.L1_THROUGHPUT,
    Metric.MEMORY_THROUGHPUT,
    Metric.SM_THROUGHPUT,
    Metric.ISSUE_ACTIVE,
    Metric.PIPE_FMA,
    Metric.PIPE_ALU,
    Metric.PIPE_FP64,
    Metric.PIPE_XU,
    Metric.PIPE_LSU,
    Metric.PIPE_TENSOR,
)
"""Percentages, compared by their difference in points."""


@dataclass(frozen=True)
class Comparison:
    """One case on both.

    Attributes:
        case: its name.
        real, emulated: profiles of the whole call.
        real_us, emulated_us: time of the call with a cold L2, in microseconds.
        same_outputs: outputs with the same bytes.
        outputs: of all.
        wrong: outputs beyond their bounds, in words.
    """

    case: str
    real: Profile
    emulated: Profile
    real_us: float
    emulated_us: float
    same_outputs: int
    outputs: int
    wrong: tuple[str, ...]

    def error(self, counter: Counter) -> float | None:
        """(emulated - real) / real, see `Counter.floor`; None when there is nothing to compare."""
        if not self.real.kernels:
            return None
        known = [profile.totals.get(counter.metric) for profile in (self.real, self.emulated)]
        real, emulated = (max(value or 0.0, counter.floor) for value in known)
        return None if real == emulated == counter.floor else (emulated - real) / real

    def points(self, metric: Metric) -> float | None:
        """Emulated less real percentage; None when one is not known."""
        real, emulated = self.real.totals.get(metric), self.emulated.totals.get(metric)
        return None if real is None or emulated is None else emulated - real


def compare(real: CapturedCase, emulated: EmulatedCase, gpu: GpuModel) -> Comparison:
    """Model the emulated case and set it beside the real one."""
    call = estimate_call(emulated.launches, {one.symbol: one for one in emulated.resources}, gpu)
    measured = [KernelProfile(name=k.name, grid=k.grid, block=k.block, metrics=k.metrics) for k in real.kernels]
    kernels = [kernel_profile(kernel_launch(kernel, gpu)) for kernel in call.kernels]
    known = {one.name: one for one in emulated.run.outputs}
    return Comparison(
        case=real.run.case,
        real=Profile(source=ProfileSource.NCU, kernels=measured, totals=totals(measured)),
        emulated=Profile(source=ProfileSource.EMULATED, kernels=kernels, totals=totals(kernels)),
        real_us=real.run.times_us["cold"].median,
        emulated_us=call.device_us,
        same_outputs=sum(1 for one in real.run.outputs if one.hash == known[one.name].hash),
        outputs=len(real.run.outputs),
        wrong=tuple(why for one in real.run.outputs if (why := difference(one, known[one.name])) is not None),
    )


def difference(real: Output, emulated: Output) -> str | None:
    """How an output differs beyond its bound, in words; None when it does not."""
    if real.hash == emulated.hash:
        return None
    worst = max(_sample_ulps(real, emulated), _sum_ulps(real, emulated))
    if real.ulps == 0:
        return f"{real.name}: not the same bits, {worst:.3g} ulps at most among the samples"
    return None if worst <= real.ulps else f"{real.name}: {worst:.3g} ulps, {real.ulps:g} allowed"


def _sample_ulps(real: Output, emulated: Output) -> float:
    unit, floor = EPSILON.get(real.type, 1.0), float(real.mean_magnitude)
    pairs = zip(map(float, real.samples), map(float, emulated.samples), strict=True)
    return max((_distance(a, b, unit * max(abs(a), floor)) for a, b in pairs), default=0.0)


def _sum_ulps(real: Output, emulated: Output) -> float:
    unit = EPSILON.get(real.type, 1.0) * float(real.mean_magnitude) * real.count / len(real.sums)
    pairs = zip(map(float, real.sums), map(float, emulated.sums), strict=True)
    return max((_distance(a, b, unit) for a, b in pairs), default=0.0)


def _distance(a: float, b: float, unit: float) -> float:
    if a == b or (a != a and b != b):
        return 0.0
    return abs(a - b) / unit if unit > 0 and abs(a - b) < float("inf") else float("inf")


def limiters(values: Mapping[str, float]) -> frozenset[Metric]:
    """The occupancy limits that allow fewest blocks; several when they tie."""
    limits = (Metric.LIMIT_BLOCKS, Metric.LIMIT_REGISTERS, Metric.LIMIT_SHARED, Metric.LIMIT_WARPS)
    least = min(values[limit] for limit in limits)
    return frozenset(limit for limit in limits if values[limit] == least)
