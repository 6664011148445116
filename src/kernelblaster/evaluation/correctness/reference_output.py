"""Draws the tensors of one input set and computes what they must give: in float64, and as PyTorch would plainly.

All torch work of the judge goes through one lock (`problems.reference.TORCH`), because seeds, default type and numeric
flags are global to torch.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from kernelblaster.devices.base import PerturbationKind
from kernelblaster.errors import DeviceMemoryFull
from kernelblaster.evaluation.correctness.error_budget import ErrorScale
from kernelblaster.evaluation.correctness.index_ties import IndexTies
from kernelblaster.evaluation.correctness.widening import Widened, lacking
from kernelblaster.evaluation.inputs.distributions import Distribution, accumulation_at
from kernelblaster.evaluation.inputs.drawing import (
    add_outlier,
    coarse,
    permitted_perturbation,
    randomize_constants,
    transform,
)
from kernelblaster.evaluation.inputs.integers import transform_integers
from kernelblaster.evaluation.inputs.leading import distances, leading_input, mask, mix
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation, mirror_of
from kernelblaster.evaluation.inputs.scratch import free_host_memory
from kernelblaster.evaluation.inputs.tensors import (
    TORCH_DTYPES,
    borrowed_memory,
    drawing_threads,
    load_tensor,
    storage_dtype,
)
from kernelblaster.problems.problem import Precision, TensorRole, TensorSpec
from kernelblaster.problems.reference import TORCH, run_model, weights_of
from kernelblaster.problems.time_limit import within_time

if TYPE_CHECKING:
    from pathlib import Path

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
    """Input tensors and weights of one input set, quantised as they are stored, on one device, and their module.

    Attributes:
        mixed: the input whose samples have distributions of their own; None where none has.
    """

    problem: Problem
    module: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    weights: dict[str, torch.Tensor]
    mixed: str | None = None


@dataclass(frozen=True)
class ReferenceTensor:
    """What a correct kernel leaves in one output, and how wrong PyTorch's plain implementation is there.

    Attributes:
        spec: the output.
        values: on the CPU; float64, or float32 where that is exact enough or memory forbids more; integers and flags in
            the stored type.
        scale: None for integers and flags, which must be equal.
        ties: where these are indices, which others are as good.
    """

    spec: TensorSpec
    values: torch.Tensor
    scale: ErrorScale | None
    ties: IndexTies | None = None

    @property
    def bytes(self) -> int:
        """Memory it takes."""
        return self.values.nbytes + (0 if self.ties is None else self.ties.scores.nbytes)


@dataclass(frozen=True)
class ReferenceOutput:
    """What a correct kernel returns for a draw.

    Attributes:
        tensors: one per output, in the problem's order.
        notes: what a reader of the evaluation must know, e.g. that memory forbade float64.
    """

    tensors: tuple[ReferenceTensor, ...]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> ReferenceTensor:
        """The output of a name."""
        return next(tensor for tensor in self.tensors if tensor.spec.name == name)


def draw(
    reference: Reference,
    workload: str,
    specs: Sequence[TensorSpec],
    distribution: Distribution,
    exponent: int,
    seed: int,
) -> Draw:
    """Draw input tensors and weights from a seed and quantise them as `specs` says.

    They are drawn on the compute device: a host's one generator takes seconds for what a GPU draws in milliseconds.
    A seed gives the same values on devices of one kind. Where a GPU's memory does not suffice, the host draws.

    Raises ProblemError.
    """
    asked = (reference, workload, specs, distribution, exponent, seed)
    with TORCH:
        with suppress(DeviceMemoryFull), borrowed_memory() as device:
            return _draw_on(device, *asked)
        return _draw_on(torch.device("cpu"), *asked)


def _draw_on(
    device: torch.device,
    reference: Reference,
    workload: str,
    specs: Sequence[TensorSpec],
    distribution: Distribution,
    exponent: int,
    seed: int,
) -> Draw:
    stored = {spec.name: TORCH_DTYPES[spec.dtype] for spec in specs}
    with _seeded(seed, device, specs):
        module = reference.model(workload)
        generator = torch.Generator(device).manual_seed(seed)
        inputs = {
            name: _drawn_as(reference.problem, name, tensor.to(device), distribution, exponent, generator).to(
                stored[name]
            )
            for name, tensor in reference.tensors(workload).items()
        }
        leading = _special_input(reference.problem, specs, inputs, distribution)
        if leading is not None:
            values = inputs[leading].float()
            if distribution is Distribution.MASKED:
                values = mask(values, exponent, generator)
            else:
                values = mix(values, exponent, generator, stored[leading])
            inputs[leading] = values.to(stored[leading])
        weights = {
            name: (randomize_constants(tensor.to(device), generator) if tensor.is_floating_point() else tensor).to(
                device, stored[name], copy=True
            )
            for name, tensor in weights_of(module).items()
        }
        add_outlier(weights, distribution)
        if distribution is Distribution.COARSE:
            weights = {name: _coarse(value) for name, value in weights.items()}
    mixed = leading if distribution is Distribution.MIXED else None
    return Draw(reference.problem, module, inputs, weights, mixed)


@contextmanager
def _seeded(seed: int, device: torch.device, specs: Sequence[TensorSpec]) -> Iterator[None]:
    """Torch's global generators begin at a seed, and new tensors lie on a device. The caller holds `TORCH`."""
    elements = max(spec.elements for spec in specs)
    forked = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=forked), torch.no_grad(), device, drawing_threads(elements):
        torch.manual_seed(seed)
        yield


