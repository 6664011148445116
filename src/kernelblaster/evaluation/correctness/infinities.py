"""Where an operation defines what becomes of infinite inputs, so that every honest kernel agrees.

It does where an infinity is selected (a maximum, a rectifier) or vanishes (a masked probability): then a large finite
number in its place gives that number, or the same result. A sum, a norm or a product does not: what comes out
is infinite or NaN by the order of terms and by zeros that some kernels multiply with. Nor does a log-sum-exp: where its
maximum is infinite PyTorch gives that, and kernels that subtract it give NaN. Such problems meet no infinite
input. Element by element NaN may come out (an infinity times zero, in a GELU); there any value passes, for a kernel
that gives the limit instead is no worse. NaN among inputs is never judged: customary kernels take maxima with `fmaxf`,
which drops it.

At the timed size some samples of a mixture are masked (`leading.mask_samples`), where infinities are defined for whole
samples of them and a sample decides its own part of the outputs: timed calls rotate values, so that infinities come to
lie anywhere, and a row may then be all masked. What it gives is NaN, and anything passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from kernelblaster.evaluation.correctness.input_draws import Draw
from kernelblaster.evaluation.correctness.reference_output import ReferenceOutput, exact_result
from kernelblaster.evaluation.correctness.widening import InfinitiesSubtracted
from kernelblaster.evaluation.inputs.leading import Leading
from kernelblaster.problems.problem import TensorSpec

_SAME = 1e-6
"""Relative difference of results that are the same but for rounding."""
_LARGE = 2.0**20
"""Its exponential is zero or infinite, and a sum with it is another number in float64."""


def defines_infinities(
    drawn: Draw, leading: Leading | None, expected: ReferenceOutput, outputs: Sequence[TensorSpec]
) -> bool:
    """Whether the problem defines its result for the infinities of an input.

    Args:
        drawn: inputs, infinite ones among them.
        leading: the input that has them; None: none can.
        expected: what they give.
        outputs: in the problem's order.
    """
    if leading is None:
        return False
    name = leading.name
    values = drawn.inputs[name]
    infinite = values.isinf()
    if not bool(infinite.any()):
        return False
    large = min(torch.finfo(values.dtype).max, _LARGE)
    finite = replace(drawn, inputs={**drawn.inputs, name: values.clamp(-large, large)})
    infinite = infinite.cpu()
    pairs = zip(expected.tensors, exact_result(finite, outputs), strict=True)
    if not all(_defined(tensor.values.cpu(), other, infinite, large) for tensor, other in pairs):
        return False
    with InfinitiesSubtracted():
        subtracted = exact_result(drawn, outputs)
    return not any(
        bool((other.isnan() & ~tensor.values.cpu().isnan()).any())
        for tensor, other in zip(expected.tensors, subtracted, strict=True)
    )


def spoils_nothing(drawn: Draw, leading: Leading, expected: ReferenceOutput) -> bool:
    """Whether NaN comes out only where the input itself is infinite: what is left to ask at a large size.

    There a second reference would take too long; a smaller size has shown that the problem defines its result.
    """
    infinite = drawn.inputs[leading.name].isinf()
    for tensor in expected.tensors:
        strange = tensor.values.isnan() if tensor.values.is_floating_point() else torch.zeros((), dtype=torch.bool)
        if infinite.shape == strange.shape:
            strange &= ~infinite.to(strange.device)
        if bool(strange.any()):
            return False
    return True


def _defined(result: torch.Tensor, other: torch.Tensor, infinite: torch.Tensor, large: float) -> bool:
    """Whether one output is; `other` has a large number in place of infinities."""
    if not result.is_floating_point():
        return torch.equal(result.to(torch.int64), other.to(torch.int64))
    result, other = result.double(), other.to(result.dtype).double()  # what is kept in float32 may be zero there
    own = infinite if infinite.shape == result.shape else torch.zeros_like(result, dtype=torch.bool)
    same = (result - other).abs() <= _SAME * result.abs()
    selected = result.isinf() & (own | (other == result.sign() * large))
    return bool((result.isfinite() & same | selected | result.isnan() & own).all())
