"""Compare an output file with its reference, chunk by chunk, and describe what is wrong with it.

Runs on the GPU when torch sees one. Nothing here decides a verdict: it measures, and says what a person who repairs
the kernel would look for first (elements never written, a tail beyond the last full tile, a constant factor).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from kernelblaster.errors import DeviceMemoryFull
from kernelblaster.evaluation.correctness.error_budget import Budget, SharedError
from kernelblaster.evaluation.correctness.error_scale import CHUNK_ELEMENTS, fits
from kernelblaster.evaluation.correctness.pieces import Pieces
from kernelblaster.evaluation.correctness.reference_output import ReferenceTensor, Ties
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, borrowed_memory, read_tensor, spans, stored_spans
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorSpec

TILES = (256, 128, 64, 32, 16)
"""Tile extents whose tail is worth naming."""
_CPU_CHUNK = 1 << 18
"""Elements at once on a CPU: some twenty intermediate results in float64 stay near it."""
_KEPT_WRONG = 4096
"""Wrong elements per chunk that are looked at for a pattern."""
_PATTERN_SPREAD = 0.02
_SAME_WORDS = 1 << 22
_SAME_THREADS = 8
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Worst:
    """The element furthest over (or nearest to) its budget."""

    index: tuple[int, ...]
    expected: float
    got: float


@dataclass(frozen=True)
class WorstRow:
    """The row whose elements are furthest off together.

    Attributes:
        index: of the row, an index less than its elements have.
        share: by which part of the row's values.
        ratio: over what is granted.
    """

    index: tuple[int, ...]
    share: float
    ratio: float


@dataclass
class Findings:
    """What comparing one output showed. Errors are inf where the output is not finite and should be."""

    spec: TensorSpec
    max_error: float = 0.0
    norm_error: float = 0.0
    ratio: float = 0.0
    """Worst error over its budget: of an element, of a row together, in norm."""
    wrong: int = 0
    strays: int = 0
    """Elements beyond their budget that are none of the wrong ones, see `error_budget`."""
    unwritten: int = 0
    not_finite: int = 0
    worst: Worst | None = None
    worst_row: WorstRow | None = None
    """None where rows are not judged."""
    low_corner: list[int] = field(default_factory=list)
    """Per axis, the smallest index of a wrong element."""
    factor: float | None = None
    """got / expected where that is one constant over the wrong elements."""

    @property
    def passed(self) -> bool:
        """Whether every element, every row and the norm are within budget."""
        return self.wrong == 0 and self.ratio <= 1

    def describe(self) -> str:
        """One line for whoever repairs the kernel; for a failed comparison."""
        name, total = self.spec.name, self.spec.elements
        row = self.worst_row
        if self.wrong == 0 and row is not None and row.ratio > 1:
            place, side = ", ".join([*map(str, row.index), ":"]), "large" if row.share > 0 else "small"
            return (
                f"{name}: every element is within budget, but {name}[{place}] as a whole is {abs(row.share):.2%} too "
                f"{side}: its elements share an error, e.g. of a sum that is not added in fp32"
            )
        if self.wrong == 0:
            return f"{name}: every element is within budget but the relative error in norm {self.norm_error:.3g} is not"
        parts = [f"{name}: {self.wrong} of {total} elements are wrong ({_share(self.wrong, total)})"]
        if self.worst is not None:
            place = f"{name}[{', '.join(map(str, self.worst.index))}]"
            parts.append(f"worst {place} expected {self.worst.expected:.6g}, got {self.worst.got:.6g}")
        if self.unwritten:
            parts.append(f"{self.unwritten} elements were never written")
        elif self.not_finite:
            parts.append(f"{self.not_finite} are NaN or infinite")
        return "; ".join([*parts, *self._hints()])

    def _hints(self) -> list[str]:
        hints = [] if self.factor is None else [f"got is {self.factor:.4g} times expected"]
        for axis, (extent, low) in enumerate(zip(self.spec.shape, self.low_corner, strict=False)):
            edges = [extent - extent % tile for tile in TILES if 0 < extent % tile < extent]
            reached = [edge for edge in edges if low >= edge]
            if reached:
                hints.append(
                    f"all wrong elements have index >= {max(reached)} on axis {axis} of extent {extent}: "
                    "check the partial tile at the end"
                )
        return hints


def compare_output(
    path: Path, expected: ReferenceTensor, factor: float, loss: float, poison: int, *, judge_nan: bool = True
) -> Findings:
    """Compare an output of any type with its reference.

    Args:
        path: the output's bytes; the file has the size that the spec asks for.
        expected: what should be there.
        factor: c of the error budget.
        loss: a of it.
        poison: byte that the output was filled with before the call.
        judge_nan: whether NaN of the reference must be there; else anything may be.
    """
    if expected.scale is None:
        return compare_exact(path, expected.values, expected.spec, poison, expected.ties)
    budget = Budget(expected.spec, expected.scale, factor, loss, judge_nan)
    return compare(path, expected.values, budget, poison, expected.pieces)


def would_be_refused(expected: ReferenceTensor, other: torch.Tensor, factor: float, loss: float) -> bool:
    """Whether other values in place of the reference's would be; of its shape, any type that holds them."""
    if expected.scale is None:
        if expected.ties is not None and not other.is_floating_point():
            return not bool(expected.ties.accepts(other.to(expected.values.device), expected.values).all())
        return not torch.equal(other.to(expected.values.device, torch.float64), expected.values.to(torch.float64))
    return tells_apart(expected.values, other, Budget(expected.spec, expected.scale, factor, loss), expected.pieces)


