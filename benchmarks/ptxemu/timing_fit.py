"""Fits a few figures of the timing model to measured times, one after the other, starting from what is known.

The loss is the mean of sqrt(CORNER^2 + e^2) - CORNER over the cases, e being the logarithm of modelled / measured time,
plus WRONG_ORDER for each pair's modelled ratio on the wrong side of 1 by its logarithm and a margin, plus PULL times
the mean squared logarithm of figure / start. Each round multiplies every figure in turn by each of STEPS and keeps
what lowers the loss.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import TypeVar

from conformance_emulated import EmulatedCase
from conformance_suite import CapturedCase, Pair

from ptxemu.model.architecture import Gpu, GpuModel, Latency, TimingWeights
from ptxemu.model.call import estimate_call

CORNER, MARGIN = 0.15, 0.1
WRONG_ORDER, PULL = 0.02, 0.01
STEPS = (1.3, 1 / 1.3, 1.1, 1 / 1.1)
ROUNDS = 6
FOLDS = 7
"""Of the cross-validation; whole programs stay together."""
APART = 1.2
"""Pairs whose measured times differ by less than this factor are left out."""
START = {
    "norm": 3.0,
    "norm_at_once": 2.0,
    "reads_under_way": 12.0,
    "l1_under_way": 0.5,
    "block_clocks": 1.15,
    "lines_per_clk": 2.0,
    "atomic_pass_weight": 2.1,
}
"""What is fitted to times, and where it starts: the clocks between two blocks that short blocks show, the rest guesses.

Everything else is fixed. Published microbenchmarks of the H100 and its forerunners, rounded: latencies of arithmetic,
tensor cores, shared memory and the L1, two clocks for each further pass of a bank conflict (Luo et al., Benchmarking
and Dissecting the Nvidia Hopper GPU Architecture, 2024; Jia et al., Dissecting the NVIDIA Volta GPU Architecture).
Read off the stalls that Nsight Compute gives of fitted cases in which no unit is busy: latencies of the L2
(`chase_l2_eight_warps`: 282 clocks), of DRAM (`walk_one_warp`: 706), by which more lines make it longer
(`pointer_chasing_dram`: 943 with 32 lines), of shuffles, transcendental functions, special registers, constants, and
`line_clocks`. Read off other counters of the fitted half: clocks between two atomics at one line
(`atomic_tickets_one_word`, `atomic_float_one_word`), the share of sectors written in parts that DRAM completes
(`store_every_second_word`), half-precision instructions per clock (`pipe_half2_fma`), the start of a block (active
clocks of an SM less those its warps were resident), start and drain of a kernel (elapsed less active clocks), the
launch, weights of the L2 and the data stage, the share of its peak that a unit reaches.
"""

Figures = dict[str, float]
Model = TypeVar("Model", Latency, TimingWeights, Gpu)


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


def cross_validate(
    gpu: GpuModel, real: Sequence[CapturedCase], emulated: Sequence[EmulatedCase], pairs: Sequence[Pair]
) -> str:
    """How well times are modelled by a fit that has not seen the case's program: Spearman, errors of the logarithm."""
    programs = sorted({one.program for one in emulated})
    modelled: dict[str, float] = {}
    for fold in range(FOLDS):
        held = set(programs[fold::FOLDS])
        seen = [index for index, one in enumerate(emulated) if one.program not in held]
        fitted, _ = fit_timing(gpu, [real[index] for index in seen], [emulated[index] for index in seen], pairs)
        modelled |= {one.run.case: _modelled_us(one, fitted) for one in emulated if one.program in held}
    measured = {one.run.case: one.run.times_us["cold"].median for one in real}
    errors = sorted(abs(math.log(modelled[name] / us)) for name, us in measured.items())
    ranks = [
        {name: rank for rank, name in enumerate(sorted(times, key=times.__getitem__))} for times in (measured, modelled)
    ]
    spearman = statistics.correlation(*([one[name] for name in measured] for one in ranks))
    return (
        f"without the program itself: Spearman {spearman:.3f}, |log factor| mean {statistics.mean(errors):.3f}, "
        f"median {statistics.median(errors):.3f}, 90th percentile {errors[int(0.9 * len(errors))]:.3f}"
    )


def figures_of(gpu: GpuModel) -> Figures:
    """Present values of what is fitted."""
    known = asdict(gpu.architecture.latency) | asdict(gpu.architecture.timing) | asdict(gpu.gpu)
    return {name: known[name] for name in START}


def with_figures(gpu: GpuModel, figures: Mapping[str, float]) -> GpuModel:
    """The GPU with other figures. Those that make no sense are refused by the types."""

    architecture = replace(
        gpu.architecture,
        latency=_updated(gpu.architecture.latency, figures),
        timing=_updated(gpu.architecture.timing, figures),
    )
    return GpuModel(_updated(gpu.gpu, figures), architecture)


def _updated(one: Model, figures: Mapping[str, float]) -> Model:
    known = {field.name for field in fields(one)}
    return replace(one, **{name: value for name, value in figures.items() if name in known})


def loss(gpu: GpuModel, cases: Mapping[str, Timed], pairs: Sequence[Pair]) -> float:
    """What the fit makes small."""
    modelled = {name: _modelled_us(case.emulated, gpu) for name, case in cases.items()}
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


def _modelled_us(case: EmulatedCase, gpu: GpuModel) -> float:
    return estimate_call(case.launches, {one.symbol: one for one in case.resources}, gpu).device_us


def _apart(cases: Mapping[str, Timed], pair: Pair) -> bool:
    times = (cases[pair.parent].measured_us, cases[pair.child].measured_us)
    return max(times) / min(times) >= APART
