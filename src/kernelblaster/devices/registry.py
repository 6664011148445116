"""Devices by name: how each is opened, and with what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kernelblaster.devices.base import Device
from kernelblaster.devices.build.policy import CandidatePolicy
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.registry import Registry
from kernelblaster.sandbox.limits import Limits


def _ignore(stage: str) -> None:
    """Nobody waits."""


@dataclass(frozen=True)
class DeviceRequest:
    """What a device is opened with.

    Attributes:
        policy: what candidates may contain.
        gpu_type: `h200`: what the GPU must be, or what is emulated; None for any.
        limits: of each process of a candidate.
        jobs: compiles at once; 0 for no bound.
        why: why this device: `asked for`, ...
        tell: told what takes time.
    """

    policy: CandidatePolicy
    gpu_type: str | None = None
    limits: Limits = field(default_factory=Limits)
    jobs: int = 0
    why: str = "asked for"
    tell: Callable[[str], object] = _ignore


@dataclass(frozen=True)
class OpenedDevice:
    """A device, and one line on why it is this one."""

    device: Device
    reason: str


class DeviceOpener(Protocol):
    """Opens a device. Raises UsageError and DeviceError."""

    def __call__(self, request: DeviceRequest) -> OpenedDevice:
        """The device, ready for its first candidate."""
        ...


DEVICES: Registry[DeviceOpener] = Registry("device", DeviceOpener)
DEVICES.register(DeviceKind.CUDA, "kernelblaster.devices.cuda.opening:open_cuda", "the first NVIDIA GPU")
DEVICES.register(DeviceKind.EMULATED, "kernelblaster.devices.emulated.opening:open_emulated", "a GPU on the CPU")
