"""Compare an output file with its reference, chunk by chunk, and describe what is wrong with it.

Runs on the GPU when torch sees one. Nothing here decides a verdict: it measures, and says what a person who repairs
the kernel would look for first (elements never written, a tail beyond the last full tile, a constant factor).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from kernelblaster.errors import DeviceMemoryFull
from kernelblaster.evaluation.correctness.error_budget import Budget, SharedError
from kernelblaster.evaluation.correctness.error_scale import CHUNK_ELEMENTS, fits
from kernelblaster.evaluation.correctness.findings import Findings, Worst, WorstRow
from kernelblaster.evaluation.correctness.other_choices import OtherChoices
from kernelblaster.evaluation.correctness.pieces import Pieces
from kernelblaster.evaluation.correctness.reference_output import ReferenceTensor, Ties
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, borrowed_memory, read_tensor, spans, stored_spans
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorSpec

_CPU_CHUNK = 1 << 18
"""Elements at once on a CPU: some twenty intermediate results in float64 stay near it."""
_KEPT_WRONG = 4096
"""Wrong elements per chunk that are looked at for a pattern."""
_PATTERN_SPREAD = 0.02
_SAME_WORDS = 1 << 22
_SAME_THREADS = 8
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


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
    return compare(path, expected.values, budget, poison, expected.pieces, expected.choices)


def would_be_refused(expected: ReferenceTensor, other: torch.Tensor, factor: float, loss: float) -> bool:
    """Whether other values in place of the reference's would be; of its shape, any type that holds them."""
    if expected.scale is None:
        if expected.ties is not None and not other.is_floating_point():
            return not bool(expected.ties.accepts(other.to(expected.values.device), expected.values).all())
        return not torch.equal(other.to(expected.values.device, torch.float64), expected.values.to(torch.float64))
    budget = Budget(expected.spec, expected.scale, factor, loss)
    return tells_apart(expected.values, other, budget, expected.pieces, expected.choices)


def compare(
    path: Path,
    reference: torch.Tensor,
    budget: Budget,
    poison: int,
    pieces: Pieces | None = None,
    choices: OtherChoices | None = None,
) -> Findings:
    """Compare a floating-point output with its reference.

    Args:
        path: the output's bytes; the file has the size that the spec asks for.
        reference: float64 or float32, any device; of the spec's shape, or flat and in pieces.
        budget: how wrong it may be.
        poison: byte that the output was filled with before the call.
        pieces: which elements are compared; None: all.
        choices: what else some may be, of which the nearest is expected.
    """
    try:
        with borrowed_memory(budget.spec.elements) as device:
            return _compare_on(device, path, reference, budget, poison, pieces, choices)
    except DeviceMemoryFull:
        # The candidate is still there, and may hold all of the GPU's memory: no reason not to judge it.
        return _compare_on(torch.device("cpu"), path, reference, budget, poison, pieces, choices)


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
    choices: OtherChoices | None,
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
            got = output(start, stop)
            expected = _likeliest(expected, got, budget, choices, start, place)
            error_square += _compare_span(findings, budget, start, got, expected, poison, strays=strays)
    if findings.strays > budget.most_strays:
        return _compare_on(device, path, reference, budget, poison, pieces, choices, strays=False)
    findings.norm_error = _relative(error_square**0.5, budget.scale.reference_norm)
    together = 0.0 if findings.worst_row is None else findings.worst_row.ratio
    findings.ratio = max(findings.ratio, findings.norm_error / budget.norm, together)
    return findings


def _likeliest(
    expected: torch.Tensor,
    got: torch.Tensor,
    budget: Budget,
    choices: OtherChoices | None,
    start: int,
    place: int,
) -> torch.Tensor:
    """What is expected of elements from `start` on, whose `place` is that in the reference, by the choices of `got`."""
    if choices is None:
        return expected
    return choices.nearest(got, expected, place, budget.over(expected, start).tolerances)


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


def tells_apart(
    reference: torch.Tensor,
    other: torch.Tensor,
    budget: Budget,
    pieces: Pieces | None = None,
    choices: OtherChoices | None = None,
) -> bool:
    """Whether `other`, which is whole, in place of a floating-point `reference` would be refused."""
    spec, expected_flat, other_flat = budget.spec, reference.reshape(-1), other.reshape(-1)
    with borrowed_memory(spec.elements) as device:
        strays, error_square = 0, 0.0
        for start, stop, place in _stretches(budget, pieces, CHUNK_ELEMENTS):
            expected = expected_flat[place : place + stop - start].to(device).double()
            got = other_flat[start:stop].to(device).double()
            expected = _likeliest(expected, got, budget, choices, start, place)
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
            error_square += float(error[held].square().sum())
    return _relative(error_square**0.5, budget.scale.reference_norm) > budget.norm


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
