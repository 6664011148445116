"""The least time that any correct kernel can take on a device: a floor that must never lie above an honest time.

    floor = max( bytes that must move / peak bandwidth,  operations that must be done / peak rate )

Bandwidth: the data sheet's, which kernels that only read come near to and the fastest copy does not. Bytes: every input
and weight is read once from DRAM, for L2 is cold, but for inputs that a problem declares to be read in part
(`Problem.partly_read`); outputs count only beyond the size of L2, where they may stay. Tensors with many zeros count by
their share of other values: half a triangular matrix need not be read.

Operations count only where no algebra can save them: when the reference has exactly one matrix product or convolution
and as many outputs as that operation has. A sum over the product, or a chain of products, may be rearranged: 0.
Convolutions count an eighth (Winograd's largest usual tile saves a factor of five), inputs with many zeros count 0.
For fp32 the peak is the higher of the fp32 rate, a third of the TF32 and a sixth of the bf16 rate: tensor cores reach
fp32 accuracy with three and six products.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.peaks import highest_bandwidth
from kernelblaster.evaluation.operations import operations
from kernelblaster.problems.problem import Precision, Problem, TensorRole
from kernelblaster.problems.reference import TORCH, Reference, load_reference, tensor_specs

CONVOLUTION_SHARE = 1 / 8
DENSE = 0.9
"""Share of non-zero values above which a tensor counts in full."""


def floor_us(problem: Problem, workload: str, precision: Precision, facts: DeviceFacts) -> float:
    """The floor in microseconds. Raises ProblemError."""
    reference = load_reference(problem)
    shares = nonzero_shares(reference, problem.cheap_workload)
    specs = tensor_specs(problem, workload, precision)
    whole = [one for one in specs if one.role is not TensorRole.OUTPUT and one.name not in problem.partly_read]
    read = sum(spec.bytes * shares.get(spec.name, 1.0) for spec in whole)
    written = sum(spec.bytes for spec in specs if spec.role is TensorRole.OUTPUT)
    seconds = (read + max(0, written - facts.l2_bytes)) / highest_bandwidth(facts)
    peak = peak_flops(facts, precision)
    if peak is not None and not shares:
        outputs = sum(spec.elements for spec in specs if spec.role is TensorRole.OUTPUT)
        seconds = max(seconds, _operations(reference, workload, outputs) / peak)
    return 1e6 * seconds


def peak_flops(facts: DeviceFacts, precision: Precision) -> float | None:
    """Highest rate in FLOP/s at which the precision's accuracy can be had; None when the device does not say."""
    return rate_at_accuracy(facts.peak_flops, precision)


def rate_at_accuracy(known: Mapping[str, float], precision: Precision) -> float | None:
    """The same, of rates by the type that is multiplied (`fp32`, `tf32`, `fp16`, `bf16`)."""
    if precision is not Precision.FP32:
        return known.get(precision.value)
    rates = [known[name] / products for name, products in (("fp32", 1), ("tf32", 3), ("bf16", 6)) if name in known]
    return max(rates, default=None)


def nonzero_shares(reference: Reference, workload: str) -> Mapping[str, float]:
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
    found = operations(reference, workload)
    if len(found) != 1 or found[0].attention or found[0].outputs != outputs:
        return 0.0
    return found[0].flops * (CONVOLUTION_SHARE if found[0].convolution else 1.0)
