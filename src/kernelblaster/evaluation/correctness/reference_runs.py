"""Runs the module of a draw: in a type, or as an honest kernel computes in it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import torch

from kernelblaster.evaluation.correctness.input_draws import Draw, may_change
from kernelblaster.evaluation.correctness.widening import Jittered, Widened
from kernelblaster.problems.reference import run_model
from kernelblaster.problems.time_limit import within_time


def run(drawn: Draw, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Run the module on the drawn values, upcast or as they are."""

    def cast(name: str, tensor: torch.Tensor, copied: bool = False) -> torch.Tensor:
        # The module sees values, not storage types: where integers are stored narrower than torch draws them, too.
        whole = torch.int64 if name in drawn.problem.dtypes and tensor.dtype is not torch.bool else tensor.dtype
        return tensor.to(device, dtype if tensor.is_floating_point() else whole, copy=copied)

    module = copy.deepcopy(drawn.module).to(dtype).to(device)
    weights = {name: cast(name, weight) for name, weight in drawn.weights.items()}
    module.load_state_dict({**module.state_dict(), **weights})
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        # Copied even where nothing is cast: forward may change what it is given.
        inputs = {name: cast(name, tensor, copied=True) for name, tensor in drawn.inputs.items()}
        return within_time(drawn.problem, lambda: run_model(drawn.problem, module, inputs))
    finally:
        torch.set_default_dtype(previous)


def plain_run(
    drawn: Draw, dtype: torch.dtype, device: torch.device, rounding: int, *, moved: bool
) -> tuple[torch.Tensor, ...]:
    """Run the module in the storage type; what `widening` names in float32, its results rounded to it.

    Rounding the last result alone would make the budget that of a kernel which keeps all between in float32. From
    `rounding` 1 on products are off by about one, each time otherwise. `moved`: see `_with_moved_inputs`.
    """
    jittered = Jittered(torch.finfo(dtype).eps, device, seed=rounding) if rounding else nullcontext()
    if moved:
        drawn = _with_moved_inputs(drawn, device)
    with Widened(dtype), jittered:
        return run(drawn, dtype, device)


def _with_moved_inputs(drawn: Draw, device: torch.device) -> Draw:
    """The draw with inputs, of those that may change, that are off by up to an epsilon of float32.

    PyTorch's errors in the format that the reference was computed in would be none. What such a change of the inputs
    costs is what an honest kernel may lose there.
    """
    random = torch.Generator(device).manual_seed(0)
    eps = torch.finfo(torch.float32).eps

    def moved(name: str, value: torch.Tensor) -> torch.Tensor:
        if not may_change(drawn.problem, name, value):
            return value
        noise = torch.rand(value.shape, generator=random, device=device)
        return noise.mul_(2 * eps).add_(1 - eps).mul_(value.to(device))

    return replace(drawn, inputs={name: moved(name, value) for name, value in drawn.inputs.items()})


@contextmanager
def numerics() -> Iterator[None]:
    """The plain implementation is exact to its format: no TF32, no 16-bit accumulation."""
    matmul = torch.backends.cuda.matmul
    kept = (matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction)
    kept_bf16 = matmul.allow_bf16_reduced_precision_reduction
    matmul.allow_tf32 = matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=False):
            yield
    finally:
        matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction = kept
        matmul.allow_bf16_reduced_precision_reduction = kept_bf16
