"""Fits latencies and weights of the timing model to measured times, one after the other, starting from what is known.

The loss is the mean of sqrt(CORNER^2 + e^2) - CORNER over the cases, e being the logarithm of modelled / measured time,
plus WRONG_ORDER for each pair's modelled ratio on the wrong side of 1 by its logarithm and a margin, plus PULL times
the mean squared logarithm of figure / start. Each round multiplies every figure in turn by each of STEPS and keeps
what lowers the loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from conformance_emulated import EmulatedCase
from conformance_suite import CapturedCase, Pair
from pydantic import BaseModel

from kernelblaster.devices.emulated.architecture import GpuModel
from kernelblaster.devices.emulated.call import estimate_call

CORNER, MARGIN = 0.15, 0.1
WRONG_ORDER, PULL = 0.02, 0.01
STEPS = (1.3, 1 / 1.3, 1.1, 1 / 1.1)
ROUNDS = 6
APART = 1.2
"""Pairs whose measured times differ by less than this factor are left out."""
START = {
    "l2": 270.0,
    "norm": 3.0,
    "lines_per_clk": 2.0,
    "atomic_sector_weight": 2.1,
    "atomic_line_clocks": 3.6,
}
"""What is fitted to times, and where it starts. Everything else was measured or published.

L2 and DRAM start at what a warp waits for them when little else is under way; the fit makes them what a load takes
among others. The start of a block holds what passes between two blocks on an SM.
"""

Figures = dict[str, float]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Timed:
    """A case of the half that is fitted."""

    emulated: EmulatedCase
    measured_us: float


def fit_timing(
    gpu: GpuModel, real: Sequence[CapturedCase], emulated: Sequence[EmulatedCase], pairs: Sequence[Pair]
) -> tuple[GpuModel, float]:
    """The GPU with fitted figures, and the loss."""
    cases = {
        one.run.case: Timed(other, one.run.times_us["cold"].median) for one, other in zip(real, emulated, strict=True)
    }
    apart = [pair for pair in pairs if pair.parent in cases and pair.child in cases and _apart(cases, pair)]
    current, best = dict(START), loss(with_figures(gpu, START), cases, apart)
    for _ in range(ROUNDS):
        before = best
        for name, step in product(START, STEPS):
            trial = {**current, name: current[name] * step}
            found = loss(with_figures(gpu, trial), cases, apart)
            if found < best - 1e-6:
                current, best = trial, found
        if before - best < 1e-4:
            break
    return with_figures(gpu, {name: round(value, 3) for name, value in current.items()}), best


def figures_of(gpu: GpuModel) -> Figures:
    """Present values of what is fitted."""
    known = {**gpu.architecture.latency.model_dump(), **gpu.architecture.timing.model_dump(), **gpu.gpu.model_dump()}
    return {name: known[name] for name in START}


def with_figures(gpu: GpuModel, figures: Mapping[str, float]) -> GpuModel:
    """The GPU with other figures. Those that make no sense are refused by the types."""

    architecture = gpu.architecture.model_copy(
        update={
            "latency": _updated(gpu.architecture.latency, figures),
            "timing": _updated(gpu.architecture.timing, figures),
        }
    )
    return gpu.model_copy(update={"architecture": architecture, "gpu": _updated(gpu.gpu, figures)})


def _updated(one: Model, figures: Mapping[str, float]) -> Model:
    fields = {name: value for name, value in figures.items() if name in type(one).model_fields}
    return type(one).model_validate({**one.model_dump(), **fields})


def loss(gpu: GpuModel, cases: Mapping[str, Timed], pairs: Sequence[Pair]) -> float:
    """What the fit makes small."""
    modelled = {
        name: estimate_call(case.emulated.launches, {one.symbol: one for one in case.emulated.resources}, gpu).device_us
        for name, case in cases.items()
    }
    errors = [math.log(modelled[name] / case.measured_us) for name, case in cases.items()]
    order = sum(
        max(
            0.0,
            MARGIN
            - math.copysign(1.0, cases[p.parent].measured_us - cases[p.child].measured_us)
            * math.log(modelled[p.parent] / modelled[p.child]),
        )
        for p in pairs
    )
    figures = figures_of(gpu)
    moved = sum(math.log(figures[name] / start) ** 2 for name, start in START.items()) / len(START)
    return sum(math.hypot(CORNER, e) - CORNER for e in errors) / len(errors) + WRONG_ORDER * order + PULL * moved


def _apart(cases: Mapping[str, Timed], pair: Pair) -> bool:
    times = (cases[pair.parent].measured_us, cases[pair.child].measured_us)
    return max(times) / min(times) >= APART
