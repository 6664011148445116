"""How wrong a candidate may be: an error budget anchored at float64, not one tolerance for all problems.

For every element, with r the float64 reference on the very bytes that the candidate was given:

    |out - r|  <=  ulps * ulp(r)  +  c * h * p(|r|)  +  a * rms(row or sample of r)  +  e * (|r| + the same rms)
    ||out - r|| / ||r||  <=  c * h * plain_norm + a + 2 e  (plain_norm at least half an ulp where fewer than 64 elements
                                                            carry the norm: a few lucky roundings would make it tiny)

and for every row of a 16-bit result, with q(x) = x rounded to the format, <x> the sum of x * r over the row, and t the
bound on |out - r| above:

    <q(r (1 - d)) - q(r)> - s  <=  <out - q(r)>  <=  <q(r (1 + d)) - q(r)> + s
    s  =  2 * sqrt(sum over the row of (t * r)^2)  +  c * h * plain_shared * <r>

    r           of what jumps with a choice among what is equal up to rounding, the nearest to out of what each choice
                gives (`other_choices`)
    ulp(r)      spacing of the output format at r (subnormals included): the candidate must store its result
    p(|r|)      largest error of the plain implementation (PyTorch in the run's precision) among reference values of
                about this magnitude, so that one large element licenses nothing for the small ones, and results near
                zero, whose error comes from the cancelled terms, are judged by what is attainable there. So are exact
                zeros, such as a rectifier leaves, where the plain implementation is exact by luck. Of an output of
                fewer than 65,536 elements behind products (8,192 of structured inputs), which rest on the same early
                roundings, the largest error of two plain results that were rounded otherwise, of four behind one layer
                or more than 16, but for bf16;
                plain_norm and plain_shared likewise. Where memory forbids a float64 reference of a result in fp32, the
                plain one has inputs that are off by up to an epsilon
    a * rms     what fp32 arithmetic may lose in whatever order it sums: 2^-15, some 256 fp32 ulps. A serial sum of
                500,000 random terms loses about 150, `__expf` at its worst about 50. An operand rounded to TF32 or
                fp16 loses 2^-12.3 (6.5 times the budget), to bf16 2^-9. More where inputs lie far from zero: there
                means are subtracted that are much larger than what is left (`distributions.accumulation`).
                Of a mixed input (`inputs.leading`), whose samples lie at several distances from zero, p, and rms where
                rows are short, are taken over a part of the output at a time, whole samples of it, and a is what the
                part's samples ask for: what one distribution needs licenses nothing for the others.
    e           0 but for mixed inputs, of which sums of more than 100,000 terms are taken: what roundings of one sign
                lose there (`long_sums`). A scale that is off shifts each result by a share of what it was made of,
                which may have cancelled with an offset: so it is of |r| and of rms.
    c           `EvaluationConfig.error_factor`
    h           1 for fp16 and bf16, whose error is the rounding of the result; 8 for fp32, where PyTorch sums
                pairwise or in double and an honest serial sum is worse by a factor that grows with sqrt(n)
    row         the last axis, or the whole tensor where that axis is shorter than 128; then, and of fewer than 16 rows,
                no error that a row shares is judged
    sample      an index of the first axis, of three or more: a norm over several axes loses what the sample's scale
                asks for, however small a row of it is. The larger rms counts
    d           half of the format's epsilon: a row's common factor (a sum, a scale) may itself be rounded to the format
    plain_shared
                largest |<plain - q(r)>| / <r> of a row, at least three times its root mean square over the rows; not
                of rows with four values or fewer (masked ones): 2 t grants these what they share, whatever it is

The last one sees an error of one sign that a row shares, too small for any element: a sum added in 16 bits. Rounding
is monotonic, so that out = q(r (1 + e)) with |e| <= d, another e for every element, passes even with s = 0, equal
elements and ties included: fp32 arithmetic does, in any order, as long as it does not cancel, rounded or truncated (a
sum of 16,384 positive products that tensor cores truncate every eight loses 2^-14.5). Errors of independent signs,
each of any size up to t, exceed sqrt(sum (t * r)^2) by a factor of 2 with a probability of 0.13 at most (Hoeffding's
inequality, one side); where the norm passes their root mean square is about t / 3.5, and 2 t are 7 standard deviations.
Intermediate results in 16 bits, which a whole row depends on, show in plain_shared where PyTorch has them, too. Results
in fp32 are not rounded enough to hide anything from the norm.

Errors of an honest kernel are PyTorch's, on other elements: of many millions a few are beyond what their neighbours'
plain errors grant. One element, and one more per 2^20, may be a stray: off by what the formula grants with the largest
plain error of its part in place of p(|r|). Nothing is saved by being wrong at so few places by so little.

An element is right when the comparison holds, never when its negation fails, so NaN is wrong by construction. Where
the reference is not finite, or overflows the format, the candidate must hold that same infinity or NaN; of infinite
inputs NaN is no result, and there it may hold anything (`infinities`). Outputs of
integers and flags must be equal, and indices point at equal elements (`index_ties`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernelblaster.evaluation.correctness.error_scale import (
    FEW,
    ErrorScale,
    bin_of,
    fits,
    judges_rows,
    round_to,
    row_length,
    spacing,
)
from kernelblaster.evaluation.inputs.distributions import ACCUMULATION
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorSpec

_INDEPENDENT = 2.0
_STRAY_ELEMENTS = 1 << 20
_LEAST_FOR_STRAYS = 1024


@dataclass(frozen=True)
class _Allowance:
    """`ulps` and `h` of the module's formula."""

    ulps: float
    headroom: float


