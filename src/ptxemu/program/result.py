"""What is known of a program that ran on the emulated device: its launches, and what the checks found.

This is the format of `kernelblaster emulate --record`; `--json` writes its launches alone. Counts are counted,
times are modelled, see `metrics/`.
"""

from __future__ import annotations

from pydantic import BaseModel

from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.profiles import KernelProfile
from ptxemu.checks.findings import Finding
from ptxemu.metrics.lines import LineProfile


class KernelLaunch(KernelProfile):
    """One kernel launch, in the order of the program.

    `metrics` maps Nsight Compute names to values in Nsight's base unit (ns, bytes, %, ratio, count); the duration and
    everything relative to it is modelled, the rest is counted.
    """

    symbol: str
    """Mangled name."""
    lines: tuple[LineProfile, ...] = ()
    """The source lines at which its warps wait most, as many as were asked for."""


class Emulation(BaseModel):
    """One run of a program."""

    format: str = "kernelblaster-emulation-1"
    program: str
    """Path of the source."""
    arguments: list[str]
    device: DeviceFacts
    exit_code: int | None
    """The program's own status, or minus the signal that killed it; None when it was stopped for running too long."""
    seconds: float
    """Wall time on this machine's CPU; says nothing of a GPU."""
    launches: list[KernelLaunch]
    transfers_us: float
    """Modelled time of copies and fills, in microseconds."""
    findings: list[Finding] | None = None
    """What the checks found; None when they were not on."""
    warnings: list[str] = []

    @property
    def kernels_us(self) -> float:
        """Modelled time of all kernels, in microseconds."""
        return sum(launch.metrics["gpu__time_duration.sum"] for launch in self.launches) / 1e3