def _special_input(
    problem: Problem, specs: Sequence[TensorSpec], inputs: Mapping[str, torch.Tensor], distribution: Distribution
) -> str | None:
    """The input that alone gets masks or a mixture; None where none may."""
    name = leading_input(specs) if distribution in (Distribution.MASKED, Distribution.MIXED) else None
    if name is None or permitted_perturbation(problem, name, inputs[name]) is not PerturbationKind.SHIFT:
        return None
    return name


def _drawn_as(
    problem: Problem,
    name: str,
    tensor: torch.Tensor,
    distribution: Distribution,
    exponent: int,
    generator: torch.Generator,
) -> torch.Tensor:
    """An input of the wanted distribution; as it is declared where the problem keeps it, or it has no bounds."""
    if name in problem.kept:
        return tensor
    if tensor.is_floating_point():
        return transform(tensor, distribution, exponent, generator)
    bounds = problem.ranges.get(name)
    return tensor if bounds is None else transform_integers(tensor, bounds, distribution, generator)


def _coarse(weight: torch.Tensor) -> torch.Tensor:
    """A coarse weight of the same type; torch has no arithmetic for formats of 8 bits."""
    if not weight.is_floating_point():
        return weight
    return coarse(weight) if weight.element_size() > 1 else coarse(weight.float()).to(weight.dtype)


def perturb(
    reference: Reference,
    key: InputKey,
    specs: Sequence[TensorSpec],
    files: Mapping[str, Path],
    perturbation_kinds: Mapping[str, PerturbationKind],
    mixed: str | None = None,
) -> Draw:
    """The draw of `key` unperturbed, read from its files onto the compute device, and then perturbed; `mixed` as of it.

    Raises ProblemError, DeviceMemoryFull.
    """
    with TORCH, borrowed_memory() as device, _seeded(key.seed, device, specs):
        module = reference.model(key.workload)
        values = {
            spec.name: apply_perturbation(
                load_tensor(files[spec.name], spec, device).reshape(spec.shape),
                perturbation_kinds[spec.name],
                index,
                key.perturbation,
                mirror_of(key.problem, spec.name),
            )
            for index, spec in enumerate(specs)
            if spec.role is not TensorRole.OUTPUT
        }
    roles = {spec.name: spec.role for spec in specs}
    inputs = {name: value for name, value in values.items() if roles[name] is TensorRole.INPUT}
    weights = {name: value for name, value in values.items() if roles[name] is TensorRole.WEIGHT}
    return Draw(reference.problem, module, inputs, weights, mixed)


def solve(drawn: Draw, outputs: Sequence[TensorSpec], precision: Precision) -> ReferenceOutput:
    """Compute reference and plain result of a draw; `outputs` in the problem's order. Raises DeviceError."""
    with TORCH, torch.no_grad(), _numerics(), borrowed_memory() as device:
        exact, notes = _exact_dtype(drawn, outputs, device)
        references = _run(drawn, exact, device)
        losses = None if drawn.mixed is None else _losses(drawn.inputs[drawn.mixed], device)
        plain: dict[torch.dtype, tuple[torch.Tensor, ...]] = {}
        tensors = []
        for place, spec in enumerate(outputs):
            if not spec.dtype.is_floating_point:
                tensors.append(_exact_tensor(drawn, spec, references[place]))
                continue
            kind = _plain_dtype(spec, precision)
            if kind not in plain:
                plain[kind] = _plain(drawn, kind, device)
            scale = ErrorScale.measure(references[place], plain[kind][place], spec, losses)
            values = _to_host(references[place].to(_kept_dtype(spec, exact)))
            tensors.append(ReferenceTensor(spec, values, scale))
        return ReferenceOutput(tuple(tensors), notes)


