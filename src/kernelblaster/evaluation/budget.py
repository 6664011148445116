"""How wrong a candidate may be: an error budget anchored at float64, not one tolerance for all problems.

For every element, with r the float64 reference on the very bytes that the candidate was given:

    |out - r|  <=  ulps * ulp(r)  +  c * h * p(|r|)  +  a * rms(row of r)
    ||out - r|| / ||r||  <=  c * h * plain_norm + a        (plain_norm at least half an ulp below 64 elements, where
                                                            one lucky rounding would make it tiny)

    ulp(r)      spacing of the output format at r (subnormals included): the candidate must store its result
    p(|r|)      largest error of the plain implementation (PyTorch in the run's precision) among reference values of
                about this magnitude, so that one large element licenses nothing for the small ones, and results near
                zero, whose error comes from the cancelled terms, are judged by what is attainable there
    a * rms     what fp32 arithmetic may lose in whatever order it sums: 2^-15, some 256 fp32 ulps. A serial sum of
                500,000 random terms loses about 150, `__expf` at its worst about 50. An operand rounded to TF32 or
                fp16 loses 2^-12.3 (6.5 times the budget), to bf16 2^-9. More where inputs lie far from zero: there
                means are subtracted that are much larger than what is left (`distributions.accumulation`).
    c           `EvaluationConfig.error_factor`
    h           1 for fp16 and bf16, whose error is the rounding of the result; 8 for fp32, where PyTorch sums
                pairwise or in double and an honest serial sum is worse by a factor that grows with sqrt(n)
    row         the last axis, or the whole tensor where that axis is shorter than 128

An element is right when the comparison holds, never when its negation fails, so NaN is wrong by construction. Where
the reference is not finite, or overflows the format, the candidate must hold that same infinity or NaN. Integer outputs
must be equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch

from kernelblaster.evaluation.distributions import ACCUMULATION
from kernelblaster.evaluation.tensors import TORCH_DTYPES, spans
from kernelblaster.problems.problem import TensorSpec

LEAST_ROW = 128
"""A shorter last axis is no sample of the tensor's scale."""
CHUNK_ELEMENTS = 1 << 24
LEAST_POOL = 128
"""Elements that make a bin's largest plain error worth believing: where errors come from cancelled terms they have long
tails, and the largest of a few says little of the largest of all."""
FEW = 64
"""Elements below which one lucky rounding makes the plain error in norm tiny."""
_LOW_EXPONENT, _HIGH_EXPONENT = -160, 160


@dataclass(frozen=True)
class _Allowance:
    """`ulps` and `h` of the module's formula."""

    ulps: float
    headroom: float


_ALLOWANCES = {
    "fp16": _Allowance(ulps=1.0, headroom=1.0),
    "bf16": _Allowance(ulps=1.0, headroom=1.0),
    "fp32": _Allowance(ulps=256.0, headroom=8.0),
}


@dataclass(frozen=True)
class ErrorScale:
    """What the plain implementation gets wrong on one output of one input set.

    Attributes:
        by_exponent: largest plain error per binary exponent of |reference|, pooled with neighbours; float64, (321,).
        plain_norm: ||plain - reference|| over elements finite in both, / ||reference||.
        reference_norm: ||reference|| over elements the format can hold.
        reference_rms: the same, per element.
        plain_finite: the plain implementation is finite wherever the format can hold the reference.
    """

    by_exponent: torch.Tensor
    plain_norm: float
    reference_norm: float
    reference_rms: float
    plain_finite: bool

    @classmethod
    def measure(cls, reference: torch.Tensor, plain: torch.Tensor, spec: TensorSpec) -> Self:
        """Compare the plain implementation's output with the reference; both of `spec`'s shape, any device."""
        bins = _HIGH_EXPONENT - _LOW_EXPONENT + 1
        largest = torch.zeros(bins, dtype=torch.float64)
        counts = torch.zeros(bins, dtype=torch.int64)
        error_square = reference_square = 0.0
        held = 0
        plain_finite = True
        flat_reference, flat_plain = reference.reshape(-1), plain.reshape(-1)
        for start, stop in spans(spec.elements, 1, CHUNK_ELEMENTS):
            expected = flat_reference[start:stop].double()
            got = flat_plain[start:stop].to(expected.device).double()
            held_here = fits(expected, spec.dtype)
            usable = held_here & torch.isfinite(got)
            plain_finite = plain_finite and bool((usable == held_here).all())
            # Of the reference everything counts, also where the plain implementation overflows.
            reference_square += float(expected[held_here].square().sum())
            held += int(held_here.sum())
            expected, error = expected[usable], (got - expected)[usable].abs()
            index = _bin(expected)
            largest = torch.maximum(largest, _largest_per_bin(index, error, bins))
            counts += torch.bincount(index, minlength=bins).cpu()
            error_square += float(error.square().sum())
        norm = reference_square**0.5
        return cls(
            by_exponent=_pool(largest, counts),
            plain_norm=error_square**0.5 / norm if norm else 0.0,
            reference_norm=norm,
            reference_rms=norm / max(held, 1) ** 0.5,
            plain_finite=plain_finite,
        )


