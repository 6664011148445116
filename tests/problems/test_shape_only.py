"""Shapes without computing are those that computing gives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from problem_files import REFERENCE, write_problem

from kernelblaster.paths import data_dir
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.reference import load_reference, run_model, tensor_specs
from kernelblaster.problems.shape_only import shapes_only

SHA256 = data_dir() / "kernrl/level10/002_SHA256_Batch"
CALLS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "and": lambda x, y: x & y,
    "or of a number": lambda x, y: 7 | x,
    "xor": lambda x, y: x ^ y,
    "shifts": lambda x, y: (x >> 3) | (y << 5),
    "not": lambda x, y: ~x,
    "sum": lambda x, y: x + y,
    "difference of a number": lambda x, y: x - 2,
    "a number without": lambda x, y: 2 - x,
    "product by a fraction": lambda x, y: 0.5 * x,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "sum with a factor": lambda x, y: torch.add(x, y, alpha=2),
    "negative": lambda x, y: -x,
    "broadcast": lambda x, y: x[:1] + y,
    "other layout": lambda x, y: x + y.t().contiguous().t(),
    "columns": lambda x, y: x[:, 0] + y[:, 1],
    "the same column of both": lambda x, y: x[:, 2] * y[:, 2],
    "columns side by side": lambda x, y: x[:, 1:3] + y[:, 1:3],
    "turned and added": lambda x, y: x.t() + y.t(),
    "one number of each": lambda x, y: x[0, 0] + y[1, 1],
    "an element for all": lambda x, y: x[0, :1].expand(4) + y[0],
    "nothing": lambda x, y: x[:0] + y[:0],
    "turned": lambda x, y: (x.t() + y.t()).t().contiguous(),
}


def laid_out(call: Callable[[], torch.Tensor]) -> object:
    """Shape, type and strides of what a call gives, or that it fails."""
    try:
        result = call()
    except (RuntimeError, NotImplementedError, TypeError):
        return "fails"
    return result.shape, result.dtype, result.stride()


@pytest.mark.parametrize("right", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16, torch.float64])
@pytest.mark.parametrize("left", [torch.int64, torch.uint8, torch.bool, torch.float32, torch.bfloat16])
def test_calls_give_what_they_give_on_torchs_own_meta_device(left: torch.dtype, right: torch.dtype) -> None:
    x, y = torch.ones(3, 4, dtype=left, device="meta"), torch.ones(3, 4, dtype=right, device="meta")
    for name, call in CALLS.items():
        wanted = laid_out(lambda call=call: call(x, y))
        with shapes_only():
            assert laid_out(lambda call=call: call(x, y)) == wanted, name


def test_values_outside_the_meta_device_are_computed() -> None:
    held = torch.arange(4, device="cpu")
    with shapes_only():
        assert (held + 1).tolist() == [1, 2, 3, 4]
        assert torch.randint(0, 9, (2, 3)).is_meta
        assert not torch.randint(0, 9, (2, 3), device="cpu").is_meta


@pytest.mark.parametrize(
    "name", ["level10/002_SHA256_Batch", "level8/007_DeblockingFilter", "level9/005_Compact_StreamCompaction"]
)
def test_shapes_of_references_of_many_operations_are_those_of_their_results(name: str) -> None:
    problem = load_problem(data_dir() / "kernrl" / name)
    reference = load_reference(problem)
    outputs = run_model(problem, reference.model("small"), reference.tensors("small"))
    specs = tensor_specs(problem, "small", Precision.FP32)
    assert [spec.shape for spec in specs[: len(outputs)]] == [tuple(one.shape) for one in outputs]


def test_a_reference_is_run_for_its_shapes_once_until_its_file_changes(tmp_path: Path) -> None:
    directory = write_problem(tmp_path / "mine")
    problem = load_problem(directory)
    calls: list[str] = []
    sys.modules[__name__].__dict__["CALLED"] = calls
    count = f"    import sys; sys.modules[{__name__!r}].CALLED.append('forward')\n"
    body = "    def forward(self, x):\n"
    (directory / "reference.py").write_text(REFERENCE.replace(body, f"{body}    {count}"))
    for precision in (Precision.FP32, Precision.FP16):
        assert tensor_specs(problem, "small", precision)[0].shape == (37,)
    assert calls == ["forward"]
    (directory / "reference.py").write_text(REFERENCE.replace("* x * x", "* x[None] * x"))
    assert tensor_specs(problem, "small", Precision.FP32)[0].shape == (1, 37)