def compare(path: Path, reference: torch.Tensor, budget: Budget, poison: int, pieces: Pieces | None = None) -> Findings:
    """Compare a floating-point output with its reference.

    Args:
        path: the output's bytes; the file has the size that the spec asks for.
        reference: float64 or float32, any device; of the spec's shape, or flat and in pieces.
        budget: how wrong it may be.
        poison: byte that the output was filled with before the call.
        pieces: which elements are compared; None: all.
    """
    try:
        with borrowed_memory(budget.spec.elements) as device:
            return _compare_on(device, path, reference, budget, poison, pieces)
    except DeviceMemoryFull:
        # The candidate is still there, and may hold all of the GPU's memory: no reason not to judge it.
        return _compare_on(torch.device("cpu"), path, reference, budget, poison, pieces)


def _stretches(budget: Budget, pieces: Pieces | None, at_most: int) -> Iterator[tuple[int, int, int]]:
    """First and behind last element of what is compared at once, whole rows, and the first's place in the reference."""
    if pieces is None:
        return ((start, stop, start) for start, stop in spans(budget.spec.elements, budget.row, at_most))
    return pieces.within(max(at_most // budget.row, 1) * budget.row)


def _compare_on(
    device: torch.device,
    path: Path,
    reference: torch.Tensor,
    budget: Budget,
    poison: int,
    pieces: Pieces | None,
    *,
    strays: bool = True,
) -> Findings:
    spec, expected_flat = budget.spec, reference.reshape(-1)
    findings = Findings(spec)
    error_square = 0.0
    with stored_spans(path, spec, device) as output:
        chunk = _CPU_CHUNK if device.type == "cpu" else CHUNK_ELEMENTS
        for start, stop, place in _stretches(budget, pieces, chunk):
            expected = expected_flat[place : place + stop - start].to(device).double()
            error_square += _compare_span(findings, budget, start, output(start, stop), expected, poison, strays=strays)
    if findings.strays > budget.most_strays:
        return _compare_on(device, path, reference, budget, poison, pieces, strays=False)
    findings.norm_error = _relative(error_square**0.5, budget.scale.reference_norm)
    together = 0.0 if findings.worst_row is None else findings.worst_row.ratio
    findings.ratio = max(findings.ratio, findings.norm_error / budget.norm, together)
    return findings


def compare_exact(
    path: Path, reference: torch.Tensor, spec: TensorSpec, poison: int, ties: Ties | None = None
) -> Findings:
    """Compare an output of integers or flags, which must be equal, or as good.

    Args:
        path: the output's bytes; the file has the size that the spec asks for.
        reference: of the spec's shape and type, on the CPU.
        spec: the output.
        poison: byte that the output was filled with before the call.
        ties: what else is as good.
    """
    output, expected_flat = _bytes_of_flags(read_tensor(path, spec)), _bytes_of_flags(reference.reshape(-1))
    if ties is not None and spec.elements:
        right = ties.accepts(output.reshape(spec.shape), reference).reshape(-1)
    else:
        right = output == expected_flat
    findings = Findings(spec)
    error_square = reference_square = 0.0
    for start, stop in spans(spec.elements, 1, CHUNK_ELEMENTS):
        stored = output[start:stop]
        expected, got = expected_flat[start:stop].double(), stored.double()
        error = torch.where(right[start:stop], 0.0, (got - expected).abs())
        error_square += float(error.square().sum())
        reference_square += float(expected.square().sum())
        ratio = torch.where(right[start:stop], 0.0, torch.inf)
        _take(findings, start, ratio.double(), error, expected, got)
        _take_wrong(findings, start, ratio > 0, stored, expected, got, poison)
    findings.norm_error = _relative(error_square**0.5, reference_square**0.5)
    return findings


def _compare_span(
    findings: Findings,
    budget: Budget,
    start: int,
    stored: torch.Tensor,
    expected: torch.Tensor,
    poison: int,
    *,
    strays: bool,
) -> float:
    """Compare whole rows from element `start` on; `strays` may be among them. Returns the sum of squared errors."""
    dtype = budget.spec.dtype
    got = stored.double()
    held = fits(expected, dtype) & torch.isfinite(expected)
    error = torch.where(held, (got - expected).abs(), _mismatch(got, expected, dtype))
    if not budget.judge_nan:
        error = torch.where(expected.isnan(), 0.0, error)
    error = torch.nan_to_num(error, nan=torch.inf, posinf=torch.inf)
    grant = budget.over(expected, start)
    ratio = torch.where(error == 0, 0.0, error / grant.tolerances)
    if strays and bool((ratio > 1).any()):
        stray = (ratio > 1) & (error <= grant.of_strays)
        findings.strays += int(stray.sum())
        ratio = torch.where(stray, 1.0, ratio)
    findings.not_finite += int((held & ~torch.isfinite(got)).sum())
    _take(findings, start, ratio, error, expected, got)
    _take_wrong(findings, start, ~(ratio <= 1), stored, expected, got, poison)
    _take_rows(findings, start, grant.shared(got))
    return float(error[held].square().sum())


def _bytes_of_flags(values: torch.Tensor) -> torch.Tensor:
    """Flags as the bytes that they are stored in: one that is neither 0 nor 1, as poison is, is not true but wrong."""
    return values.view(torch.uint8) if values.dtype is torch.bool else values


def tells_apart(reference: torch.Tensor, other: torch.Tensor, budget: Budget, pieces: Pieces | None = None) -> bool:
    """Whether `other`, which is whole, in place of a floating-point `reference` would be refused."""
    spec, expected_flat, other_flat = budget.spec, reference.reshape(-1), other.reshape(-1)
    with borrowed_memory(spec.elements) as device:
        strays = 0
        for start, stop, place in _stretches(budget, pieces, CHUNK_ELEMENTS):
            expected = expected_flat[place : place + stop - start].to(device).double()
            got = other_flat[start:stop].to(device).double()
            held, error = fits(expected, spec.dtype) & torch.isfinite(expected), (got - expected).abs()
            grant = budget.over(expected, start)
            strays += int((held & ~(error <= grant.tolerances)).sum())
            if strays and bool((held & ~(error <= grant.of_strays)).any()):
                return True
            if strays > budget.most_strays:
                return True
            shared = grant.shared(got)
            if shared is not None and bool((shared.ratio > 1).any()):
                return True
    return False


def same_bytes(first: Path, second: Path) -> bool:
    """Whether two files of equal size hold the same bytes."""
    width = np.uint64 if first.stat().st_size % 8 == 0 else np.uint8
    a, b = (np.memmap(path, dtype=width, mode="r") for path in (first, second))

    def same(span: tuple[int, int]) -> bool:
        return np.array_equal(a[slice(*span)], b[slice(*span)])

    pieces = list(spans(a.size, 1, _SAME_WORDS))
    if len(pieces) < 2 * _SAME_THREADS:
        return all(map(same, pieces))
    # Pages of a mapped file are touched one by one: several threads do so at once.
    with ThreadPoolExecutor(_SAME_THREADS, thread_name_prefix="same") as threads:
        return all(threads.map(same, pieces))


def _mismatch(got: torch.Tensor, expected: torch.Tensor, dtype: DType) -> torch.Tensor:
    """0 where the output holds the reference's NaN or infinity (or its overflow), else inf."""
    largest = torch.finfo(TORCH_DTYPES[dtype]).max
    infinity = torch.sign(expected) * torch.inf
    near = expected.isfinite() & (expected.abs() < largest * (1 + 2.0**-6)) & (got.abs() > largest * (1 - 2.0**-6))
    agrees = (got == infinity) | (got.isnan() & expected.isnan()) | (near & (got.sign() == expected.sign()))
    return torch.where(agrees, 0.0, torch.inf).double()


def _take(
    findings: Findings,
    start: int,
    ratio: torch.Tensor,
    error: torch.Tensor,
    expected: torch.Tensor,
    got: torch.Tensor,
) -> None:
    """Keep the worst element so far and the largest error."""
    findings.max_error = max(findings.max_error, float(error.max()))
    at = int(ratio.argmax())
    if findings.worst is None or float(ratio[at]) > findings.ratio:
        index = tuple(int(i) for i in np.unravel_index(start + at, findings.spec.shape))
        findings.worst = Worst(index=index, expected=float(expected[at]), got=float(got[at]))
        findings.ratio = float(ratio[at])


def _take_rows(findings: Findings, start: int, shared: SharedError | None) -> None:
    """Keep the worst row so far."""
    if shared is None:
        return
    at = int(shared.ratio.argmax())
    ratio = float(shared.ratio[at])
    if findings.worst_row is None or ratio > findings.worst_row.ratio:
        *rows, length = findings.spec.shape
        index = tuple(int(i) for i in np.unravel_index(start // length + at, rows))
        findings.worst_row = WorstRow(index=index, share=float(shared.share[at]), ratio=ratio)


def _take_wrong(
    findings: Findings,
    start: int,
    wrong: torch.Tensor,
    stored: torch.Tensor,
    expected: torch.Tensor,
    got: torch.Tensor,
    poison: int,
) -> None:
    """Count wrong and unwritten elements and look for a pattern among them."""
    count = int(wrong.sum())
    if count == 0:
        return
    findings.unwritten += int(_untouched(stored[wrong], poison).sum())
    where = wrong.nonzero().reshape(-1)
    corner = [int(axis.min()) for axis in np.unravel_index(start + where.cpu().numpy(), findings.spec.shape or (1,))]
    findings.low_corner = [min(pair) for pair in zip(findings.low_corner or corner, corner, strict=True)]
    if findings.wrong == 0:
        some = where[:: max(count // _KEPT_WRONG, 1)]
        findings.factor = _constant_factor(got[some], expected[some])
    findings.wrong += count


def _untouched(stored: torch.Tensor, poison: int) -> torch.Tensor:
    """Which elements still consist of the poison byte."""
    width = stored.element_size()
    pattern = int.from_bytes(bytes([poison]) * width, "little", signed=width > 1)
    return stored.view(_INTEGERS[width]) == pattern


def _constant_factor(got: torch.Tensor, expected: torch.Tensor) -> float | None:
    """The one factor between them, if at least eight wrong elements share it within 2 %, and no zero became another."""
    if bool(((expected == 0) & (got != 0)).any()):
        return None
    ratios = got / expected
    ratios = ratios[torch.isfinite(ratios)]
    if ratios.numel() < 8:
        return None
    middle = float(ratios.median())
    spread = float((ratios - middle).abs().max())
    return middle if spread <= _PATTERN_SPREAD * abs(middle) else None


def _relative(error_norm: float, reference_norm: float) -> float:
    """Ratio of norms; 0 when both are 0, inf when only the reference is."""
    if reference_norm:
        return error_norm / reference_norm
    return torch.inf if error_norm else 0.0


def _share(part: int, total: int) -> str:
    share = 100 * part / total
    return f"{share:.1f} %" if share >= 0.1 else f"{share:.2g} %"
