"""What profilers, ptxas and sanitizers report about a candidate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from pydantic import BaseModel

from kernelblaster.devices.metrics import Metric, Rollup, rollup_of

_SCOPES = re.compile(r"\(anonymous namespace\)::|<unnamed>::")


def short_name(signature: str) -> str:
    """What a kernel is called in its source: `void ns::scan<float, (int)4>(float*, int)` is `scan`."""
    depth, kept = 0, []
    for character in _SCOPES.sub("", signature):
        depth -= character == ">" and depth > 0
        if depth == 0 and character == "(":
            break
        depth += character == "<"
        if depth == 0 and character != ">":
            kept.append(character)
    words = "".join(kept).replace("::", " ").split()
    return words[-1] if words else signature


class SourceLine(BaseModel):
    """A line of the candidate's file, and how much of a kernel's waiting happens there."""

    line: int
    """From 1."""
    waiting: float
    """Share of the kernel's samples of stalled warps, 0 to 1; on an emulated GPU of its modelled waiting."""
    reason: str = ""
    """What the warps there wait for most, where that is known."""


class SpeedupScope(StrEnum):
    """What an estimated speed-up of Nsight's rules is a share of."""

    GLOBAL = "global"
    """The kernel's time: it would take so many percent less."""
    LOCAL = "local"
    """The use of one unit; what it brings to the kernel is not told."""


class RuleResult(BaseModel):
    """Something to gain that a rule of Nsight Compute has found."""

    rule: str
    """Its name: `UncoalescedGlobalAccess`."""
    text: str
    percent: float | None = None
    """Estimated; None where the rule estimates nothing."""
    scope: SpeedupScope | None = None


class KernelProfile(BaseModel):
    """One kernel launch inside the profiled call. A metric that was not collected is absent, never 0."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    metrics: dict[str, float]
    """Nsight Compute metric name -> value in Nsight's base unit (ns, bytes, %, ratio, count)."""
    notes: dict[str, str] = {}
    """Textual facts, e.g. `occupancy_limiter: registers`."""
    lines: list[SourceLine] = []
    """Where warps wait, the most first; empty where the profiler does not tell lines."""
    rules: list[RuleResult] = []
    """Of Nsight Compute; empty where it was not asked."""


class ProfileSource(StrEnum):
    """Who collected the metrics: the evidence tier."""

    NCU = "ncu"
    EMULATED = "emulated"
    EVENTS = "events"
    """Counters were refused: only times and static facts (ptxas, occupancy) are known."""


class Profile(BaseModel):
    """Metrics of one call of the launcher.

    `totals` is for the whole call: sums for counts and bytes, duration-weighted means for rates and percentages.
    """

    source: ProfileSource
    kernels: list[KernelProfile]
    totals: dict[str, float]
    executed_share: float = 1.0
    """Share of the call's blocks that were executed; below 1 counts are scaled from these to all, launch by launch."""
    warnings: list[str] = []

    def longest_first(self) -> list[KernelProfile]:
        """The kernels by duration; one whose duration is unknown comes last, equals in the order of their launches."""
        return sorted(self.kernels, key=lambda kernel: -kernel.metrics.get(Metric.DURATION, 0.0))


class KernelResources(BaseModel):
    """What ptxas reports for one kernel."""

    name: str
    symbol: str | None = None
    """Mangled name, where it is known."""
    registers: int
    shared_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    warnings: tuple[str, ...] = ()
    """What ptxas says costs performance, e.g. wgmma instructions that it serialises, and why."""


class SanitizerFinding(BaseModel):
    """One finding of compute-sanitizer or of the emulator's own checks."""

    tool: str
    """memcheck, racecheck, initcheck, synccheck"""
    message: str
    location: str | None = None


def totals(kernels: Sequence[KernelProfile]) -> dict[str, float]:
    """Metrics of the whole call from those of its kernels.

    Counts, bytes and times are summed; rates, percentages and launch facts are means weighted by kernel duration.
    A metric is present only when every kernel has it; means of several kernels need every kernel's duration.
    """
    if not kernels:
        return {}
    common = set(kernels[0].metrics).intersection(*(kernel.metrics for kernel in kernels[1:]))
    weights = _weights(kernels)
    combined = {}
    for name in sorted(common):
        values = [kernel.metrics[name] for kernel in kernels]
        if rollup_of(name) is Rollup.SUM:
            combined[str(name)] = sum(values)
        elif weights is not None:
            combined[str(name)] = _weighted_mean(values, weights)
    return combined


def _weights(kernels: Sequence[KernelProfile]) -> list[float] | None:
    """Each kernel's duration; None when one is unknown or all are zero. A single kernel needs no weight."""
    if len(kernels) == 1:
        return [1.0]
    if any(Metric.DURATION not in kernel.metrics for kernel in kernels):
        return None
    durations = [kernel.metrics[Metric.DURATION] for kernel in kernels]
    return durations if sum(durations) > 0 else None


def _weighted_mean(values: Iterable[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)
