"""Data-sheet rates of GPUs, by their names: what no kernel exceeds."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel

from kernelblaster.devices.facts import DeviceFacts


class PeakRates(BaseModel):
    """Dense rates of one GPU.

    Attributes:
        key: part of the GPU's name.
        bandwidth: of its DRAM, bytes per second.
        copy_bandwidth: bytes per second, read plus written, that a copy was measured to reach; None where none was.
        flops: operations per second by the type that is multiplied.
    """

    key: str
    bandwidth: float
    copy_bandwidth: float | None = None
    flops: dict[str, float]


class _PeaksFile(BaseModel):
    format: Literal["kernelblaster-peaks-1"]
    note: str
    gpus: tuple[PeakRates, ...]


def peak_rates(name: str) -> PeakRates | None:
    """Of the GPU of this name; None where the table has none."""
    return next((entry for entry in _table().gpus if entry.key.lower() in name.lower()), None)


def highest_bandwidth(facts: DeviceFacts) -> float:
    """Bytes per second that no kernel exceeds: kernels that only read are faster than the fastest copy."""
    known = peak_rates(facts.name)
    return facts.peak_bandwidth if known is None else max(facts.peak_bandwidth, known.bandwidth)


@cache
def _table() -> _PeaksFile:
    text = files("kernelblaster.devices").joinpath("peaks.json").read_text(encoding="utf-8")
    return _PeaksFile.model_validate_json(text)
