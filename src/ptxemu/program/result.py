"""What is known of a program that ran on the emulated GPU: its launches, and what the checks found.

`encoded` is the format of `--record`; `--json` writes its launches alone. Counts are counted, times are modelled, see
`metrics/`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ptxemu.checks.findings import Finding
from ptxemu.decoding import decode
from ptxemu.metrics.names import NsightMetric
from ptxemu.metrics.profile import KernelLaunch
from ptxemu.model.architecture import GpuFacts

FORMAT = "kernelblaster-emulation-1"
"""Of recorded runs; readers of older versions know it by this name."""


@dataclass(frozen=True)
class RunResult:
    """One run of a program.

    Attributes:
        program: path of the source.
        arguments: of the program.
        device: the GPU that was emulated.
        exit_code: the program's own status, or minus the signal that killed it; None when it ran out of time.
        seconds: wall time on this machine's CPU; says nothing of a GPU.
        launches: kernel launches in their order.
        transfers_us: modelled time of copies and fills, in microseconds.
        findings: what the checks found; None when they were not on.
        warnings: what a GPU would have refused, and calls that were, where the program has not asked for the error.
        faults: of kernels, whatever the program made of them: what happened, in which kernel and line.
        missing: what the program asked for while it ran, and the emulated GPU lacks.
        host_fault: how its host code touched memory of the device, for which it was killed, and in which line.
        running: what it was doing when its time was up, as far as it told: which kernel, at which line.
    """

    program: str
    arguments: tuple[str, ...]
    device: GpuFacts
    exit_code: int | None
    seconds: float
    launches: tuple[KernelLaunch, ...]
    transfers_us: float
    findings: tuple[Finding, ...] | None = None
    warnings: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    host_fault: str | None = None
    running: str | None = None
    format: str = FORMAT

    @property
    def kernels_us(self) -> float:
        """Modelled time of all kernels, in microseconds."""
        return sum(launch.metrics[NsightMetric.DURATION] for launch in self.launches) / 1e3

    def encoded(self) -> dict[str, Any]:
        """As JSON objects; `RunResult.decoded` reads them back."""
        return asdict(self)

    @classmethod
    def decoded(cls, value: object) -> RunResult:
        """A recorded run from parsed JSON. Raises DecodingError."""
        return decode(cls, value)
