"""How wrong a candidate may be: an error budget anchored at float64, not one tolerance for all problems.

For every element, with r the float64 reference on the very bytes that the candidate was given:

    |out - r|  <=  ulps * ulp(r)  +  c * h * p(|r|)  +  a * rms(row of r)
    ||out - r|| / ||r||  <=  c * h * plain_norm + a        (plain_norm at least half an ulp where fewer than 64 elements
                                                            carry the norm: a few lucky roundings would make it tiny)

and for every row of a 16-bit result, with q(x) = x rounded to the format, <x> the sum of x * r over the row, and t the
bound on |out - r| above:

    <q(r (1 - d)) - q(r)> - s  <=  <out - q(r)>  <=  <q(r (1 + d)) - q(r)> + s
    s  =  2 * sqrt(sum over the row of (t * r)^2)  +  c * h * plain_shared * <r>

    ulp(r)      spacing of the output format at r (subnormals included): the candidate must store its result
    p(|r|)      largest error of the plain implementation (PyTorch in the run's precision) among reference values of
                about this magnitude, so that one large element licenses nothing for the small ones, and results near
                zero, whose error comes from the cancelled terms, are judged by what is attainable there. So are exact
                zeros, such as a rectifier leaves, where the plain implementation is exact by luck
    a * rms     what fp32 arithmetic may lose in whatever order it sums: 2^-15, some 256 fp32 ulps. A serial sum of
                500,000 random terms loses about 150, `__expf` at its worst about 50. An operand rounded to TF32 or
                fp16 loses 2^-12.3 (6.5 times the budget), to bf16 2^-9. More where inputs lie far from zero: there
                means are subtracted that are much larger than what is left (`distributions.accumulation`).
                Of a mixed input (`inputs.leading`), whose samples lie at several distances from zero, p, and rms where
                rows are short, are taken over a part of the output at a time, whole samples of it, and a is what the
                part's samples ask for: what one distribution needs licenses nothing for the others.
    c           `EvaluationConfig.error_factor`
    h           1 for fp16 and bf16, whose error is the rounding of the result; 8 for fp32, where PyTorch sums
                pairwise or in double and an honest serial sum is worse by a factor that grows with sqrt(n)
    row         the last axis, or the whole tensor where that axis is shorter than 128; then, and of fewer than 16 rows,
                no error that a row shares is judged
    d           half of the format's epsilon: a row's common factor (a sum, a scale) may itself be rounded to the format
    plain_shared
                largest |<plain - q(r)>| / <r> of a row, at least three times its root mean square over the rows

The last one sees an error of one sign that a row shares, too small for any element: a sum added in 16 bits. Rounding
is monotonic, so that out = q(r (1 + e)) with |e| <= d, another e for every element, passes even with s = 0, equal
elements and ties included: fp32 arithmetic does, in any order, as long as it does not cancel, rounded or truncated (a
sum of 16,384 positive products that tensor cores truncate every eight loses 2^-14.5). Errors of independent signs,
each of any size up to t, exceed sqrt(sum (t * r)^2) by a factor of 2 with a probability of 0.13 at most (Hoeffding's
inequality, one side); where the norm passes their root mean square is about t / 3.5, and 2 t are 7 standard deviations.
Intermediate results in 16 bits, which a whole row depends on, show in plain_shared where PyTorch has them, too. Results
in fp32 are not rounded enough to hide anything from the norm.

An element is right when the comparison holds, never when its negation fails, so NaN is wrong by construction. Where
the reference is not finite, or overflows the format, the candidate must hold that same infinity or NaN; of infinite
inputs NaN is no result, and there it may hold anything (`infinities`). Outputs of
integers and flags must be equal, and indices point at equal elements (`index_ties`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch

from kernelblaster.evaluation.inputs.distributions import ACCUMULATION
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, spans
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorSpec

LEAST_ROW = 128
"""A shorter last axis is no sample of the tensor's scale."""
CHUNK_ELEMENTS = 1 << 24
LEAST_POOL = 128
"""Elements that make a bin's largest plain error worth believing: where errors come from cancelled terms they have long
tails, and the largest of a few says little of the largest of all."""
FEW = 64
"""Carriers of a norm below which a few lucky roundings make the plain error in norm tiny."""
LEAST_ROWS = 16
"""Fewer are no sample of the errors that rows share."""
_INDEPENDENT = 2.0
_LEAST_SPREAD = 3.0
"""In root mean squares: the largest of few errors may be small."""
_LOW_EXPONENT, _HIGH_EXPONENT = -160, 160
_BINS = _HIGH_EXPONENT - _LOW_EXPONENT + 1
MOST_PARTS = 16
_COPIES = 256


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
class Parts:
    """Where an output is cut, so that each part has an error scale of its own.

    Attributes:
        starts: first element of each part; int64, ascending from 0.
        losses: a of the module's formula per part; None: one for all, that of the distribution.
    """

    starts: torch.Tensor
    losses: torch.Tensor | None

    @classmethod
    def of(cls, spec: TensorSpec, losses: torch.Tensor | None) -> Self:
        """Parts of neighbouring samples, from what each sample asks for; one part where there are no samples."""
        if losses is None or not losses.numel():
            return cls(torch.zeros(1, dtype=torch.int64), None)
        samples = losses.numel()
        if not spec.shape or spec.shape[0] != samples:
            return cls(torch.zeros(1, dtype=torch.int64), losses.max().reshape(1))
        count = max(min(MOST_PARTS, samples, spec.elements // LEAST_POOL), 1)
        first = [part * samples // count for part in range(count)]
        most = torch.stack([losses[a:b].max() for a, b in zip(first, [*first[1:], samples], strict=True)])
        return cls(torch.tensor(first) * (spec.elements // samples), most)

    def __len__(self) -> int:
        return self.starts.numel()

    def at(self, start: int, count: int, device: torch.device) -> torch.Tensor:
        """The part of each element from `start` on; int64."""
        if len(self) == 1:
            return torch.zeros(count, dtype=torch.int64, device=device)
        places = torch.arange(start, start + count, device=device)
        return torch.bucketize(places, self.starts[1:].to(device), right=True)


@dataclass(frozen=True)
class ErrorScale:
    """What the plain implementation gets wrong on one output of one input set.

    Attributes:
        by_exponent: largest plain error per part and binary exponent of |reference|, pooled with neighbours; float64,
            (parts, 321).
        plain_norm: ||plain - reference|| over elements finite in both, / ||reference||.
        reference_norm: ||reference|| over elements the format can hold.
        carriers: how many equal elements would have this norm and this sum of fourth powers, 1 where one stands out.
        reference_rms: root mean square of such elements, float64, per part.
        parts: what `by_exponent` and `reference_rms` are taken over.
        all_fit: the format can hold every element of the reference that is finite.
        all_finite: the reference is finite.
        plain_finite: the plain implementation is finite wherever the format can hold the reference.
        plain_infinite: it has the reference's infinities.
        plain_shared: the error that elements of a row share in the plain implementation, as the module's formula has
            it; 0 where rows are not judged.
    """

    by_exponent: torch.Tensor
    plain_norm: float
    reference_norm: float
    carriers: float
    reference_rms: torch.Tensor
    parts: Parts
    all_fit: bool
    all_finite: bool
    plain_finite: bool
    plain_infinite: bool = True
    plain_shared: float = 0.0

    @classmethod
    def measure(
        cls, reference: torch.Tensor, plain: torch.Tensor, spec: TensorSpec, losses: torch.Tensor | None = None
    ) -> Self:
        """Compare the plain implementation's output with the reference; both of `spec`'s shape, any device.

        `losses` are what each sample of a mixed input asks for, a of the module's formula.
        """
        parts = Parts.of(spec, losses)
        bins = len(parts) * _BINS
        largest = torch.zeros(bins, dtype=torch.float64)
        counts = torch.zeros(bins, dtype=torch.int64)
        squares = torch.zeros(len(parts), dtype=torch.float64)
        held = torch.zeros(len(parts), dtype=torch.int64)
        error_square = fourths = 0.0
        all_fit = all_finite = plain_finite = plain_infinite = True
        shares: list[torch.Tensor] = []
        flat_reference, flat_plain = reference.reshape(-1), plain.reshape(-1)
        for start, stop in spans(spec.elements, row_length(spec), CHUNK_ELEMENTS):
            expected = flat_reference[start:stop].double()
            got = flat_plain[start:stop].to(expected.device).double()
            if judges_rows(spec):
                shares.append(_shares(got - round_to(expected, spec.dtype), expected, spec))
            held_here = fits(expected, spec.dtype)
            usable = held_here & torch.isfinite(got)
            plain_finite = plain_finite and bool((usable == held_here).all())
            finite, infinite = expected.isfinite(), expected.isinf()
            all_fit = all_fit and bool((held_here | ~finite).all())
            all_finite = all_finite and bool(finite.all())
            plain_infinite = plain_infinite and bool((got[infinite] == expected[infinite]).all())
            # Of the reference everything counts, also where the plain implementation overflows.
            part = parts.at(start, stop - start, expected.device)
            of_held, weights = part[held_here], expected[held_here].square()
            squares += torch.bincount(of_held, weights=weights, minlength=len(parts)).cpu()
            fourths += float(weights.square().sum())
            held += torch.bincount(of_held, minlength=len(parts)).cpu()
            expected, error = expected[usable], (got - expected)[usable].abs()
            index = part[usable] * _BINS + _bin(expected)
            largest = torch.maximum(largest, _largest_per_bin(index, error, bins))
            # A rectifier's zero that is exact in both tells nothing of what one near its edge may be off by.
            telling = (expected != 0) | (error > 0)
            counts += torch.bincount(index[telling], minlength=bins).cpu()
            error_square += float(error.square().sum())
        norm = float(squares.sum()) ** 0.5
        pooled = zip(largest.reshape(-1, _BINS), counts.reshape(-1, _BINS), strict=True)
        return cls(
            by_exponent=torch.stack([_pool(*each) for each in pooled]),
            plain_norm=error_square**0.5 / norm if norm else 0.0,
            reference_norm=norm,
            carriers=norm**4 / fourths if fourths else 0.0,
            reference_rms=(squares / held.clamp(min=1)).sqrt(),
            parts=parts,
            all_fit=all_fit,
            all_finite=all_finite,
            plain_finite=plain_finite,
            plain_infinite=plain_infinite,
            plain_shared=_widest(torch.cat(shares)) if shares else 0.0,
        )


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
        return self.factor * plain + (self.accumulation if losses is None else float(losses.max()))

    @property
    def row(self) -> int:
        """Elements that share a scale and stay in one chunk: the last axis, or 1 where the whole tensor does."""
        return row_length(self.spec)

    def tolerances(self, reference: torch.Tensor, start: int) -> torch.Tensor:
        """Largest passing |out - reference| per element; float64, flat, whole rows from element `start` on."""
        allowance, parts = _ALLOWANCES[self.spec.dtype], self.scale.parts
        part = parts.at(start, reference.numel(), reference.device)
        plain = self.scale.by_exponent.to(reference.device)[part, _bin(reference)]
        local = self._local_rms(reference, part)
        loss = self.accumulation if parts.losses is None else parts.losses.to(reference)[part]
        stored = allowance.ulps * spacing(reference, self.spec.dtype)
        return stored + self.factor * allowance.headroom * plain + loss * local

    def shared(self, reference: torch.Tensor, got: torch.Tensor, tolerances: torch.Tensor) -> SharedError | None:
        """What the elements of each row are off by together; None where rows are not judged.

        Args:
            reference: float64, flat, whole rows.
            got: like it; what is not finite is left out.
            tolerances: of these elements.
        """
        if not judges_rows(self.spec):
            return None
        dtype, factor = self.spec.dtype, torch.finfo(TORCH_DTYPES[self.spec.dtype]).eps / 2
        plain = self.factor * _ALLOWANCES[dtype].headroom * self.scale.plain_shared
        weights = torch.where(fits(reference, dtype), reference, 0.0).reshape(-1, self.row)
        rounded = round_to(weights, dtype)
        error = torch.nan_to_num(got.reshape(-1, self.row) - rounded, nan=0.0, posinf=0.0, neginf=0.0)
        total, square = (torch.linalg.vecdot(x, weights) for x in (error, weights))
        most, least = (
            torch.linalg.vecdot(round_to(weights * (1 + sign * factor), dtype) - rounded, weights) for sign in (1, -1)
        )
        each = torch.where(weights == 0, 0.0, tolerances.reshape(-1, self.row) * weights)
        granted = torch.where(total > 0, most, -least) + _INDEPENDENT * each.norm(dim=1) + plain * square
        share = torch.where(square > 0, total / square, 0.0)
        return SharedError(share, torch.where(total == 0, 0.0, total.abs() / granted))

    def _local_rms(self, reference: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        if self.row == 1:
            return self.scale.reference_rms.to(reference.device)[part]
        held = torch.where(fits(reference, self.spec.dtype), reference, 0.0).reshape(-1, self.row)
        return held.square().mean(dim=1, keepdim=True).sqrt().expand(-1, self.row).reshape(-1)


def row_length(spec: TensorSpec) -> int:
    """Elements of a row of the module's formula; 1 where the whole tensor is one."""
    last = spec.shape[-1] if spec.shape else 1
    return last if last >= LEAST_ROW else 1


def judges_rows(spec: TensorSpec) -> bool:
    """Whether there are rows to judge, long enough and many enough, of a 16-bit format."""
    row = row_length(spec)
    return TORCH_DTYPES[spec.dtype].itemsize == 2 and row > 1 and spec.elements // row >= LEAST_ROWS


def round_to(values: torch.Tensor, dtype: DType) -> torch.Tensor:
    """float64 values rounded to the format, its largest numbers in place of infinities; float64."""
    largest = torch.finfo(TORCH_DTYPES[dtype]).max
    return values.clamp(-largest, largest).to(TORCH_DTYPES[dtype]).double()


def fits(reference: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Which float64 values are finite once rounded to the format."""
    info = torch.finfo(TORCH_DTYPES[dtype])
    return reference.abs() < info.max * (1 + info.eps / 4)


def spacing(reference: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Distance between neighbouring numbers of the format at each float64 value; constant among subnormals."""
    info = torch.finfo(TORCH_DTYPES[dtype])
    magnitude = reference.abs().clamp(min=info.smallest_normal, max=info.max)
    _, exponent = torch.frexp(magnitude)
    return torch.ldexp(torch.full_like(magnitude, info.eps), exponent - 1)


def _shares(error: torch.Tensor, reference: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """<error> / <r> per row, over what is finite; float64, on the CPU."""
    weights = torch.where(fits(reference, spec.dtype), reference, 0.0).reshape(-1, row_length(spec))
    error = torch.nan_to_num(error, nan=0.0, posinf=0.0, neginf=0.0).reshape(weights.shape)
    square = torch.linalg.vecdot(weights, weights)
    return torch.where(square > 0, torch.linalg.vecdot(error, weights) / square, 0.0).cpu()


def _widest(shares: torch.Tensor) -> float:
    """The largest, or what the spread of the others makes likely."""
    return max(float(shares.abs().max()), _LEAST_SPREAD * float(shares.square().mean().sqrt()))


def _bin(reference: torch.Tensor) -> torch.Tensor:
    """Binary exponent of each value as a bin number; zero falls in the lowest."""
    _, exponent = torch.frexp(torch.nan_to_num(reference))
    exponent = torch.where(reference == 0, _LOW_EXPONENT, exponent.long())
    return exponent.clamp(_LOW_EXPONENT, _HIGH_EXPONENT) - _LOW_EXPONENT


def _largest_per_bin(index: torch.Tensor, error: torch.Tensor, bins: int) -> torch.Tensor:
    copies = 1 if error.device.type == "cpu" else _COPIES
    # Most elements share a few bins: on a GPU neighbours go to different copies of them, or wait for each other.
    turn = torch.arange(index.numel(), device=error.device) % copies
    largest = torch.zeros(copies * bins, dtype=torch.float64, device=error.device)
    return largest.scatter_reduce_(0, index + bins * turn, error, "amax").reshape(copies, bins).amax(0).cpu()


def _pool(largest: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Take each bin's error from itself and its neighbours, and from larger values until enough were seen."""
    bins = torch.arange(_BINS)
    through = counts.cumsum(0)
    enough = torch.searchsorted(through, through - counts + LEAST_POOL)
    last = torch.maximum(enough, bins + 1)[:, None]
    taken = (bins >= bins[:, None] - 1) & (bins <= last)
    return torch.where(taken, largest, 0.0).amax(dim=1)
