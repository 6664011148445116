"""The matrix products and convolutions that a reference runs, counted on torch's meta device: nothing is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelblaster.problems.reference import TORCH, Reference, run_model

if TYPE_CHECKING:
    from torch import Tensor

TENSOR_CORE_CHANNELS = 8
"""Least output channels per group that fill a tensor-core instruction; grouped convolutions below it are depthwise."""


@dataclass(frozen=True)
class Operation:
    """One product or convolution, as a batch of matrix products.

    Attributes:
        flops: multiplications and additions.
        rows, columns: of one output matrix; a convolution has positions for rows and channels for columns.
        batch: output matrices.
        convolution: whether it is one, so that algebra can save operations.
        depthwise: a convolution whose groups are too narrow for tensor cores.
        attention: torch's fused attention, counted in full though a mask may leave out half of it.
    """

    flops: float
    rows: int
    columns: int
    batch: int = 1
    convolution: bool = False
    depthwise: bool = False
    attention: bool = False

    @property
    def outputs(self) -> int:
        """Elements of the result."""
        return self.rows * self.columns * self.batch


def operations(reference: Reference, workload: str) -> tuple[Operation, ...]:
    """Every product and convolution of one call, in order. Raises ProblemError."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    found: list[Operation] = []

    class Counter(TorchDispatchMode):
        """Asks torch's table of operation counts about every call."""

        def __init__(self) -> None:
            TorchDispatchMode.__init__(self)

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Nothing is compiled here, and to keep it from being compiled torch would import its compiler for 1 s."""
            return False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            count = flop_registry.get(func.overloadpacket)
            output = result[0] if isinstance(result, tuple) and result else result
            if count is not None and isinstance(output, torch.Tensor):
                flops = float(count(*args, **(kwargs or {}), out_val=result))
                found.append(_operation(func.overloadpacket.__name__, args, output, flops))
            return result

    with TORCH, torch.device("meta"), torch.no_grad():
        model, inputs = reference.model(workload), reference.tensors(workload)
        with Counter():
            run_model(reference.problem, model, inputs)
    return tuple(found)


def _operation(name: str, args: tuple[Any, ...], output: Tensor, flops: float) -> Operation:
    if "convolution" in name:
        channels = output.shape[1]
        groups = args[8] if name == "convolution" and len(args) > 8 else 1
        return Operation(
            flops,
            rows=output.numel() // channels,
            columns=channels // groups,
            batch=groups,
            convolution=True,
            depthwise=groups > 1 and channels // groups < TENSOR_CORE_CHANNELS,
        )
    rows = output.shape[-2] if output.dim() > 1 else 1
    columns = output.shape[-1] if output.dim() else 1
    batch = output.numel() // (rows * columns) if output.numel() else 1
    return Operation(flops, rows, columns, batch, attention="attention" in name)
