"""PyTorch's own implementation as something to be timed beside the kernels: eager and torch.compile in its modes.

Runs in the judge's process on the judge's GPU context; timed exactly like a candidate: cold L2, CUDA events around
the call behind fills that hide its launch, host clock until the device is idle.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kernelblaster.devices.base import TimingSample
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.timing.stopwatch import COVER_FILL_BYTES
from kernelblaster.evaluation.timing.torch_mode import TorchMode

if TYPE_CHECKING:
    import torch


_LOG = logging.getLogger(__name__)
_WARM_UP = 5
"""Calls that compile, autotune and record graphs."""
_BEFORE_CAPTURE = 2


class TorchSession:
    """The reference module in the run's precision, timed on the GPU. Satisfies `timing.Sampled`; it is never judged.

    Args:
        module: the reference `Model`, weights already in the run's precision.
        inputs: arguments of forward: tensors in the run's precision, and numbers.
        mode: eager or torch.compile.
        facts: the device; its L2 size decides how much is flushed before each sample.
        compiled: what is called instead of compiling the module here, see `compile_ahead`; both are on the GPU then.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        inputs: Sequence[torch.Tensor | float],
        mode: TorchMode,
        facts: DeviceFacts,
        compiled: Callable[..., object] | None = None,
    ) -> None:
        self._module = module
        self._inputs = inputs
        self._mode = mode
        self._compiled = compiled
        self._flush_bytes = 2 * facts.l2_bytes

    def __enter__(self) -> Self:
        import torch

        if not torch.cuda.is_available():
            raise DeviceError("PyTorch sees no GPU", hint="install a torch built for this machine's driver")
        module = self._module.cuda().eval()
        self._tensors = [value.cuda() if isinstance(value, torch.Tensor) else value for value in self._inputs]
        self._call = self._implementation(module) if self._compiled is None else self._compiled
        self._flush = torch.empty(self._flush_bytes, dtype=torch.uint8, device="cuda")
        with torch.inference_mode():
            for _ in range(_WARM_UP):
                if self._mode is TorchMode.REDUCE_OVERHEAD:
                    torch.compiler.cudagraph_mark_step_begin()
                self._call(*self._tensors)
        torch.cuda.synchronize()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import torch

        del self._tensors, self._flush, self._call, self._compiled, self._module, self._inputs
        torch.cuda.empty_cache()

    def _implementation(self, module: torch.nn.Module) -> Callable[..., object]:
        import torch

        if self._mode is TorchMode.EAGER:
            return module
        compiled: Callable[..., object] = torch.compile(
            module, mode=None if self._mode is TorchMode.COMPILE else self._mode.value
        )
        return compiled

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """Time as many calls as there are perturbations, each with a cold L2; PyTorch's values stay as drawn.

        Calls are launched behind fills that last as long as those of a kernel: of the whole flush buffer, because
        launching one costs Python as much as a third of what a small one takes.
        """
        import torch

        with torch.inference_mode():
            return [self.timed(lambda: self._call(*self._tensors), cover_fills) for _ in perturbations]

    def captured(self) -> GraphSession | None:
        """The same calls as a CUDA graph; None where they cannot be captured, as those that ask the GPU for values.

        Raises RuntimeError for a context that an error has broken.
        """
        import torch

        if self._mode is TorchMode.REDUCE_OVERHEAD:
            return None  # it records graphs of its own
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        try:
            with torch.inference_mode():
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    for _ in range(_BEFORE_CAPTURE):
                        self._call(*self._tensors)
                torch.cuda.current_stream().wait_stream(stream)
                with torch.cuda.graph(graph):
                    self._call(*self._tensors)
        except RuntimeError as error:
            _LOG.info("%s cannot be captured: %s", self._mode, error)
            torch.cuda.synchronize()
            return None
        return GraphSession(self, graph)

    def timed(self, call: Callable[[], object], cover_fills: int) -> TimingSample:
        """One call with a cold L2, launched behind so many fills."""
        import torch

        fills = math.ceil(cover_fills * COVER_FILL_BYTES / self._flush_bytes)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if self._mode is TorchMode.REDUCE_OVERHEAD:
            torch.compiler.cudagraph_mark_step_begin()  # the last call's outputs may be overwritten
        self._flush.zero_()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(fills):
            self._flush.zero_()
        start.record()
        launch = time.perf_counter()
        call()
        end.record()
        enqueue_us = (time.perf_counter() - launch) * 1e6
        torch.cuda.synchronize()
        host_us = (time.perf_counter() - began) * 1e6
        return TimingSample(device_us=start.elapsed_time(end) * 1e3, host_us=host_us, enqueue_us=enqueue_us)


@dataclass(frozen=True)
class GraphSession:
    """A session whose launches were captured in a CUDA graph, to be timed in its place. Satisfies `Timeable`.

    It lives no longer than the session.
    """

    session: TorchSession
    graph: torch.cuda.CUDAGraph

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """As the session's, of replays of the graph."""
        return [self.session.timed(self.graph.replay, cover_fills) for _ in perturbations]
