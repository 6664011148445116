"""What the plain implementation gets wrong on one output: the scale of the error budget. Terms as in `error_budget`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import torch

from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, spans
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorSpec

LEAST_ROW = 128
"""A shorter last axis is no sample of the tensor's scale."""
CHUNK_ELEMENTS = 1 << 24
LEAST_POOL, FULL_POOL = 128, 4096
"""Elements that make a bin's largest plain error worth believing: where errors come from cancelled terms they have long
tails, and the largest of a few says little of the largest of all. The full pool, or an eighth of all elements where
they are few, is taken from magnitudes up to 2^`POOL_REACH` times as large, the least from any that are larger."""
POOL_REACH = 4
_EXCEEDED, _FEWEST = 1e-3, 8
FEW = 64
"""Carriers of a norm below which a few lucky roundings make the plain error in norm tiny."""
LEAST_ROWS = 16
"""Fewer are no sample of the errors that rows share."""
_NO_ROW = 4
"""So many values share nothing that the budget of each does not grant, see `error_budget`."""
_LEAST_SPREAD = 3.0
"""In root mean squares: the largest of few errors may be small."""
_LOW_EXPONENT, _HIGH_EXPONENT = -160, 160
_BINS = _HIGH_EXPONENT - _LOW_EXPONENT + 1
MOST_PARTS = 16
_COPIES = 256


@dataclass(frozen=True)
class Losses:
    """What fp32 arithmetic may lose, of samples or of parts; float32, one number each.

    Attributes:
        random: a of the module's formula, in units of the results' root mean square.
        drift: e of it, relative.
    """

    random: torch.Tensor
    drift: torch.Tensor

    def __len__(self) -> int:
        return self.random.numel()

    def largest(self, starts: Sequence[int]) -> Losses:
        """Of each stretch of neighbours that begins at one of `starts`, the larger ones."""
        edges = list(pairwise([*starts, len(self)]))
        each = ([values[a:b].max() for a, b in edges] for values in (self.random, self.drift))
        return Losses(*(torch.stack(most) for most in each))


