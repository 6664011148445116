"""What the emulator says, in the words of a device: its errors, its GPUs, its launches and findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import PurePath

from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.profiles import KernelProfile, KernelResources, SanitizerFinding, SourceLine
from kernelblaster.errors import DeviceError, UsageError
from ptxemu.checks.findings import Finding
from ptxemu.errors import EmulatorError, InvalidInput, ToolkitMissing
from ptxemu.machine.ptxas import PtxasResources
from ptxemu.metrics.profile import KernelLaunch
from ptxemu.model.architecture import GpuModel

_CANDIDATE = "candidate"
"""Name of the candidate's file, without its suffix: lines of other files have no text that anybody can see."""


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise what the emulator raises as UsageError or DeviceError, with the same message and hint."""
    try:
        yield
    except InvalidInput as error:
        raise UsageError(error.message, hint=error.hint) from error
    except ToolkitMissing as error:
        raise DeviceError(error.message, hint=f"{error.hint}; then `kernelblaster doctor`") from error
    except EmulatorError as error:
        raise DeviceError(error.message, hint=error.hint) from error


def device_facts(gpu: GpuModel, cuda_version: str | None) -> DeviceFacts:
    """The facts shown in prompts and written with results."""
    return DeviceFacts.model_validate(asdict(gpu.facts(cuda_version)))


def ptxas_resources(resources: Iterable[KernelResources]) -> dict[str, PtxasResources]:
    """What ptxas reported of a build's kernels, by mangled name; those without one never run by it."""
    return {
        one.symbol: PtxasResources(**(one.model_dump(exclude={"warnings"}) | {"symbol": one.symbol}))
        for one in resources
        if one.symbol is not None
    }


def kernel_profile(launch: KernelLaunch) -> KernelProfile:
    """A launch as a profile of any device has it."""
    return KernelProfile(
        name=launch.name,
        grid=launch.grid,
        block=launch.block,
        metrics=launch.metrics,
        notes=launch.notes,
        lines=[
            SourceLine(line=one.source_line, waiting=one.waiting_share)
            for one in launch.lines
            if PurePath(one.source_file).stem == _CANDIDATE
        ],
    )


def sanitizer_finding(finding: Finding) -> SanitizerFinding:
    """A finding as compute-sanitizer's are passed on."""
    return SanitizerFinding(tool=finding.tool, message=finding.describe(), location=finding.place)
