"""Computes what a draw must give: in float64, and as PyTorch would plainly."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cache

import torch

from kernelblaster.evaluation.correctness.discrete_choices import Choosing
from kernelblaster.evaluation.correctness.error_budget import Budget
from kernelblaster.evaluation.correctness.error_scale import ErrorScale, Losses, fits, row_length
from kernelblaster.evaluation.correctness.index_ties import IndexTies
from kernelblaster.evaluation.correctness.input_draws import DEEP_NETWORK, Draw
from kernelblaster.evaluation.correctness.long_sums import LongestSum, drifts
from kernelblaster.evaluation.correctness.off_runs import OffRuns
from kernelblaster.evaluation.correctness.other_choices import OtherChoices
from kernelblaster.evaluation.correctness.pieces import BYTES, Pieces
from kernelblaster.evaluation.correctness.reference_runs import numerics, plain_run, run
from kernelblaster.evaluation.correctness.rounding_ties import RoundingTies, Varying
from kernelblaster.evaluation.inputs.distributions import FAR_FROM_ZERO, Distribution, accumulation_at
from kernelblaster.evaluation.inputs.leading import Leading, distances
from kernelblaster.evaluation.inputs.scratch import free_host_memory
from kernelblaster.evaluation.inputs.tensors import (
    TORCH_DTYPES,
    borrowed_memory,
    storage_dtype,
)
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Precision, TensorSpec
from kernelblaster.problems.reference import TORCH

_MEMORY_SHARE = 0.7
"""Of the free memory, what a reference may take."""
_PINNED_BYTES = 1 << 30
"""Of a reference that is kept in page-locked memory, from where it gets to the GPU several times faster."""
_KEPT_SHARE = 1 / 8
"""Of the GPU's free memory, what one larger reference may take to stay there: copying it twice takes seconds."""
_ROUNDINGS = 3.0
_STRUCTURED = (*FAR_FROM_ZERO, Distribution.SPARSE)
"""Made to be hard: PyTorch must lose hardly anything on them."""
_FEW, _FEW_STRUCTURED = 65_536, 8192
"""Elements of an output up to which PyTorch's errors may be small by luck: several results are taken. Of the more, ten
means that were rounded to 16 bits may make all errors (level2/015). On structured inputs several results of so many
elements would seldom be right enough."""
_LOOKED_AT = 8192
"""Elements of an output whose values are counted, about."""
_DIFFERENT, _LEVELS = 16, 24
"""Values that an output must have where inputs are tiny, and equally frequent ones behind layers."""
_COPIES = 4
"""Tensors of the output's size that a forward pass may hold at once, besides inputs and weights."""
Ties = IndexTies | RoundingTies
"""What is as good as the expected whole numbers or flags."""


@dataclass(frozen=True)
class ReferenceTensor:
    """What a correct kernel leaves in one output, and how wrong PyTorch's plain implementation is there.

    Attributes:
        spec: the output.
        values: on the CPU, or on the GPU where they are large; float64, or float32 where that is exact enough or memory
            forbids more; integers and flags in the stored type.
        scale: None for integers and flags, which must be equal.
        ties: which other integers and flags are as good: indices of equal values, what fp32 may round otherwise.
        pieces: which elements `values` has, one behind the other; None: all, in the output's shape.
        hangs_on_roundings: whether too many elements do to tell right from wrong.
        choices: what elements of a floating-point output may be where they hang on a choice that is luck.
    """

    spec: TensorSpec
    values: torch.Tensor
    scale: ErrorScale | None
    ties: Ties | None = None
    pieces: Pieces | None = None
    hangs_on_roundings: bool = False
    choices: OtherChoices | None = None

    @property
    def bytes(self) -> int:
        """Memory it takes."""
        return self.values.nbytes + sum(it.nbytes for it in (self.ties, self.choices) if it is not None)


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