@dataclass(frozen=True)
class Parts:
    """Where an output is cut, so that each part has an error scale of its own.

    Attributes:
        starts: first element of each part; int64, ascending from 0.
        losses: of each part; None: a is one for all, that of the distribution, and e is 0.
    """

    starts: torch.Tensor
    losses: Losses | None

    @classmethod
    def of(cls, spec: TensorSpec, losses: Losses | None) -> Self:
        """Parts of neighbouring samples, from what each sample asks for; one part where there are no samples."""
        if losses is None or not len(losses):
            return cls(torch.zeros(1, dtype=torch.int64), None)
        samples = len(losses)
        if not spec.shape or spec.shape[0] != samples:
            return cls(torch.zeros(1, dtype=torch.int64), losses.largest([0]))
        count = max(min(MOST_PARTS, samples, spec.elements // LEAST_POOL), 1)
        first = [part * samples // count for part in range(count)]
        return cls(torch.tensor(first) * (spec.elements // samples), losses.largest(first))

    def __len__(self) -> int:
        return self.starts.numel()

    def within(self, start: int, count: int) -> Iterator[tuple[int, slice]]:
        """The parts that hold some of `count` elements from `start` on, and which of these."""
        edges = [*self.starts.tolist(), start + count]
        for part, (first, end) in enumerate(pairwise(edges)):
            low, high = max(first - start, 0), min(end - start, count)
            if low < high:
                yield part, slice(low, high)

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
        by_exponent: largest plain error per part and binary exponent of |reference|, of the full pool; float64,
            (parts, 321).
        nearby: the same of the least pool.
        anywhere: largest plain error per part; float64.
        plain_norm: ||plain - reference|| over elements finite in both, / ||reference||.
        reference_norm: ||reference|| over elements the format can hold.
        carriers: how many equal elements would have this norm and this sum of fourth powers, 1 where one stands out.
        reference_rms: root mean square of such elements, float64, per part.
        sample_rms: the same per sample; None where a sample is a row or nothing is known of samples.
        parts: what `by_exponent` and `reference_rms` are taken over.
        all_fit: the format can hold every element of the reference that is finite.
        all_finite: the reference is finite.
        plain_finite: the plain implementation is finite wherever the format can hold the reference.
        plain_infinite: it has the reference's infinities.
        plain_shared: the error that elements of a row share in the plain implementation, as the module's formula has
            it; 0 where rows are not judged.
    """

    by_exponent: torch.Tensor
    nearby: torch.Tensor
    anywhere: torch.Tensor
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
    sample_rms: torch.Tensor | None = None

    @classmethod
    def measure(
        cls, reference: torch.Tensor, plain: torch.Tensor, spec: TensorSpec, losses: Losses | None = None
    ) -> Self:
        """Compare the plain implementation's output with the reference; both of `spec`'s shape, any device.

        `losses` are what each sample of a mixed input asks for.
        """
        seen = _Gathered(spec, Parts.of(spec, losses))
        flat_reference, flat_plain = reference.reshape(-1), plain.reshape(-1)
        for start, stop in spans(spec.elements, row_length(spec), CHUNK_ELEMENTS):
            seen.add(start, flat_reference[start:stop], flat_plain[start:stop])
        norm = float(seen.squares.sum()) ** 0.5
        binned = list(zip(seen.largest.reshape(-1, _BINS), seen.counts.reshape(-1, _BINS), strict=True))
        return cls(
            by_exponent=torch.stack([_pool(errors, counts, FULL_POOL) for errors, counts in binned]),
            nearby=torch.stack([_pool(errors, counts, LEAST_POOL) for errors, counts in binned]),
            anywhere=torch.stack([errors.max() * _luck(int(counts.sum())) for errors, counts in binned]),
            plain_norm=seen.error_square**0.5 / norm if norm else 0.0,
            reference_norm=norm,
            carriers=norm**4 / seen.fourths if seen.fourths else 0.0,
            reference_rms=(seen.squares / seen.held.clamp(min=1)).sqrt(),
            parts=seen.parts,
            all_fit=seen.all_fit,
            all_finite=seen.all_finite,
            plain_finite=seen.plain_finite,
            plain_infinite=seen.plain_infinite,
            plain_shared=_widest(torch.cat(seen.shares)) if seen.shares else 0.0,
            sample_rms=_sample_rms(flat_reference, spec),
        )

    def with_errors_of(self, other: ErrorScale) -> ErrorScale:
        """The larger errors of two plain results of one reference."""
        return replace(
            self,
            by_exponent=torch.maximum(self.by_exponent, other.by_exponent),
            nearby=torch.maximum(self.nearby, other.nearby),
            anywhere=torch.maximum(self.anywhere, other.anywhere),
            plain_norm=max(self.plain_norm, other.plain_norm),
            plain_shared=max(self.plain_shared, other.plain_shared),
        )


class _Gathered:
    """Sums and maxima over the chunks of one output, from which its `ErrorScale` follows."""

    def __init__(self, spec: TensorSpec, parts: Parts) -> None:
        self._spec = spec
        self.parts = parts
        self._bins = len(parts) * _BINS
        self.largest = torch.zeros(self._bins, dtype=torch.float64)
        self.counts = torch.zeros(self._bins, dtype=torch.int64)
        self.squares = torch.zeros(len(parts), dtype=torch.float64)
        self.held = torch.zeros(len(parts), dtype=torch.int64)
        self.error_square = self.fourths = 0.0
        self.all_fit = self.all_finite = self.plain_finite = self.plain_infinite = True
        self.shares: list[torch.Tensor] = []

    def add(self, start: int, reference: torch.Tensor, plain: torch.Tensor) -> None:
        """The elements from `start` on, of reference and plain implementation."""
        expected = reference.double()
        got = plain.to(expected.device).double()
        if judges_rows(self._spec):
            self.shares.append(_shares(got - round_to(expected, self._spec.dtype), expected, self._spec))
        held = fits(expected, self._spec.dtype)
        usable = held & torch.isfinite(got)
        self._look(expected, got, held, usable)
        # Of the reference everything counts, also where the plain implementation overflows. What does not count is
        # masked: taking elements out of tensors of millions costs a GPU more than all the rest.
        squares = torch.where(held, expected, 0.0).square()
        self.fourths += float(squares.square().sum())
        for part, stretch in self.parts.within(start, expected.numel()):
            self.squares[part] += float(squares[stretch].sum())
            self.held[part] += int(held[stretch].sum())
        error = torch.where(usable, (got - expected).abs(), 0.0)
        self.error_square += float(error.square().sum())
        index = self.parts.at(start, expected.numel(), expected.device) * _BINS + bin_of(expected)
        self.largest = torch.maximum(self.largest, _largest_perbin_of(index, error, self._bins))
        # A rectifier's zero that is exact in both tells nothing of what one near its edge may be off by.
        telling = usable & ((expected != 0) | (error > 0))
        self.counts += _count_perbin(torch.where(telling, index, self._bins), self._bins)

    def _look(self, expected: torch.Tensor, got: torch.Tensor, held: torch.Tensor, usable: torch.Tensor) -> None:
        """What is finite, and what the format can hold."""
        finite = expected.isfinite()
        seen = (
            (usable == held).all(),
            (held | ~finite).all(),
            finite.all(),
            (expected.isinf() <= (got == expected)).all(),
        )
        plain_finite, all_fit, all_finite, plain_infinite = torch.stack(seen).tolist()
        self.plain_finite &= plain_finite
        self.all_fit &= all_fit
        self.all_finite &= all_finite
        self.plain_infinite &= plain_infinite


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
    """<error> / <r> per row with more values than `_NO_ROW`, over what is finite; float64, on the CPU."""
    weights = torch.where(fits(reference, spec.dtype), reference, 0.0).reshape(-1, row_length(spec))
    error = torch.nan_to_num(error, nan=0.0, posinf=0.0, neginf=0.0).reshape(weights.shape)
    square = torch.linalg.vecdot(weights, weights)
    shares: torch.Tensor = (torch.linalg.vecdot(error, weights) / square).cpu()
    return shares[(torch.count_nonzero(weights, dim=1) > _NO_ROW).cpu()]


def _sample_rms(reference: torch.Tensor, spec: TensorSpec) -> torch.Tensor | None:
    """Root mean square of what fits of each sample, float64, on the CPU; None where a sample is a row."""
    row = row_length(spec)
    if len(spec.shape) < 3 or row == 1 or not spec.elements:
        return None
    squares = torch.zeros(spec.shape[0], dtype=torch.float64, device=reference.device)
    length = spec.elements // spec.shape[0]
    for start, stop in spans(spec.elements, row, CHUNK_ELEMENTS):
        values = reference[start:stop].double()
        each = torch.where(fits(values, spec.dtype), values, 0.0).reshape(-1, row).square().sum(dim=1)
        squares.index_add_(0, torch.arange(start, stop, row, device=values.device) // length, each)
    return (squares / length).sqrt().cpu()


def _widest(shares: torch.Tensor) -> float:
    """The largest, or what the spread of the others makes likely; 0 of none."""
    return (
        0.0
        if not shares.numel()
        else max(float(shares.abs().max()), _LEAST_SPREAD * float(shares.square().mean().sqrt()))
    )


def bin_of(reference: torch.Tensor) -> torch.Tensor:
    """Binary exponent of each value as a bin number; zero falls in the lowest."""
    _, exponent = torch.frexp(torch.nan_to_num(reference))
    exponent = torch.where(reference == 0, _LOW_EXPONENT, exponent.long())
    return exponent.clamp(_LOW_EXPONENT, _HIGH_EXPONENT) - _LOW_EXPONENT


def _largest_perbin_of(index: torch.Tensor, error: torch.Tensor, bins: int) -> torch.Tensor:
    copies = 1 if error.device.type == "cpu" else _COPIES
    # Most elements share a few bins: on a GPU neighbours go to different copies of them, or wait for each other.
    turn = torch.arange(index.numel(), device=error.device) % copies
    largest = torch.zeros(copies * bins, dtype=torch.float64, device=error.device)
    return largest.scatter_reduce_(0, index + bins * turn, error, "amax").reshape(copies, bins).amax(0).cpu()


def _count_perbin(index: torch.Tensor, bins: int) -> torch.Tensor:
    """How many indices are each of 0 to `bins` - 1; one of `bins` counts for none."""
    if index.device.type == "cpu":
        return torch.bincount(index, minlength=bins + 1)[:bins]
    turn = torch.arange(index.numel(), device=index.device) % _COPIES
    counts = torch.zeros(_COPIES * (bins + 1), dtype=torch.int64, device=index.device)
    counts.scatter_add_(0, index + (bins + 1) * turn, torch.ones_like(index))
    return counts.reshape(_COPIES, bins + 1).sum(0)[:bins].cpu()


def _pool(largest: torch.Tensor, counts: torch.Tensor, most: int) -> torch.Tensor:
    """Take each bin's error from itself and its neighbours, and from larger values until enough were seen."""
    bins = torch.arange(_BINS)
    through = counts.cumsum(0)
    full = min(max(int(through[-1]) // 8, LEAST_POOL), most)
    least, enough = (torch.searchsorted(through, through - counts + pool) for pool in (LEAST_POOL, full))
    last = torch.maximum(torch.maximum(least, bins + 1), torch.minimum(enough, bins + POOL_REACH))[:, None]
    taken = (bins >= bins[:, None] - 1) & (bins <= last)
    seen = torch.where(taken, counts, 0).sum(dim=1)
    luck = torch.tensor([_luck(count) for count in seen.tolist()], dtype=torch.float64)
    return torch.where(taken, largest, 0.0).amax(dim=1) * luck


def _luck(count: int) -> float:
    """What the largest of so many errors is multiplied by, so that twice that is exceeded by one set in 1000.

    With an exponential tail c times the largest of n is exceeded by the largest of n others with probability n^(1 - c).
    """
    return max((1 + math.log(1 / _EXCEEDED) / math.log(max(count, _FEWEST))) / 2, 1.0)
