"""torch.compile without a run: what the compiler does on the CPU is done before the GPU is held.

A first call of a compiled module traces, compiles and runs. Here the compiled graphs hold their runs back until they
are released, so that many processes compile beside one that measures. A module whose trace breaks into several graphs
compiles the later ones when it first runs. Where the compiler times kernels on the GPU to choose among them, which is
what max-autotune does, it holds the GPU alone while it times; what it builds for that is built before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelblaster.evaluation.timing.torch_mode import TorchMode

if TYPE_CHECKING:
    import torch

AHEAD = frozenset({TorchMode.COMPILE, TorchMode.MAX_AUTOTUNE, TorchMode.REDUCE_OVERHEAD})
"""Modes that are compiled ahead."""
_CHOICES = "benchmark_in_current_process"
Held = Callable[[], AbstractContextManager[object]]
"""Has the GPU alone for as long as the context lasts."""


class _HeldBack(Exception):
    """A graph is compiled, and its first run held back."""


@dataclass
class _Backend:
    """Inductor in one mode, for torch.compile."""

    options: dict[str, Any]
    holding: bool = True

    def __call__(self, graph: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        import torch._inductor

        compiled = torch._inductor.compile(graph, examples, options=self.options)

        def run(*arguments: Any) -> Any:
            if self.holding:
                raise _HeldBack
            return compiled(*arguments)

        return run


def compile_ahead(module: torch.nn.Module, inputs: Sequence[Any], mode: TorchMode, held: Held) -> Callable[..., object]:
    """The module compiled for these inputs, to be called in inference mode; it has not run as a whole on the GPU.

    Args:
        module: in evaluation mode, on its device.
        inputs: arguments of forward, on the same.
        mode: one of `AHEAD`.
        held: entered whenever the compiler times kernels; not re-entrant.

    Raises whatever the compiler raises.
    """
    import torch

    options = {} if mode is TorchMode.COMPILE else dict(torch._inductor.list_mode_options(mode.value))
    backend = _Backend(options)
    call: Callable[..., object] = torch.compile(module, backend=backend)
    with torch.inference_mode(), _timing_alone(held), suppress(_HeldBack):
        call(*inputs)
    backend.holding = False
    return call


@contextmanager
def _timing_alone(held: Held) -> Iterator[None]:
    """Inductor holds the GPU while it times the choices of one operation, or a single kernel, in its own process.

    Before torch 2.12 it has no setting for that; these are the places through which its measurements go. A kernel that
    it fuses runs once before, for its build.
    """
    from torch._inductor.runtime.benchmarking import benchmarker
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    holding = False

    def alone(measure: Callable[..., Any]) -> Callable[..., Any]:
        def measure_alone(*args: Any, **kwargs: Any) -> Any:
            nonlocal holding
            if holding:
                return measure(*args, **kwargs)
            with held():
                holding = True
                try:
                    return measure(*args, **kwargs)
                finally:
                    holding = False

        return measure_alone

    # Older versions have no method of that name: their choices are timed one by one, each of them alone.
    choices = vars(AlgorithmSelectorCache).get(_CHOICES)
    try:
        if choices is not None:
            setattr(AlgorithmSelectorCache, _CHOICES, staticmethod(alone(getattr(AlgorithmSelectorCache, _CHOICES))))
        benchmarker.benchmark_gpu = alone(benchmarker.benchmark_gpu)
        yield
    finally:
        if choices is not None:
            setattr(AlgorithmSelectorCache, _CHOICES, choices)
        del benchmarker.benchmark_gpu
