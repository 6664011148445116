"""PyTorch's own implementation as something to be `Sampled`: eager and torch.compile, timed beside the kernels.

Runs in the judge's process on the judge's GPU context; timed exactly like a candidate: cold L2, CUDA events around
the call, host clock until the device is idle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kernelblaster.devices.base import TimingSample
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.timing.stopwatch import COVER_FILL_BYTES

if TYPE_CHECKING:
    import torch


class TorchMode(StrEnum):
    """How PyTorch executes the reference module."""

    EAGER = "eager"
    COMPILE = "compile"
    """torch.compile with its default mode."""


class TorchSession:
    """The reference module in the run's precision, timed on the GPU. Satisfies `timing.Sampled`; it is never judged.

    Args:
        module: the reference `Model`, weights already in the run's precision, on the CPU.
        inputs: arguments of forward: tensors in the run's precision, on the CPU, and numbers.
        mode: eager or torch.compile.
        facts: the device; its L2 size decides how much is flushed before each sample.
    """

    def __init__(
        self, module: torch.nn.Module, inputs: Sequence[torch.Tensor | float], mode: TorchMode, facts: DeviceFacts
    ) -> None:
        self._module = module
        self._inputs = inputs
        self._mode = mode
        self._flush_bytes = 2 * facts.l2_bytes

    def __enter__(self) -> Self:
        import torch

        if not torch.cuda.is_available():
            raise DeviceError("PyTorch sees no GPU", hint="install a torch built for this machine's driver")
        module = self._module.cuda().eval()
        self._tensors = [value.cuda() if isinstance(value, torch.Tensor) else value for value in self._inputs]
        self._call: Callable[..., object] = torch.compile(module) if self._mode is TorchMode.COMPILE else module
        self._flush = torch.empty(self._flush_bytes, dtype=torch.uint8, device="cuda")
        with torch.inference_mode():
            for _ in range(3):
                self._call(*self._tensors)
        torch.cuda.synchronize()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import torch

        del self._tensors, self._flush, self._call
        self._module.cpu()
        torch.cuda.empty_cache()

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """Time as many calls as there are perturbations, each with a cold L2; PyTorch's values stay as drawn.

        The flush and as many fills as kernels get cover the time in which Python launches.
        """
        import torch

        samples = []
        with torch.inference_mode():
            for _ in perturbations:
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                self._flush.zero_()
                for _ in range(cover_fills):
                    self._flush[-COVER_FILL_BYTES:].zero_()
                began = time.perf_counter()
                start.record()
                self._call(*self._tensors)
                end.record()
                torch.cuda.synchronize()
                host_us = (time.perf_counter() - began) * 1e6
                samples.append(TimingSample(device_us=start.elapsed_time(end) * 1e3, host_us=host_us))
        return samples