def solve(
    drawn: Draw,
    outputs: Sequence[TensorSpec],
    precision: Precision,
    distribution: Distribution,
    secret: str | None = None,
) -> ReferenceOutput:
    """Compute reference and plain result of a draw; `outputs` in the problem's order. Raises DeviceError.

    With a `secret`, which decides their places, pieces of floating-point outputs are kept alone.
    """
    with TORCH, torch.no_grad(), numerics(), borrowing(drawn, outputs) as device:
        exact, notes = _exact_dtype(drawn, outputs, device)
        longest, choosing = LongestSum(), Choosing()
        with ExitStack() as watching:
            watching.enter_context(choosing)
            if drawn.mixed is not None:
                watching.enter_context(longest)
            references = run(drawn, exact, device)
        losses = None if drawn.mixed is None else _losses(drawn, drawn.mixed, device, longest.serial)
        plain = cache(lambda kind, rounding: plain_run(drawn, kind, device, rounding, moved=kind is exact))
        off = _off_runs(drawn, outputs, storage_dtype(precision), device)
        whole_numbers = _whole_numbers(drawn, outputs, references, off)
        choices = _choices(outputs, references, off) if choosing.found else {}

        def stored(place: int, rounding: int) -> torch.Tensor:
            # A module may leave in float32 what a kernel stores in 16 bits: a softmax that asks for it does.
            spec = outputs[place]
            return plain(_plain_dtype(spec, precision), rounding)[place].to(TORCH_DTYPES[spec.dtype])

        tensors = []
        for place, spec in enumerate(outputs):
            if not spec.dtype.is_floating_point:
                tensors.append(whole_numbers[spec.name])
                continue
            scale = _measured(references[place], stored(place, 0), spec, losses, choices.get(place))
            for rounding in range(1, _roundings(drawn, spec, distribution)):
                again = _measured(references[place], stored(place, rounding), spec, losses, choices.get(place))
                scale = scale.with_errors_of(again)
            whole = ReferenceTensor(spec, references[place].to(_kept_dtype(spec, exact)), scale)
            if place in choices:
                whole = _with_choices(whole, scale, references[place], choices[place])
            tensors.append(replace(whole, values=_kept(whole.values)) if secret is None else _in_pieces(whole, secret))
        return ReferenceOutput(tuple(tensors), notes)


def _in_pieces(whole: ReferenceTensor, secret: str) -> ReferenceTensor:
    """Some elements of a floating-point output, and their norm, within the error scale of all."""
    spec, scale = whole.spec, whole.scale
    kept = BYTES // whole.values.element_size()
    pieces = Pieces.choose(spec.elements, row_length(spec), kept, f"{secret}/{spec.name}")
    taken = pieces.taken(whole.values)
    if scale is not None:
        exact = taken.double()
        scale = replace(scale, reference_norm=float(torch.where(fits(exact, spec.dtype), exact, 0.0).norm()))
    choices = None if whole.choices is None else whole.choices.taken(pieces)
    return replace(whole, values=_kept(taken), scale=scale, choices=choices, pieces=pieces)


def _measured(
    reference: torch.Tensor,
    plain: torch.Tensor,
    spec: TensorSpec,
    losses: Losses | None,
    choices: OtherChoices | None,
) -> ErrorScale:
    """The error scale of a plain result, which may have chosen otherwise than the reference."""
    if choices is not None:
        reference = choices.nearest(plain.reshape(-1), reference.reshape(-1)).reshape(reference.shape)
    return ErrorScale.measure(reference, plain, spec, losses)


def _with_choices(
    whole: ReferenceTensor, scale: ErrorScale, reference: torch.Tensor, choices: OtherChoices
) -> ReferenceTensor:
    """A floating-point output with what other choices move by more than roundings do."""
    moved = choices.beyond(Budget(whole.spec, scale, factor=1.0).over(reference.reshape(-1).double(), 0).tolerances)
    if not len(moved.places):
        return whole
    return replace(whole, choices=moved, hangs_on_roundings=not moved.are_few)


def _losses(drawn: Draw, mixed: Leading, device: torch.device, serial: float) -> Losses:
    """What is granted to fp32 arithmetic on each sample of a mixed input, of which one thread adds `serial` terms."""
    values = mixed.samples_first(drawn.inputs[mixed.name].to(device))
    random = torch.tensor([accumulation_at(distance) for distance in distances(values).tolist()])
    return Losses(random, drifts(values, serial))


def borrowing(drawn: Draw, outputs: Sequence[TensorSpec]) -> AbstractContextManager[torch.device]:
    """The device that computes a draw's results."""
    return borrowed_memory(_elements(drawn, outputs))


