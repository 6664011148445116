"""Outputs too large to be judged whole in every timed call are judged in pieces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.evaluation.correctness import compare as compare_module
from kernelblaster.evaluation.correctness.compare import compare
from kernelblaster.evaluation.correctness.error_budget import Budget
from kernelblaster.evaluation.correctness.error_scale import ErrorScale
from kernelblaster.evaluation.correctness.pieces import COUNT, Pieces
from kernelblaster.evaluation.inputs.tensors import write_tensor
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import TensorRole, TensorSpec

SPEC = TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT16, (4000, 160))


@given(st.integers(1, 5000), st.sampled_from([1, 128, 160]), st.integers(0, 100_000), st.integers(0, 9))
def test_pieces_are_whole_rows_apart_from_each_other(rows: int, row: int, kept: int, secret: int) -> None:
    pieces = Pieces.choose(rows * row, row, kept, str(secret))
    assert 1 <= len(pieces.spans) <= COUNT
    assert all(start % row == 0 and stop % row == 0 and start < stop for start, stop in pieces.spans)
    assert all(stop <= start for (_, stop), (start, _) in zip(pieces.spans, pieces.spans[1:], strict=False))
    assert pieces.spans[-1][1] <= rows * row


@pytest.mark.parametrize("chunk", [160, 320, 1 << 20])
def test_stretches_cover_what_is_taken(chunk: int) -> None:
    pieces = Pieces.choose(SPEC.elements, 160, 200_000, "secret")
    values = torch.arange(SPEC.elements)
    taken = pieces.taken(values)
    stretches = list(pieces.within(chunk))
    assert sum(stop - start for start, stop, _ in stretches) == taken.numel() == pieces.elements
    assert all(torch.equal(values[a:b], taken[place : place + b - a]) for a, b, place in stretches)


def test_secrets_choose_other_places() -> None:
    one, other = (Pieces.choose(SPEC.elements, 160, 100_000, secret) for secret in ("5/1", "5/2"))
    assert one == Pieces.choose(SPEC.elements, 160, 100_000, "5/1")
    assert one != other


@pytest.mark.parametrize("chunk", [160, 1 << 18])
def test_what_is_wrong_in_a_piece_is_found_at_its_place(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_module, "_CPU_CHUNK", chunk)
    reference = torch.randn(SPEC.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    pieces = Pieces.choose(SPEC.elements, 160, 64_000, "secret")
    taken = pieces.taken(reference)
    scale = ErrorScale.measure(reference, reference.half(), SPEC)
    budget = Budget(SPEC, replace(scale, reference_norm=float(taken.norm())), 2.0)
    start = pieces.spans[3][0]
    outside = next(row for row in range(4000) if not any(a <= 160 * row < b for a, b in pieces.spans))
    for row, passes in ((None, True), (outside, True), (start // 160, False)):
        output = reference.clone()
        if row is not None:
            output[row] = 0.0
        write_tensor(tmp_path / "o.bin", output.half())
        found = compare(tmp_path / "o.bin", taken, budget, 0xFF, pieces)
        assert found.passed is passes
        assert passes or (found.worst is not None and found.worst.index[0] == row)