_ALLOWANCES = {
    **dict.fromkeys(
        (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2), _Allowance(ulps=1.0, headroom=1.0)
    ),
    **dict.fromkeys((DType.FLOAT32, DType.FLOAT64), _Allowance(ulps=256.0, headroom=8.0)),
}


@dataclass(frozen=True)
class SharedError:
    """Errors that elements share, float64, one per row.

    Attributes:
        share: <out - q(r)> / <r>.
        ratio: its size over what is granted; right when at most 1.
    """

    share: torch.Tensor
    ratio: torch.Tensor


@dataclass(frozen=True)
class Budget:
    """The error budget of one output: elementwise tolerances and a bound in norm.

    Args:
        spec: the output.
        scale: the plain implementation's error on it.
        factor: c of the module's formula.
        accumulation: a of it.
        judge_nan: whether NaN of the reference must be there; else anything may be.
    """

    spec: TensorSpec
    scale: ErrorScale
    factor: float
    accumulation: float = ACCUMULATION
    judge_nan: bool = True

    @property
    def norm(self) -> float:
        """Largest ||out - reference|| / ||reference|| that passes."""
        plain = _ALLOWANCES[self.spec.dtype].headroom * self.scale.plain_norm
        if self.scale.carriers < FEW:
            plain = max(plain, torch.finfo(TORCH_DTYPES[self.spec.dtype]).eps / 2)
        losses = self.scale.parts.losses
        lost = self.accumulation if losses is None else float((losses.random + 2 * losses.drift).max())
        return self.factor * plain + lost

    @property
    def most_strays(self) -> int:
        """Elements that may be off by what `Grant.of_strays` says."""
        return 0 if self.spec.elements < _LEAST_FOR_STRAYS else 1 + self.spec.elements // _STRAY_ELEMENTS

    @property
    def row(self) -> int:
        """Elements that share a scale and stay in one chunk: the last axis, or 1 where the whole tensor does."""
        return row_length(self.spec)

    def over(self, reference: torch.Tensor, start: int) -> Grant:
        """What is granted to whole rows of `reference` (float64, flat) from element `start` on."""
        parts, allowance = self.scale.parts, _ALLOWANCES[self.spec.dtype]
        part = parts.at(start, reference.numel(), reference.device)
        rms = self._local_rms(reference, start, part)
        lost = self.accumulation * rms
        if parts.losses is not None:
            random, drift = (each.to(reference)[part] for each in (parts.losses.random, parts.losses.drift))
            lost = random * rms + drift * (torch.where(fits(reference, self.spec.dtype), reference, 0.0).abs() + rms)
        return Grant(
            budget=self,
            reference=reference,
            part=part,
            exponent=bin_of(reference),
            stored=allowance.ulps * spacing(reference, self.spec.dtype),
            lost=lost,
        )

    def _local_rms(self, reference: torch.Tensor, start: int, part: torch.Tensor) -> torch.Tensor:
        if self.row == 1:
            return self.scale.reference_rms.to(reference.device)[part]
        held = torch.where(fits(reference, self.spec.dtype), reference, 0.0).reshape(-1, self.row)
        local = held.square().mean(dim=1).sqrt()
        if self.scale.sample_rms is not None:
            first = torch.arange(start, start + reference.numel(), self.row, device=reference.device)
            samples = self.scale.sample_rms.to(reference.device)
            local = torch.maximum(local, samples[first // (self.spec.elements // samples.numel())])
        return local[:, None].expand(-1, self.row).reshape(-1)


@dataclass(frozen=True)
class Grant:
    """What a budget grants to some elements of an output: whole rows; tensors are flat, one value per element.

    Attributes:
        budget: whose it is.
        reference: float64.
        part: of `ErrorScale.parts`; int64.
        exponent: bin of the reference's; int64.
        stored: what rounding to the format may cost.
        lost: what fp32 arithmetic may.
    """

    budget: Budget
    reference: torch.Tensor
    part: torch.Tensor
    exponent: torch.Tensor
    stored: torch.Tensor
    lost: torch.Tensor

    @property
    def tolerances(self) -> torch.Tensor:
        """Largest passing |out - reference|; float64."""
        return self._with(self.budget.scale.by_exponent.to(self.reference.device)[self.part, self.exponent])

    @property
    def of_strays(self) -> torch.Tensor:
        """Largest |out - reference| of a stray; float64."""
        return self._with(self.budget.scale.anywhere.to(self.reference.device)[self.part])

    def shared(self, got: torch.Tensor) -> SharedError | None:
        """What the elements of each row are off by together; None where rows are not judged.

        `got` is float64, like the reference; what is not finite is left out.
        """
        spec, scale = self.budget.spec, self.budget.scale
        if not judges_rows(spec):
            return None
        # Not of the full pool: it is for the largest error of many, and a row's are as large as their neighbours'.
        tolerances = self._with(scale.nearby.to(self.reference.device)[self.part, self.exponent])
        dtype, row, factor = spec.dtype, self.budget.row, torch.finfo(TORCH_DTYPES[spec.dtype]).eps / 2
        plain = self.budget.factor * _ALLOWANCES[dtype].headroom * scale.plain_shared
        weights = torch.where(fits(self.reference, dtype), self.reference, 0.0).reshape(-1, row)
        rounded = round_to(weights, dtype)
        error = torch.nan_to_num(got.reshape(-1, row) - rounded, nan=0.0, posinf=0.0, neginf=0.0)
        total, square = (torch.linalg.vecdot(x, weights) for x in (error, weights))
        most, least = (
            torch.linalg.vecdot(round_to(weights * (1 + sign * factor), dtype) - rounded, weights) for sign in (1, -1)
        )
        each = torch.where(weights == 0, 0.0, tolerances.reshape(-1, row) * weights)
        granted = torch.where(total > 0, most, -least) + _INDEPENDENT * each.norm(dim=1) + plain * square
        share = torch.where(square > 0, total / square, 0.0)
        return SharedError(share, torch.where(total == 0, 0.0, total.abs() / granted))

    def _with(self, plain: torch.Tensor) -> torch.Tensor:
        """Tolerances with these plain errors."""
        headroom = _ALLOWANCES[self.budget.spec.dtype].headroom
        return self.stored + self.budget.factor * headroom * plain + self.lost