@dataclass(frozen=True)
class Budget:
    """The right to be wrong of one output: elementwise tolerances and a bound in norm.

    Args:
        spec: the output.
        scale: the plain implementation's error on it.
        factor: c of the module's formula.
        accumulation: a of it.
    """

    spec: TensorSpec
    scale: ErrorScale
    factor: float
    accumulation: float = ACCUMULATION

    @property
    def norm(self) -> float:
        """Largest ||out - reference|| / ||reference|| that passes."""
        plain = _ALLOWANCES[self.spec.dtype].headroom * self.scale.plain_norm
        if self.spec.elements < FEW:
            plain = max(plain, torch.finfo(TORCH_DTYPES[self.spec.dtype]).eps / 2)
        return self.factor * plain + self.accumulation

    @property
    def row(self) -> int:
        """Elements that share a scale and stay in one chunk: the last axis, or 1 where the whole tensor does."""
        last = self.spec.shape[-1] if self.spec.shape else 1
        return last if last >= LEAST_ROW else 1

    def tolerances(self, reference: torch.Tensor) -> torch.Tensor:
        """Largest passing |out - reference| per element; float64, flat, whole rows."""
        allowance = _ALLOWANCES[self.spec.dtype]
        plain = self.scale.by_exponent.to(reference.device)[_bin(reference)]
        local = self._local_rms(reference)
        stored = allowance.ulps * spacing(reference, self.spec.dtype)
        return stored + self.factor * allowance.headroom * plain + self.accumulation * local

    def _local_rms(self, reference: torch.Tensor) -> torch.Tensor:
        if self.row == 1:
            return torch.full_like(reference, self.scale.reference_rms)
        held = torch.where(fits(reference, self.spec.dtype), reference, 0.0).reshape(-1, self.row)
        return held.square().mean(dim=1, keepdim=True).sqrt().expand(-1, self.row).reshape(-1)


def fits(reference: torch.Tensor, dtype: str) -> torch.Tensor:
    """Which float64 values are finite once rounded to the format."""
    info = torch.finfo(TORCH_DTYPES[dtype])
    return reference.abs() < info.max * (1 + info.eps / 4)


def spacing(reference: torch.Tensor, dtype: str) -> torch.Tensor:
    """Distance between neighbouring numbers of the format at each float64 value; constant among subnormals."""
    info = torch.finfo(TORCH_DTYPES[dtype])
    magnitude = reference.abs().clamp(min=info.smallest_normal, max=info.max)
    _, exponent = torch.frexp(magnitude)
    return torch.ldexp(torch.full_like(magnitude, info.eps), exponent - 1)


def _bin(reference: torch.Tensor) -> torch.Tensor:
    """Binary exponent of each value as a bin number; zero falls in the lowest."""
    _, exponent = torch.frexp(torch.nan_to_num(reference))
    exponent = torch.where(reference == 0, _LOW_EXPONENT, exponent.long())
    return exponent.clamp(_LOW_EXPONENT, _HIGH_EXPONENT) - _LOW_EXPONENT


def _largest_per_bin(index: torch.Tensor, error: torch.Tensor, bins: int) -> torch.Tensor:
    largest = torch.zeros(bins, dtype=torch.float64, device=error.device)
    return largest.scatter_reduce_(0, index, error, "amax").cpu()


def _pool(largest: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Take each bin's error from itself and its neighbours, and from larger values until enough were seen."""
    values, seen = largest.tolist(), counts.tolist()
    pooled = []
    for low in range(len(values)):
        high, found = low, seen[low]
        while high + 1 < len(values) and (high <= low or found < LEAST_POOL):
            high += 1
            found += seen[high]
        pooled.append(max(values[max(low - 1, 0) : high + 1]))
    return torch.tensor(pooled, dtype=torch.float64)