def _losses(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Relative loss granted to fp32 arithmetic on each sample of a mixed input, see `error_budget`."""
    return torch.tensor([accumulation_at(distance) for distance in distances(values.to(device)).tolist()])


def exact_result(drawn: Draw, outputs: Sequence[TensorSpec]) -> tuple[torch.Tensor, ...]:
    """The reference of a draw alone, on the CPU; `outputs` in the problem's order."""
    with TORCH, torch.no_grad(), _numerics(), borrowed_memory() as device:
        return tuple(result.cpu() for result in _run(drawn, _exact_dtype(drawn, outputs, device)[0], device))


def informative(expected: ReferenceOutput, distribution: Distribution) -> bool:
    """Whether an input set can tell right from wrong in every output.

    It cannot when a reference is zero or not representable, when integers or flags are one value throughout, or when
    PyTorch itself loses most digits: a budget anchored at that would let anything pass. On structured inputs, which are
    made to be hard, PyTorch must lose nothing but the rounding of the result: where it does, what another honest kernel
    loses is anybody's guess.
    """
    return all(_informs(tensor, distribution) for tensor in expected.tensors)


def _informs(expected: ReferenceTensor, distribution: Distribution) -> bool:
    scale, spec = expected.scale, expected.spec
    if scale is None:
        return spec.elements < 2 or not bool((expected.values == expected.values.reshape(-1)[0]).all())
    may_be_infinite = distribution is Distribution.MASKED and scale.plain_infinite
    representable = scale.all_fit and (scale.all_finite or may_be_infinite)
    if not representable or not scale.plain_finite or scale.reference_norm == 0:
        return False
    eps = torch.finfo(TORCH_DTYPES[spec.dtype]).eps
    if distribution in (Distribution.OFFSET, Distribution.SPARSE):
        return scale.plain_norm <= max(eps, 1e-4)
    return scale.plain_norm <= max(8 * eps, 1e-3)


def _exact_tensor(drawn: Draw, spec: TensorSpec, values: torch.Tensor) -> ReferenceTensor:
    """An output of integers or flags, as it is stored."""
    source = drawn.problem.indices.get(spec.name)
    ties = None if source is None else IndexTies.of(drawn.inputs[source.tensor].cpu(), source, spec)
    return ReferenceTensor(spec, values.cpu().to(TORCH_DTYPES[spec.dtype]), None, ties)


def _run(drawn: Draw, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Run the module on the drawn values, upcast or as they are."""

    def cast(name: str, tensor: torch.Tensor) -> torch.Tensor:
        # The module sees values, not storage types: where integers are stored narrower than torch draws them, too.
        whole = torch.int64 if name in drawn.problem.dtypes and tensor.dtype is not torch.bool else tensor.dtype
        return tensor.to(device, dtype if tensor.is_floating_point() else whole)

    module = copy.deepcopy(drawn.module).to(dtype).to(device)
    weights = {name: cast(name, weight) for name, weight in drawn.weights.items()}
    module.load_state_dict({**module.state_dict(), **weights})
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        inputs = {name: cast(name, tensor) for name, tensor in drawn.inputs.items()}
        return within_time(drawn.problem, lambda: run_model(drawn.problem, module, inputs))
    finally:
        torch.set_default_dtype(previous)


def _plain_dtype(spec: TensorSpec, precision: Precision) -> torch.dtype:
    """What the plain implementation computes an output in: an honest kernel accumulates in float32.

    So an output that pins a wider type than the run's precision is held against float32 arithmetic, not against the
    precision's; one of 8 bits is the precision's result, rounded.
    """
    if spec.dtype is precision.dtype or spec.dtype.bits == 8:
        return storage_dtype(precision)
    return TORCH_DTYPES[spec.dtype] if spec.dtype.bits == 16 else torch.float32


def _plain(drawn: Draw, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Run the module in the storage type; operations that torch lacks there in float32, their results rounded to it.

    Rounding the last result alone would make the budget that of a kernel which keeps all between in float32.
    """
    try:
        return _run(drawn, dtype, device)
    except RuntimeError as error:
        if not lacking(error):
            raise
        _LOG.debug("torch lacks an operation in %s: %s", dtype, error)
        with Widened(dtype):
            return _run(drawn, dtype, device)


def _exact_dtype(
    drawn: Draw, outputs: Sequence[TensorSpec], device: torch.device
) -> tuple[torch.dtype, tuple[str, ...]]:
    given = sum(t.numel() for t in (*drawn.inputs.values(), *drawn.weights.values()))
    wanted = 8 * (given + _COPIES * sum(spec.elements for spec in outputs))
    if wanted <= _MEMORY_SHARE * _free_memory(device):
        return torch.float64, ()
    return torch.float32, ("the reference was computed in float32: float64 needs more memory than is free",)


def _kept_dtype(spec: TensorSpec, exact: torch.dtype) -> torch.dtype:
    """float32 resolves the budget of formats up to 16 bits and halves the memory that references take."""
    return exact if spec.dtype.bits > 16 else torch.float32


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
