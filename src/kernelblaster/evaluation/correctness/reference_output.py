"""Draws the tensors of one input set and computes what they must give: in float64, and as PyTorch would plainly.

All torch work of the judge goes through one lock (`problems.reference.TORCH`), because seeds, default type and numeric
flags are global to torch.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from kernelblaster.evaluation.correctness.error_budget import ErrorScale, fits
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.drawing import add_outlier, coarse, randomize_constants, transform
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation
from kernelblaster.evaluation.inputs.scratch import free_host_memory
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, borrowed_memory, read_tensor, storage_dtype
from kernelblaster.problems.problem import Precision, TensorRole, TensorSpec
from kernelblaster.problems.reference import TORCH
from kernelblaster.problems.time_limit import within_time

if TYPE_CHECKING:
    from pathlib import Path

    from kernelblaster.devices.base import PerturbationKind
    from kernelblaster.evaluation.inputs.keys import InputKey
    from kernelblaster.problems.problem import Problem
    from kernelblaster.problems.reference import Reference

_LOG = logging.getLogger(__name__)
_MEMORY_SHARE = 0.7
"""Of the free memory, what a reference may take."""
_PINNED_BYTES = 1 << 30
"""Of a reference that is kept in page-locked memory, from where it gets to the GPU several times faster."""
_COPIES = 4
"""Tensors of the output's size that a forward pass may hold at once, besides inputs and weights."""


@dataclass(frozen=True)
class Draw:
    """Inputs and weights of one input set, quantised to the precision, on the CPU, and the module they belong to."""

    problem: Problem
    module: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    weights: dict[str, torch.Tensor]


@dataclass(frozen=True)
class ReferenceOutput:
    """What a correct kernel returns for a draw, and how wrong PyTorch's plain implementation is.

    Attributes:
        values: on the CPU; float64, or float32 where that is exact enough or memory forbids more.
        scale: None for an integer output, which must be equal.
        notes: what a reader of the evaluation must know, e.g. that memory forbade float64.
    """

    values: torch.Tensor
    scale: ErrorScale | None
    notes: tuple[str, ...]


def draw(
    reference: Reference, size: str, precision: Precision, distribution: Distribution, exponent: int, seed: int
) -> Draw:
    """Draw inputs and weights from a seed and quantise them. Raises ProblemError."""
    dtype = storage_dtype(precision)
    with TORCH, torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        module = reference.model(size)
        declared = dict(zip(reference.input_names, reference.inputs(size), strict=True))
        generator = torch.Generator().manual_seed(seed)
        inputs = {
            name: transform(tensor, distribution, exponent).to(dtype) if tensor.is_floating_point() else tensor
            for name, tensor in declared.items()
        }
        weights = {
            name: randomize_constants(tensor, generator).to(dtype, copy=True)
            if tensor.is_floating_point()
            else tensor.clone()
            for name, tensor in module.state_dict().items()
        }
        add_outlier(weights, distribution)
        if distribution is Distribution.COARSE:
            weights = {name: coarse(value) if value.is_floating_point() else value for name, value in weights.items()}
    return Draw(reference.problem, module, inputs, weights)


def perturb(
    reference: Reference,
    key: InputKey,
    specs: Sequence[TensorSpec],
    files: Mapping[str, Path],
    perturbation_kinds: Mapping[str, PerturbationKind],
) -> Draw:
    """The draw of `key` without its variant, read from its files, with the variant's changes. Raises ProblemError."""
    with TORCH, torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(key.seed)
        module = reference.model(key.size)
        values = {
            spec.name: apply_perturbation(
                read_tensor(files[spec.name], spec).reshape(spec.shape),
                perturbation_kinds[spec.name],
                index,
                key.perturbation,
            )
            for index, spec in enumerate(specs)
            if spec.role is not TensorRole.OUTPUT
        }
    roles = {spec.name: spec.role for spec in specs}
    inputs = {name: value for name, value in values.items() if roles[name] is TensorRole.INPUT}
    weights = {name: value for name, value in values.items() if roles[name] is TensorRole.WEIGHT}
    return Draw(reference.problem, module, inputs, weights)


