"""Rates that a well-written kernel reaches on a GPU, as against the peaks that none can exceed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel

from kernelblaster.devices.facts import DeviceFacts


@dataclass(frozen=True)
class AttainableRates:
    """What guides a search on one GPU.

    Attributes:
        copy_bandwidth: DRAM bytes per second of a large copy, read plus written.
        read_bandwidth: DRAM bytes per second of a kernel that only reads.
        flops: operations per second by the type that is multiplied.
        launch_us: microseconds of a call that launches one empty kernel.
        step_us: microseconds by which a product is later that has to wait for another one's result.
        source: which of these were measured, on what, and which are assumed shares of the peak.
    """

    copy_bandwidth: float
    read_bandwidth: float
    flops: Mapping[str, float]
    launch_us: float
    step_us: float
    source: str

    def moving_s(self, read: float, written: float) -> float:
        """Seconds in which so many bytes are read and written; as many of both take as long as a copy."""
        return read / self.read_bandwidth + written * (2 / self.copy_bandwidth - 1 / self.read_bandwidth)


class _Assumed(BaseModel):
    bandwidth_share: float
    read_share: float
    flops_share: float
    launch_us: float
    step_us: float


class _MeasuredRates(BaseModel):
    key: str
    source: str
    copy_bandwidth: float | None = None
    read_bandwidth: float | None = None
    launch_us: float | None = None
    step_us: float | None = None
    flops: dict[str, float] = {}


class _Table(BaseModel):
    format: Literal["kernelblaster-attainable-1"]
    note: str
    assumed: _Assumed
    gpus: tuple[_MeasuredRates, ...]


def attainable_rates(facts: DeviceFacts) -> AttainableRates:
    """The measured rates of this GPU where `attainable_rates.json` has them, else assumed shares of its peaks."""
    assumed = _table().assumed
    found = next((entry for entry in _table().gpus if entry.key.lower() in facts.name.lower()), None)
    rates = AttainableRates(
        copy_bandwidth=assumed.bandwidth_share * facts.peak_bandwidth,
        read_bandwidth=assumed.read_share * facts.peak_bandwidth,
        flops={name: assumed.flops_share * rate for name, rate in facts.peak_flops.items()},
        launch_us=assumed.launch_us,
        step_us=assumed.step_us,
        source="assumed shares of the peaks",
    )
    if found is None:
        return rates
    return AttainableRates(
        copy_bandwidth=found.copy_bandwidth or rates.copy_bandwidth,
        read_bandwidth=found.read_bandwidth or rates.read_bandwidth,
        flops={**rates.flops, **found.flops},
        launch_us=found.launch_us or rates.launch_us,
        step_us=found.step_us or rates.step_us,
        source=found.source,
    )


@cache
def _table() -> _Table:
    text = files("kernelblaster.devices").joinpath("attainable_rates.json").read_text()
    return _Table.model_validate_json(text)
