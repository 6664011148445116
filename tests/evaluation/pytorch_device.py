"""A device for PyTorch's modes that is the CPU: real modules and values, a clock that counts calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from fake_device import facts

from kernelblaster.devices.base import TimingSample
from kernelblaster.devices.facts import DeviceFacts, GpuReading
from kernelblaster.evaluation.timing.pytorch_times import TorchMode
from kernelblaster.evaluation.timing.stopwatch import Timeable


@dataclass
class Clock:
    """Calls the module and says that it took ten microseconds."""

    call: Callable[..., object]
    inputs: Sequence[Any]

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        with torch.inference_mode():
            self.call(*self.inputs)
        return [TimingSample(10.0, 30.0, 5.0) for _ in perturbations]

    def captured(self) -> Timeable | None:
        return None


@dataclass
class Cpu:
    """Satisfies `TorchDevice`; counts how often it is held, and fails in one mode."""

    broken: TorchMode | None = None
    error: Exception = field(default_factory=lambda: RuntimeError("no such mode\nmore"))
    facts: DeviceFacts = field(default_factory=facts)
    torch_device: str = "cpu"
    holder: bool = False

    @contextmanager
    def held(self) -> Iterator[None]:
        assert not self.holder
        self.holder = True
        try:
            yield
        finally:
            self.holder = False

    def reading(self) -> GpuReading | None:
        return GpuReading(1980.0, 40.0) if self.holder else None

    @contextmanager
    def session(
        self, module: torch.nn.Module, inputs: Sequence[Any], mode: TorchMode, compiled: Callable[..., object] | None
    ) -> Iterator[Clock]:
        assert self.holder, "nothing runs on a device that is not held"
        if mode is self.broken:
            raise self.error
        assert all(value.dtype == torch.float16 for value in inputs if isinstance(value, torch.Tensor))
        yield Clock(compiled or module, inputs)
