"""The device that PyTorch's times are measured on."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kernelblaster.devices.cuda.facts import device_facts
from kernelblaster.devices.cuda.lock import gpu_lock
from kernelblaster.devices.cuda.monitor import Monitor
from kernelblaster.devices.cuda.probe import GpuInfo
from kernelblaster.devices.facts import DeviceFacts, GpuReading
from kernelblaster.evaluation.timing.stopwatch import Timeable
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.evaluation.timing.torch_session import TorchSession

if TYPE_CHECKING:
    import torch

Compiled = Callable[..., object]
"""A module that was compiled, to be called as the module is."""


class TorchTimeable(Timeable, Protocol):
    """A module in a mode, timed as it is or, where that is possible, as a CUDA graph."""

    def captured(self) -> Timeable | None:
        """The same calls as a graph; None where they cannot be captured."""
        ...


class TorchDevice(Protocol):
    """A device that PyTorch runs on and that one process can hold alone."""

    @property
    def facts(self) -> DeviceFacts:
        """What is known of it."""
        ...

    @property
    def torch_device(self) -> str:
        """As torch names it."""
        ...

    def held(self) -> AbstractContextManager[object]:
        """Nobody else runs anything on it meanwhile."""
        ...

    def reading(self) -> GpuReading | None:
        """Its clock and temperature now."""
        ...

    def session(
        self, module: torch.nn.Module, inputs: Sequence[Any], mode: TorchMode, compiled: Compiled | None
    ) -> AbstractContextManager[TorchTimeable]:
        """The module in a mode, warmed up; compiled here where it is not yet."""
        ...


@dataclass(frozen=True)
class TorchGpu:
    """The GPU of this machine. Satisfies `TorchDevice`."""

    facts: DeviceFacts
    monitor: Monitor
    torch_device: str = "cuda"

    @classmethod
    def of(cls, gpu: GpuInfo) -> TorchGpu:
        """Raises DeviceError when the CUDA driver does not answer."""
        return cls(device_facts(gpu), Monitor(gpu.uuid))

    def held(self) -> AbstractContextManager[object]:
        """The lock under which kernels are timed as well."""
        return gpu_lock(self.facts.uuid or "gpu")

    def reading(self) -> GpuReading | None:
        """Its clock and temperature now."""
        return self.monitor.read()

    def session(
        self, module: torch.nn.Module, inputs: Sequence[Any], mode: TorchMode, compiled: Compiled | None
    ) -> AbstractContextManager[TorchTimeable]:
        """Timed like a candidate, see `TorchSession`."""
        return TorchSession(module, inputs, mode, self.facts, compiled)

    def settle(self) -> None:
        """Forget what was compiled, free what was held. Raises RuntimeError for a context that an error has broken."""
        import torch

        torch.compiler.reset()
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
