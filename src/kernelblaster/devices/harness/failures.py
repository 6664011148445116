"""What a harness program's `error` reply, its silence or its end stand for.

A candidate can bring about anything in its process, so nothing that a process with one says or does is the machine's
fault by itself: a canary, a fresh process without the candidate, decides that. Where a process holds none, nothing is
the candidate's fault.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from kernelblaster.devices.failures import NO_MEMORY, RunFailure, RunFailureKind
from kernelblaster.errors import DeviceError, DeviceMemoryFull
from kernelblaster.sandbox.limits import CommandResult, ExceededLimit

LOG_CHARACTERS = 8_000
"""Kept of what a failed program printed."""
DEVICE_LOST = frozenset(
    {
        "cudaErrorDevicesUnavailable",
        "cudaErrorDeviceUninitialized",
        "cudaErrorECCUncorrectable",
        "cudaErrorNoDevice",
        "cudaErrorInvalidDevice",
        "cudaErrorInsufficientDriver",
        "cudaErrorInitializationError",
        "cudaErrorSystemDriverMismatch",
        "cudaErrorSystemNotReady",
        "cudaErrorCompatNotSupportedOnDevice",
        "cudaErrorNvlinkUncorrectable",
        "cudaErrorContained",
        "cudaErrorMpsConnectionFailed",
        "cudaErrorUnsupportedPtxVersion",
        "cudaErrorNoKernelImageForDevice",
    }
)
"""CUDA errors that may say something of the machine."""


class HarnessLost(DeviceError):
    """A harness ended, or did not answer, before it had a candidate: what another start may do without."""


class Presence(Enum):
    """Where a candidate is while its harness runs."""

    ABSENT = "absent"
    """The harness is a program of its own and has loaded none yet."""
    LINKED = "linked"
    """In the program, which has not called it yet; what is said to happen at the start is believed."""
    LOADED = "loaded"


def reported_error(name: str, message: str, log: str, *, candidate: Presence, canary: Callable[[], None]) -> RunFailure:
    """The failure that an `error` reply stands for.

    Args:
        name: a CUDA error, `exception`, `load`, `harness` or `driver`.
        message: its text.
        log: what the program printed.
        candidate: where it was.
        canary: raises DeviceError when the machine is not sound.

    Raises:
        DeviceError: no candidate caused it.
    """
    if candidate is not Presence.LOADED:
        return _of_the_start(name, message, log, candidate)
    if name == "load":
        return RunFailure(RunFailureKind.LOAD, f"the candidate cannot be loaded: {message}", log)
    if name in DEVICE_LOST:
        canary()
        return RunFailure(RunFailureKind.RUNTIME, f"{name}, but a fresh process finds the GPU well", log)
    if name == "harness":
        canary()
        return RunFailure(RunFailureKind.RUNTIME, f"the harness failed with this candidate alone: {message}", log)
    kind = RunFailureKind.TIMEOUT if name == "cudaErrorLaunchTimeout" else RunFailureKind.RUNTIME
    return RunFailure(kind, f"{name}: {message}", log)


def _of_the_start(name: str, message: str, log: str, candidate: Presence) -> RunFailure:
    if name in DEVICE_LOST:
        raise DeviceError(f"the GPU failed: {name}: {message}", hint="check the GPU with nvidia-smi and dmesg")
    if name == NO_MEMORY:
        raise DeviceMemoryFull(
            "the problem's tensors do not fit the memory that is free on the GPU",
            hint="free GPU memory, or choose a smaller --size",
        )
    if name == "harness":
        raise DeviceError(f"the harness refused its job: {message}", hint="check driver.cpp and disk space")
    if candidate is Presence.ABSENT:
        raise _of_the_machine(f"{name}: {message}", log)
    return RunFailure(RunFailureKind.RUNTIME, f"{name}: {message}", log)


def process_failure(outcome: CommandResult, *, candidate: Presence) -> RunFailure:
    """The failure of a process that ended without an answer. Raises DeviceError where it held no candidate."""
    log = outcome.output[-LOG_CHARACTERS:]
    if candidate is Presence.ABSENT:
        raise _of_the_machine(f"the process {outcome.describe()}", log)
    if outcome.exceeded is ExceededLimit.TIME:
        return RunFailure(RunFailureKind.TIMEOUT, "it ran out of time", log)
    if outcome.exceeded is not None:
        return RunFailure(RunFailureKind.RUNTIME, f"it {outcome.describe()}", log)
    linked = candidate is Presence.LINKED
    if linked and ("error while loading shared libraries" in log or "symbol lookup error" in log):
        return RunFailure(RunFailureKind.LOAD, "the program cannot be loaded", log)
    return RunFailure(RunFailureKind.RUNTIME, f"the process {outcome.describe()} before it had answered", log)


def silence(seconds: float, log: str, *, candidate: Presence, canary: Callable[[], None]) -> RunFailure:
    """The failure of a process that did not answer in time. Raises DeviceError where no candidate is to blame."""
    if candidate is Presence.ABSENT:
        raise _of_the_machine(f"no answer within {seconds:g} s", log)
    if candidate is Presence.LOADED:
        canary()
    return RunFailure(RunFailureKind.TIMEOUT, f"no answer within {seconds:g} s", log)


def _of_the_machine(what: str, log: str) -> HarnessLost:
    last = log.strip().splitlines()[-1:]
    return HarnessLost(
        f"the harness failed before it had a candidate: {what}" + "".join(f" ({line[:200]})" for line in last),
        hint="see what ends or stalls processes on this machine: its memory, its load, its disk",
    )