def solve(drawn: Draw, spec: TensorSpec, precision: Precision) -> ReferenceOutput:
    """Compute reference and plain result of a draw; `spec` is the output's. Raises DeviceError."""
    with TORCH, torch.no_grad(), _numerics(), borrowed_memory() as device:
        exact, notes = _exact_dtype(drawn, spec, device)
        reference = _run(drawn, exact, device)
        if not reference.is_floating_point():
            return ReferenceOutput(reference.cpu(), None, notes)
        plain = _plain(drawn, storage_dtype(precision), device)
        scale = ErrorScale.measure(reference, plain, spec)
        return ReferenceOutput(_to_host(reference.to(_kept_dtype(precision, exact))), scale, notes)


def exact_result(drawn: Draw, spec: TensorSpec) -> torch.Tensor:
    """The reference of a draw alone, on the CPU; `spec` is the output's."""
    with TORCH, torch.no_grad(), _numerics(), borrowed_memory() as device:
        return _run(drawn, _exact_dtype(drawn, spec, device)[0], device).cpu()


def informative(expected: ReferenceOutput, spec: TensorSpec, distribution: Distribution) -> bool:
    """Whether an input set can tell right from wrong in its precision.

    It cannot when the reference is zero or not representable, or when PyTorch itself loses most digits: a budget
    anchored at that would let anything pass. On structured inputs, which are made to be hard, PyTorch must lose nothing
    but the rounding of the result: where it does, what another honest kernel loses is anybody's guess.
    """
    scale = expected.scale
    if scale is None:
        return True
    if not bool(fits(expected.values, spec.dtype).all()) or not scale.plain_finite or scale.reference_norm == 0:
        return False
    eps = torch.finfo(TORCH_DTYPES[spec.dtype]).eps
    if distribution in (Distribution.OFFSET, Distribution.SPARSE):
        return scale.plain_norm <= max(eps, 1e-4)
    return scale.plain_norm <= max(8 * eps, 1e-3)


def _run(drawn: Draw, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Run the module on the drawn values, upcast or as they are."""

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(device, dtype if tensor.is_floating_point() else tensor.dtype)

    module = copy.deepcopy(drawn.module).to(dtype).to(device)
    module.load_state_dict({name: cast(weight) for name, weight in drawn.weights.items()})
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        inputs = [cast(tensor) for tensor in drawn.inputs.values()]
        with within_time(drawn.problem):
            output: torch.Tensor = module(*inputs)
            return output
    finally:
        torch.set_default_dtype(previous)


def _plain(drawn: Draw, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Run the module in the storage type; where torch cannot, in float32 with the result rounded to it."""
    try:
        return _run(drawn, dtype, device)
    except RuntimeError as error:
        if "not implemented" not in str(error) and "not supported" not in str(error):
            raise
        _LOG.debug("torch lacks an operation in %s (%s); computing in float32", dtype, error)
        return _run(drawn, torch.float32, device).to(dtype)


def _exact_dtype(drawn: Draw, spec: TensorSpec, device: torch.device) -> tuple[torch.dtype, tuple[str, ...]]:
    given = sum(t.numel() for t in (*drawn.inputs.values(), *drawn.weights.values()))
    wanted = 8 * (given + _COPIES * spec.elements)
    if wanted <= _MEMORY_SHARE * _free_memory(device):
        return torch.float64, ()
    return torch.float32, ("the reference was computed in float32: float64 needs more memory than is free",)


def _kept_dtype(precision: Precision, exact: torch.dtype) -> torch.dtype:
    """float32 resolves the budget of 16-bit formats and halves the memory that references take."""
    return exact if precision is Precision.FP32 else torch.float32


def _to_host(reference: torch.Tensor) -> torch.Tensor:
    """A copy on the CPU; page-locked where it will be compared on a GPU and is not large."""
    if reference.device.type != "cuda" or reference.nbytes > _PINNED_BYTES:
        return reference.cpu()
    return torch.empty(reference.shape, dtype=reference.dtype, pin_memory=True).copy_(reference)


def _free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return free_host_memory()


@contextmanager
def _numerics() -> Iterator[None]:
    """The plain implementation is exact to its format: no TF32, no 16-bit accumulation."""
    matmul = torch.backends.cuda.matmul
    kept = (matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction)
    kept_bf16 = matmul.allow_bf16_reduced_precision_reduction
    matmul.allow_tf32 = matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=False):
            yield
    finally:
        matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction = kept
        matmul.allow_bf16_reduced_precision_reduction = kept_bf16