def exact_result(drawn: Draw, outputs: Sequence[TensorSpec]) -> tuple[torch.Tensor, ...]:
    """The reference of a draw alone, on the CPU; `outputs` in the problem's order."""
    with TORCH, torch.no_grad(), numerics(), borrowing(drawn, outputs) as device:
        return tuple(result.cpu() for result in run(drawn, _exact_dtype(drawn, outputs, device)[0], device))


def informative(
    expected: ReferenceOutput, distribution: Distribution, *, layers: int = 0, infinite: bool = False
) -> bool:
    """Whether an input set can tell right from wrong in every output.

    It cannot when a reference is zero or not representable, when integers or flags are one value throughout, when too
    much hangs on roundings, when tiny inputs leave a few different values, whose roundings are luck (as where a bias is
    all that counts), or when PyTorch itself loses most digits: a budget anchored at that would let anything pass. On
    structured inputs, which are made to be hard, PyTorch must lose nothing but the rounding of the result, and no
    element more than three roundings of the largest: where it does, what another honest kernel loses there is anybody's
    guess. A softmax of a few large sums that were rounded to 16 bits is off at few elements, which no norm shows, but
    far, and each kernel at others.
    Where inputs are `infinite`, results may be, too. Behind `layers`, biases alone are a few levels, with little about
    them.
    """
    return all(_informs(tensor, distribution, layers > 0, infinite=infinite) for tensor in expected.tensors)


def _informs(expected: ReferenceTensor, distribution: Distribution, behind_layers: bool, *, infinite: bool) -> bool:
    scale, spec = expected.scale, expected.spec
    if expected.hangs_on_roundings:
        return False
    if scale is None:
        return spec.elements < 2 or not bool((expected.values == expected.values.reshape(-1)[0]).all())
    representable = scale.all_fit and (scale.all_finite or (infinite and scale.plain_infinite))
    if not representable or not scale.plain_finite or scale.reference_norm == 0:
        return False
    if distribution is Distribution.TINY and not _differs(expected, behind_layers):
        return False
    eps = torch.finfo(TORCH_DTYPES[spec.dtype]).eps
    if distribution in _STRUCTURED:
        rounding = max(eps / 2, 1e-4)  # what rounding the result alone costs at most
        furthest = float(scale.anywhere.max()) / float(expected.values.abs().max())
        return scale.plain_norm <= rounding and furthest <= _ROUNDINGS * rounding
    return scale.plain_norm <= max(8 * eps, 1e-3)


