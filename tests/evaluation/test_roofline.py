"""The roofline floor: what it counts, and what it must never count."""

from __future__ import annotations

from pathlib import Path

import pytest
from budget_support import problem
from fake_device import facts

from kernelblaster.devices.emulated.known_gpus import facts_of
from kernelblaster.devices.peaks import highest_bandwidth
from kernelblaster.evaluation.roofline import floor_us, peak_flops
from kernelblaster.evaluation.timing.pytorch_times import PytorchTimes, read_times
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.problem import Precision, Problem, ProblemId, StandardWorkload
from ptxemu.model.architecture import gpu_model, gpu_names

BANDWIDTH = 1e9


def custom(tmp_path: Path, forward: str, inputs: str, init: str = "") -> Problem:
    """A problem with one size, given by the text of its parts."""
    tmp_path.joinpath("driver.cpp").write_text("")
    tmp_path.joinpath("reference.py").write_text(
        "import torch\n"
        'SIZES = {"small": {"n": 64}}\n'
        "class Model(torch.nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        {init or 'pass'}\n"
        f"    def forward(self, {', '.join('abc'[: inputs.count('torch.')])}):\n        return {forward}\n"
        f'def get_inputs(size="small"):\n    return [{inputs}]\n'
        'def get_init_inputs(size="small"):\n    return []\n'
    )
    return Problem(ProblemId(0, 0), "custom", tmp_path, {StandardWorkload.SMALL: {"n": 64}})


def test_element_wise_problems_read_once_and_write_what_l2_cannot_hold() -> None:
    relu = problem("level1/019_ReLU")
    workloads = relu.workloads[StandardWorkload.SMALL]
    elements = workloads["batch_size"] * workloads["dim"]
    traffic = 4 * elements + 4 * elements - facts().l2_bytes
    assert floor_us(relu, StandardWorkload.SMALL, Precision.FP32, facts()) == pytest.approx(1e6 * traffic / BANDWIDTH)


def test_a_product_counts_its_operations(tmp_path: Path) -> None:
    product = custom(tmp_path, "a @ b", "torch.rand(2048, 2048), torch.rand(2048, 2048)")
    fast_memory = facts().model_copy(update={"peak_bandwidth": 1e15})
    assert floor_us(product, StandardWorkload.SMALL, Precision.FP16, fast_memory) == pytest.approx(
        1e6 * 2 * 2048**3 / 2e12
    )


@pytest.mark.parametrize(
    ("forward", "inputs", "init"),
    [
        ("(a @ b).sum(dim=1)", "torch.rand(256, 256), torch.rand(256, 256)", ""),
        ("(a @ b) @ c", "torch.rand(256, 256), torch.rand(256, 256), torch.rand(256, 256)", ""),
        ("a @ b", "torch.rand(256, 256).triu(), torch.rand(256, 256).triu()", ""),
    ],
)
def test_operations_that_algebra_may_save_do_not_count(tmp_path: Path, forward: str, inputs: str, init: str) -> None:
    saved = custom(tmp_path, forward, inputs, init)
    memory_only = facts().model_copy(update={"peak_flops": {}})
    slow_maths = facts().model_copy(update={"peak_flops": {"fp16": 1.0}})
    floors = [floor_us(saved, StandardWorkload.SMALL, Precision.FP16, known) for known in (memory_only, slow_maths)]
    assert floors[0] == floors[1]


def test_zeros_need_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "dense").mkdir()
    (tmp_path / "triangle").mkdir()
    dense = custom(tmp_path / "dense", "a + b", "torch.rand(256, 256), torch.rand(256, 256)")
    triangle = custom(tmp_path / "triangle", "a + b", "torch.rand(256, 256).tril(), torch.rand(256, 256).tril()")
    known = facts().model_copy(update={"l2_bytes": 2**30})
    full, half = (floor_us(p, StandardWorkload.SMALL, Precision.FP32, known) for p in (dense, triangle))
    assert half == pytest.approx(full / 2, rel=0.02)


def test_a_convolution_counts_less_than_its_operations(tmp_path: Path) -> None:
    init = "self.conv = torch.nn.Conv2d(16, 16, 3)"
    conv = custom(tmp_path, "self.conv(a)", "torch.rand(2, 16, 34, 34)", init)
    known = facts().model_copy(update={"peak_bandwidth": 1e15})
    direct = 2 * 2 * 16 * 32 * 32 * 16 * 9
    assert floor_us(conv, StandardWorkload.SMALL, Precision.FP16, known) == pytest.approx(1e6 * direct / 8 / 2e12)


def test_fp32_may_use_tensor_cores_in_several_products() -> None:
    known = facts().model_copy(update={"peak_flops": {"fp32": 67e12, "tf32": 495e12, "bf16": 990e12}})
    assert peak_flops(known, Precision.FP32) == pytest.approx(165e12)
    assert peak_flops(known, Precision.BF16) == 990e12
    assert peak_flops(known.model_copy(update={"peak_flops": {}}), Precision.FP32) is None


def test_nothing_that_was_measured_lies_below_its_floor() -> None:
    """What comes nearest, of PyTorch's fastest times."""
    times = read_times(sorted((data_dir() / "baselines" / "h200").glob("*.jsonl"))).values()
    nearest = sorted((row for row in times if row.best is not None and row.floor_us), key=_over_floor)[:12]
    assert _over_floor(nearest[0]) < 1.1
    for row in nearest:
        known, asked = facts_of(row.gpu), find_problem(row.problem, data_dir() / "kernelbench-cuda")
        assert known is not None
        assert row.best is not None
        assert row.best[1].us > floor_us(asked, row.workload, row.precision, known), row.problem


@pytest.mark.parametrize("name", gpu_names())
def test_no_kernel_of_a_known_gpu_is_faster_than_its_memory(name: str) -> None:
    """Of a real one, whose name the driver tells, and of an emulated one."""
    gpu = gpu_model(name).gpu
    known = facts().model_copy(update={"name": gpu.name, "peak_bandwidth": gpu.dram_copy})
    assert highest_bandwidth(known) >= 0.999 * gpu.dram_peak


def _over_floor(row: PytorchTimes) -> float:
    assert row.best is not None
    assert row.floor_us is not None
    return row.best[1].us / row.floor_us
