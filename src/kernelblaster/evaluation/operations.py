"""The matrix products and convolutions that a reference runs, counted on torch's meta device: nothing is computed.

Each has its place on the longest chain of operations that wait for one another's results, as data flows through tensors
and their storage. Recurrent layers that a reference leaves out there, because torch would go through every step, are
counted from their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kernelblaster.problems.reference import TORCH, Reference, load_reference, reference_digest, run_model

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from kernelblaster.problems.problem import Problem

TENSOR_CORE_CHANNELS = 8
"""Least output channels per group that fill a tensor-core instruction; grouped convolutions below it are depthwise."""

_GATES = {"LSTM": 4, "GRU": 3}


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
        depth: operations of the longest chain that ends with it; 1 where it waits for no other.
    """

    flops: float
    rows: int
    columns: int
    batch: int = 1
    convolution: bool = False
    depthwise: bool = False
    attention: bool = False
    depth: int = 1

    @property
    def outputs(self) -> int:
        """Elements of the result."""
        return self.rows * self.columns * self.batch


def operations(reference: Reference, workload: str) -> tuple[Operation, ...]:
    """Every product and convolution of one call, in order. Raises ProblemError."""
    return _operations_of(reference.problem, workload, reference_digest(reference.problem))


@lru_cache(maxsize=256)
def _operations_of(problem: Problem, workload: str, digest: str) -> tuple[Operation, ...]:
    """The same, of a problem whose reference has this digest: floors and attainable times both ask."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    from kernelblaster.problems.shape_only import ElementwiseShapes

    reference = load_reference(problem)
    found: list[Operation] = []
    depths = _Depths()

    def passed(given: Any, result: Any) -> None:
        """Before the first product nothing lies behind anything."""
        if found:
            depths.passed(given, result, 0)

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
            if count is None or not isinstance(output, torch.Tensor):
                passed((args, kwargs), result)
                return result
            flops = float(count(*args, **(kwargs or {}), out_val=result))
            one = _operation(func.overloadpacket.__name__, args, output, flops)
            found.append(replace(one, depth=depths.passed((args, kwargs), result, 1)))
            return result

    with TORCH, torch.device("meta"), torch.no_grad():
        model, inputs = reference.model(workload), reference.tensors(workload)
        left_out = _recurrent_layers(model)
        with Counter(), ElementwiseShapes(passed):
            run_model(problem, model, inputs)
    for layers in left_out:
        found += _recurrent_operations(layers, list(inputs.values()))
    return tuple(found)


class _Depths:
    """How many operations lie behind what each storage holds."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._alive: list[object] = []  # a storage that is gone would lend its address to another

    def passed(self, given: object, result: object, operations: int) -> int:
        """The depth of a call's results: that of what it was given, and the operations that the call is."""
        from torch.utils._pytree import tree_leaves

        depth = max((self._known.get(key, 0) for key, _ in _storages(tree_leaves(given))), default=0) + operations
        for key, storage in _storages(tree_leaves(result)):
            if depth > self._known.get(key, 0):
                self._known[key] = depth
                self._alive.append(storage)
        return depth


def _storages(leaves: Sequence[object]) -> Iterator[tuple[int, object]]:
    import torch

    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            storage = leaf.untyped_storage()
            yield storage._cdata, storage


def _recurrent_layers(model: torch.nn.Module) -> list[torch.nn.RNNBase]:
    """Recurrent layers of a model; those that are called leave the list."""
    import torch

    layers = [module for module in model.modules() if isinstance(module, torch.nn.RNNBase)]
    for one in list(layers):
        one.register_forward_hook(lambda module, given, result: layers.remove(module) if module in layers else None)
    return layers


def _recurrent_operations(layers: torch.nn.RNNBase, inputs: Sequence[Tensor]) -> Iterator[Operation]:
    """Products of recurrent layers over the first input that fits them: of all steps at once, and step by step.

    A step waits for the one before; layers follow each other by a step, where a layer does not also go backwards.
    """
    given = next((one for one in inputs if one.dim() == 3 and one.shape[2] == layers.input_size), None)
    if given is None:
        return
    batch, steps = given.shape[0], given.shape[1]
    if not layers.batch_first:
        batch, steps = steps, batch
    directions, hidden = 1 + layers.bidirectional, layers.hidden_size
    columns = _GATES.get(layers.mode, 1) * hidden
    for layer in range(layers.num_layers):
        width = hidden * directions if layer else layers.input_size
        depth = steps * (layer + 1) if layers.bidirectional else steps + layer
        for _ in range(directions):
            yield Operation(2.0 * steps * batch * width * columns, steps * batch, columns)
            yield Operation(2.0 * steps * batch * hidden * columns, batch, columns, depth=depth)


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
