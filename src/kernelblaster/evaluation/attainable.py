"""The time that a well-written kernel can be expected to reach: what guides the search, where the floor refuses lies.

    attainable = launch + max( read / rate + written / rate,  sum over operations of (FLOPs / rate / fill) )
                 + step * (operations of the longest chain - 1)

Rates are those of `devices.attainable`: measured, or assumed shares of the peak. Bytes: inputs read once, outputs
written once; what lies between operations is taken to stay on chip. Operations: every product and convolution of the
reference in full, whether or not algebra could save some. Each that waits for the result of another costs a step: what
it takes to bring all SMs to the same place, and the first operands to them. Of steps of a recurrent layer that is all.

`fill` is wave quantisation. The tiles of an output are spread over the SMs in waves; the last wave is rarely full and
edge tiles are partly outside:

    fill = useful elements / (waves * SMs * elements of a tile),  waves = ceil(tiles / SMs)

The best of the usual tiles counts, smaller ones at the lower rate that their operand traffic allows. Products with
fewer tiles than SMs are taken to be split along their sums, so that they fill the GPU.

The estimate is no bound. A better algorithm (Winograd, a mask that halves an attention) may pass it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from kernelblaster.devices.attainable import AttainableRates, attainable_rates
from kernelblaster.devices.emulated.known_gpus import facts_of
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.evaluation.operations import Operation, operations
from kernelblaster.evaluation.roofline import nonzero_shares, rate_at_accuracy
from kernelblaster.problems.problem import Precision, Problem, TensorRole
from kernelblaster.problems.reference import load_reference, tensor_specs


class Limit(StrEnum):
    """Which term is the largest."""

    COPY = "copy rate"
    ARITHMETIC = "arithmetic rate"
    CHAIN = "chain of products"


@dataclass(frozen=True)
class Attainable:
    """An expected time in microseconds, what limits it, and where its rates come from."""

    us: float
    limit: Limit
    fill: float
    """Useful share of the arithmetic time over all operations, 0 to 1; 1 where there are none."""
    source: str


@dataclass(frozen=True)
class _Tile:
    rows: int
    columns: int
    rate: float
    """Share of the tensor rate: a tile of R x C reads (R + C) / (R * C) operands per product."""


_TILES = (
    _Tile(128, 256, 1.0),
    _Tile(256, 128, 1.0),
    _Tile(192, 192, 1.0),
    _Tile(128, 192, 0.97),
    _Tile(128, 128, 0.92),
    _Tile(128, 64, 0.75),
    _Tile(64, 64, 0.6),
)


def attainable_on(gpu: str, problem: Problem, workload: str, precision: Precision) -> float | None:
    """The attainable time in microseconds on a GPU that is known by its name; None for others. Raises ProblemError."""
    facts = facts_of(gpu)
    return None if facts is None else round(attainable(problem, workload, precision, facts).us, 3)


def attainable(problem: Problem, workload: str, precision: Precision, facts: DeviceFacts) -> Attainable:
    """The attainable time of one call at a size. Raises ProblemError."""
    rates = attainable_rates(facts)
    reference = load_reference(problem)
    shares = nonzero_shares(reference, problem.cheap_workload)
    specs = tensor_specs(problem, workload, precision)
    written = sum(spec.bytes for spec in specs if spec.role is TensorRole.OUTPUT)
    given = [spec for spec in specs if spec.role is not TensorRole.OUTPUT]
    copying = rates.moving_s(sum(spec.bytes * shares.get(spec.name, 1.0) for spec in given), written)
    found = operations(reference, workload)
    ideal = sum(_seconds(one, precision, rates) for one in found)
    arithmetic = sum(_seconds(one, precision, rates) / fill(one, facts.sm_count) for one in found)
    chain = 1e-6 * rates.step_us * (max((one.depth for one in found), default=1) - 1)
    terms = {Limit.COPY: copying, Limit.ARITHMETIC: arithmetic, Limit.CHAIN: chain}
    return Attainable(
        us=rates.launch_us + 1e6 * (max(copying, arithmetic) + chain),
        limit=max(terms, key=lambda limit: terms[limit]),
        fill=ideal / arithmetic if arithmetic else 1.0,
        source=rates.source,
    )


def fill(operation: Operation, sms: int) -> float:
    """Share of the arithmetic rate that the best tile leaves after wave quantisation, 0 to 1."""
    if operation.depthwise:
        return 1.0
    return max(_fill(operation, tile, sms) for tile in _TILES)


def _fill(operation: Operation, tile: _Tile, sms: int) -> float:
    tiles = operation.batch * math.ceil(operation.rows / tile.rows) * math.ceil(operation.columns / tile.columns)
    if tiles < sms:
        return tile.rate
    waves = math.ceil(tiles / sms)
    return tile.rate * operation.outputs / (waves * sms * tile.rows * tile.columns)


def _seconds(operation: Operation, precision: Precision, rates: AttainableRates) -> float:
    """At the full rate of the unit that it runs on: tensor cores, or for depthwise convolutions the FMA pipe."""
    rate = rates.flops.get("fp32") if operation.depthwise else rate_at_accuracy(rates.flops, precision)
    return operation.flops / rate if rate else 0.0