def _differs(expected: ReferenceTensor, behind_layers: bool) -> bool:
    """Whether some of a floating-point output's values, as they are stored, are not a few whose roundings are luck.

    Behind layers, values that are rare count for less: Simpson's inverse, 1 / sum of squared shares, of all but the
    most frequent one, such as a rectifier's zero. Of 500 draws of level2/011 in bf16, whose channels are six levels,
    the start was beyond the budget in 49 of 492 where that was below 16; of 7 between 16 and 24 the worst took 94 % of
    it, and the one above 24 took 47 %.
    """
    flat = expected.values.reshape(-1)
    some = flat[:: max(flat.numel() // _LOOKED_AT, 1)]
    _, found = some.to(TORCH_DTYPES[expected.spec.dtype]).float().unique(return_counts=True)
    elements = expected.spec.elements
    if not behind_layers or len(found) == 1:
        return len(found) >= min(_DIFFERENT, elements)
    others = found.double().sort().values[:-1]
    return float(others.sum() ** 2 / (others**2).sum()) >= min(_LEVELS, elements / 2)


def _off_runs(drawn: Draw, outputs: Sequence[TensorSpec], storage: torch.dtype, device: torch.device) -> OffRuns | None:
    """None where memory lacks."""
    if 8 * _COPIES * _elements(drawn, outputs) > _MEMORY_SHARE * _free_memory(device):
        return None
    return OffRuns(lambda dtype: run(drawn, dtype, device), storage, device)


def _choices(
    outputs: Sequence[TensorSpec], references: Sequence[torch.Tensor], off: OffRuns | None
) -> dict[int, OtherChoices]:
    """What floating-point outputs may be where they hang on a choice, by their place."""
    places = [place for place, spec in enumerate(outputs) if spec.dtype.is_floating_point]
    return {} if off is None or not places else off.choices({place: references[place] for place in places})


def _whole_numbers(
    drawn: Draw, outputs: Sequence[TensorSpec], references: Sequence[torch.Tensor], off: OffRuns | None
) -> dict[str, ReferenceTensor]:
    """Outputs of integers and flags, as they are stored, and what they may be where they hang on roundings."""
    expected = {
        place: references[place].cpu().to(TORCH_DTYPES[spec.dtype])
        for place, spec in enumerate(outputs)
        if not spec.dtype.is_floating_point
    }
    undeclared = [place for place in expected if outputs[place].name not in drawn.problem.indices]
    rounding = {place: Varying(values).ties() for place, values in expected.items()}
    if expected and off is not None:
        rounding = off.ties(expected, undeclared)
    found = {}
    for place, values in expected.items():
        spec, ties = outputs[place], rounding[place]
        source = drawn.problem.indices.get(spec.name)
        good = ties if source is None else IndexTies.of(drawn.inputs[source.tensor].cpu(), source, spec)
        found[spec.name] = ReferenceTensor(spec, values, None, good, hangs_on_roundings=not ties.are_few)
    return found


def _plain_dtype(spec: TensorSpec, precision: Precision) -> torch.dtype:
    """What the plain implementation computes an output in: an honest kernel accumulates in float32.

    So an output that pins a wider type than the run's precision is held against float32 arithmetic, not against the
    precision's; one of 8 bits is the precision's result, rounded.
    """
    if spec.dtype is precision.dtype or spec.dtype.bits == 8:
        return storage_dtype(precision)
    return TORCH_DTYPES[spec.dtype] if spec.dtype.bits == 16 else torch.float32


def _roundings(drawn: Draw, spec: TensorSpec, distribution: Distribution) -> int:
    """Plain results whose largest errors are an output's: of few elements behind a product one result tells too little.

    Errors of a row's elements are one, where a log-sum-exp is added to all of them, and amplified roundings of a deep
    network are few, too. More of bf16's coarse roundings would hide what small weights do.
    """
    few = _FEW_STRUCTURED if distribution in _STRUCTURED else _FEW
    if spec.elements >= few or spec.dtype.bits not in (16, 32) or not drawn.layers:
        return 1
    many = drawn.layers == 1 or drawn.layers > DEEP_NETWORK
    return 4 if many and spec.dtype is not DType.BFLOAT16 else 2


def _elements(drawn: Draw, outputs: Sequence[TensorSpec]) -> int:
    """Of everything that is given and returned."""
    given = sum(t.numel() for t in (*drawn.inputs.values(), *drawn.weights.values()))
    return given + sum(spec.elements for spec in outputs)


def _exact_dtype(
    drawn: Draw, outputs: Sequence[TensorSpec], device: torch.device
) -> tuple[torch.dtype, tuple[str, ...]]:
    returned = sum(spec.elements for spec in outputs)
    wanted = 8 * (_elements(drawn, outputs) + (_COPIES - 1) * returned)
    if wanted <= _MEMORY_SHARE * _free_memory(device):
        return torch.float64, ()
    return torch.float32, ("the reference was computed in float32: float64 needs more memory than is free",)


def _kept_dtype(spec: TensorSpec, exact: torch.dtype) -> torch.dtype:
    """float32 resolves the budget of formats up to 16 bits and halves the memory that references take."""
    return exact if spec.dtype.bits > 16 else torch.float32


def _kept(reference: torch.Tensor) -> torch.Tensor:
    """Where a reference waits for outputs: on the host, page-locked where a GPU compares; a large one on the GPU.

    Only the judge's process reaches it there. What is left for candidates is many times as large.
    """
    if reference.device.type != "cuda":
        return reference.cpu()
    if reference.nbytes <= _PINNED_BYTES:
        return torch.empty(reference.shape, dtype=reference.dtype, device="cpu", pin_memory=True).copy_(reference)
    if reference.nbytes <= _KEPT_SHARE * _free_memory(reference.device):
        return reference.contiguous()
    return reference.cpu()


def _free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return free_host_memory()
