"""The least time that any correct kernel can take on a device: a floor that must never lie above an honest time.

    floor = max( bytes that must move / peak bandwidth,  operations that must be done / peak rate )

Bytes: every input and weight is read once from DRAM, for L2 is cold; outputs count only beyond the size of L2, where
they may stay. Tensors with many zeros count by their share of other values: half a triangular matrix need not be read.

Operations count only where no algebra can save them: when the reference has exactly one matrix product or convolution
and as many outputs as that operation has. A sum over the product, or a chain of products, may be rearranged: 0.
Convolutions count an eighth (Winograd's largest usual tile saves a factor of five), inputs with many zeros count 0.
For fp32 the peak is the higher of the fp32 rate, a third of the TF32 and a sixth of the bf16 rate: tensor cores reach
fp32 accuracy with three and six products.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.problems.problem import Precision, Problem, TensorRole
from kernelblaster.problems.reference import TORCH, Reference, load_reference, run_model, tensor_specs

if TYPE_CHECKING:
    from torch.utils._python_dispatch import TorchDispatchMode


CONVOLUTION_SHARE = 1 / 8
DENSE = 0.9
"""Share of non-zero values above which a tensor counts in full."""


def floor_us(problem: Problem, workload: str, precision: Precision, facts: DeviceFacts) -> float:
    """The floor in microseconds. Raises ProblemError."""
    reference = load_reference(problem)
    shares = _shares(reference, problem.cheap_workload)
    specs = tensor_specs(problem, workload, precision)
    read = sum(spec.bytes * shares.get(spec.name, 1.0) for spec in specs if spec.role is not TensorRole.OUTPUT)
    written = sum(spec.bytes for spec in specs if spec.role is TensorRole.OUTPUT)
    seconds = (read + max(0, written - facts.l2_bytes)) / facts.peak_bandwidth
    peak = peak_flops(facts, precision)
    if peak is not None and not shares:
        outputs = sum(spec.elements for spec in specs if spec.role is TensorRole.OUTPUT)
        seconds = max(seconds, _operations(reference, workload, outputs) / peak)
    return 1e6 * seconds


def peak_flops(facts: DeviceFacts, precision: Precision) -> float | None:
    """Highest rate in FLOP/s at which the precision's accuracy can be had; None when the device does not say."""
    known = facts.peak_flops
    if precision is not Precision.FP32:
        return known.get(precision.value)
    rates = [known[name] / products for name, products in (("fp32", 1), ("tf32", 3), ("bf16", 6)) if name in known]
    return max(rates, default=None)


def _shares(reference: Reference, workload: str) -> Mapping[str, float]:
    """Share of non-zero values of the inputs that have many zeros."""
    import torch

    with TORCH, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        inputs = reference.tensors(workload)
    floating = {name: tensor for name, tensor in inputs.items() if tensor.is_floating_point() and tensor.numel()}
    shares = {name: float((tensor != 0).float().mean()) for name, tensor in floating.items()}
    return {name: share for name, share in shares.items() if share < DENSE}


def _operations(reference: Reference, workload: str, outputs: int) -> float:
    """Operations of the reference's only product or convolution; 0 when there is another number of them."""
    import torch

    counter, calls = _counter()
    with TORCH, torch.device("meta"), torch.no_grad():
        model, inputs = reference.model(workload), reference.tensors(workload)
        with counter:
            run_model(reference.problem, model, inputs)
    if len(calls) != 1:
        return 0.0
    operations, elements = calls[0]
    return operations if elements == outputs else 0.0


def _counter() -> tuple[TorchDispatchMode, list[tuple[float, int]]]:
    """A mode, and (operations, output elements) of each product and convolution that is run under it."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    found: list[tuple[float, int]] = []

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
            if count is not None and isinstance(result, torch.Tensor):
                share = CONVOLUTION_SHARE if "convolution" in func.overloadpacket.__name__ else 1.0
                found.append((share * count(*args, **(kwargs or {}), out_val=result), result.numel()))
            return result

    return Counter(), found
