"""Whether honest kernels would all be judged alike on a draw, however they round.

Of two large scores that are nearly equal a softmax takes one, and the tanh of a large sum that nearly vanishes is
anything. PyTorch may be right there by luck: its errors, which the budget is made of, are then smaller by orders of
magnitude than those of a kernel that rounds as much. So it may be where terms that lie far from zero nearly cancel,
which it adds in the order in which they do.
"""

from __future__ import annotations

import itertools

import torch

from kernelblaster.evaluation.correctness.compare import would_be_refused
from kernelblaster.evaluation.correctness.input_draws import Draw
from kernelblaster.evaluation.correctness.reference_output import ReferenceOutput, borrowing
from kernelblaster.evaluation.correctness.reference_runs import numerics, run
from kernelblaster.evaluation.correctness.widening import SummedOtherwise, Widened
from kernelblaster.evaluation.inputs.distributions import FAR_FROM_ZERO, Distribution, accumulation
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, storage_dtype
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.reference import TORCH

_SEEDS = range(100, 108)
_SIZES, _FAR_SIZES = (0.0, 0.5), (0.0,)
"""In epsilons of the format: products rounded where PyTorch rounds them, and moved by up to what a rounding costs. Far
from zero no second rounding is granted: their order alone is."""
_FACTOR = 1.0
"""c of the error budget: stricter than a candidate is judged."""


def steady(drawn: Draw, expected: ReferenceOutput, precision: Precision, distribution: Distribution) -> bool:
    """Whether results whose products are summed and rounded otherwise than PyTorch's are within the budget.

    Raises DeviceError.
    """
    dtype, loss = storage_dtype(precision), accumulation(distribution)
    eps, far = torch.finfo(dtype).eps, distribution in FAR_FROM_ZERO
    outputs = [tensor.spec for tensor in expected.tensors]
    with TORCH, torch.no_grad(), numerics(), borrowing(drawn, outputs) as device:
        for seed, size in itertools.product(_SEEDS, _FAR_SIZES if far else _SIZES):
            otherwise = SummedOtherwise(size * eps, one_sign=far, device=device, seed=seed)
            with Widened(dtype), otherwise:
                results = run(drawn, dtype, device)
            if not otherwise.moved:
                return True
            for tensor, result in zip(expected.tensors, results, strict=True):
                if would_be_refused(tensor, result.to(TORCH_DTYPES[tensor.spec.dtype]), _FACTOR, loss):
                    return False
    return True
