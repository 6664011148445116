"""torch.compile without a run: what the compiler does on the CPU is done before the GPU is held.

A first call of a compiled module traces, compiles and runs. Here the compiled graphs hold their runs back until they
are released, so that many processes compile beside one that measures. A module whose trace breaks into several graphs
compiles the later ones when it first runs. A mode that tries kernels on the GPU while it compiles cannot be compiled
ahead: it would measure them beside others' work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelblaster.evaluation.timing.torch_mode import TorchMode

if TYPE_CHECKING:
    import torch

AHEAD = frozenset({TorchMode.COMPILE, TorchMode.REDUCE_OVERHEAD})
"""Modes that can be compiled ahead."""


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


def compile_ahead(module: torch.nn.Module, inputs: Sequence[Any], mode: TorchMode) -> Callable[..., object]:
    """The module compiled for these inputs, to be called in inference mode; nothing has run on the GPU.

    Args:
        module: in evaluation mode, on its device.
        inputs: arguments of forward, on the same.
        mode: one of `AHEAD`.

    Raises whatever the compiler raises.
    """
    import torch

    options = {} if mode is TorchMode.COMPILE else dict(torch._inductor.list_mode_options(mode.value))
    backend = _Backend(options)
    call: Callable[..., object] = torch.compile(module, backend=backend)
    with torch.inference_mode(), suppress(_HeldBack):
        call(*inputs)
    backend.holding = False
    return call
