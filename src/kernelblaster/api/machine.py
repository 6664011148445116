"""What this machine has, and what each lack costs."""

from __future__ import annotations

from collections.abc import Callable

from kernelblaster.config import ModelConfig
from kernelblaster.devices.cuda.probe import Probe, probe_machine
from kernelblaster.runs.doctor import probe_emulated, probe_model

REQUIRED = ("nvcc", "host compiler")
"""Without these no device works, not even the emulated one."""


def examine_machine(
    model: ModelConfig | None = None, *, online: bool = False, on_stage: Callable[[str], object] | None = None
) -> list[Probe]:
    """Look at nvcc, compiler, GPU, driver, counters, sanitizer, disk, emulated device and the model's endpoint.

    Args:
        model: whose endpoint is looked at; the default one if None.
        online: also contact it.
        on_stage: told what takes time.
    """
    tell = on_stage or (lambda stage: None)
    tell("looking at the machine")
    probes = probe_machine()
    tell("looking at the emulated GPU; once on a machine it is built, which takes a minute")
    probes.append(probe_emulated())
    tell("looking at the model's endpoint")
    probes.append(probe_model(model or ModelConfig(), online=online))
    return probes


def is_usable(probes: list[Probe]) -> bool:
    """Whether kernels can be optimised on some device of the machine that was examined."""
    return all(probe.ok for probe in probes if probe.name in REQUIRED)
