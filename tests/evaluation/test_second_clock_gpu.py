"""Times of shipped kernels and of PyTorch agree with those of programs that share no code with what took them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from kernelblaster import load_problem
from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.cuda.probe import detect_gpu
from kernelblaster.evaluation.results import Verdict
from kernelblaster.evaluation.timing.pytorch_times import times_on
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.paths import harness_include_dir
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.reference import size_digest
from kernelblaster.runs.evaluations import find_problem, open_evaluator
from kernelblaster.runs.pytorch_measurement import TimesItem, measure_times
from kernelblaster.runs.torch_device import TorchGpu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(detect_gpu() is None, reason="no NVIDIA GPU"),
]
HERE = Path(__file__).parent
KERNELS = HERE.parents[1] / "docs" / "results" / "h200_kernels"
AGREE_SHARE, AGREE_US, SHORT_US = 0.03, 1.5, 50.0


@dataclass(frozen=True)
class Case:
    """A shipped kernel at one size, and its call with tensors p[0], p[1], ... of so many fp16 elements."""

    problem: str
    kernel: str
    size: str
    call: str
    elements: tuple[int, ...]


CASES = [
    Case("level1/12", "level1_012_Matmul_with_diagonal_matrices", "full",
         "launch_gpu_implementation(p[0], p[1], p[2], 4096, 4096)", (4096 * 4096, 4096, 4096 * 4096)),
    Case("level1/19", "level1_019_ReLU", "medium",
         "launch_gpu_implementation(p[0], p[1], 256, 393216)", (256 * 393216,) * 2),
    Case("level1/23", "level1_023_Softmax", "v0",
         "launch_gpu_implementation(p[0], p[1], 16, 16384)", (16 * 16384,) * 2),
    Case("level1/40", "level1_040_LayerNorm", "full",
         "launch_gpu_implementation(p[0], p[1], p[2], p[3], 16, 64, 256, 256, 1e-5f)",
         (16 * 64 * 65536, 16 * 64 * 65536, 64 * 65536, 64 * 65536)),
    Case("level1/47", "level1_047_Sum_reduction_over_a_dimension", "medium",
         "launch_gpu_implementation(p[0], p[1], 16, 2048, 4095)", (16 * 4095, 16 * 2048 * 4095)),
]  # fmt: skip


def second_clock(case: Case, arch: str, directory: Path) -> Path:
    """Compile the program that times a case."""
    tools, program = Toolchain.find(), directory / "second_clock"
    (directory / "case.hpp").write_text(f'#include "{KERNELS / case.kernel}.cu"\n#define CALL {case.call}\n')
    flags = ("-O3", "-std=c++17", f"-arch={arch}", "-DKB_FP16", f"-I{directory}", f"-I{harness_include_dir()}")
    command = (str(tools.nvcc), "-ccbin", str(tools.host_compiler), *flags, str(HERE / "second_clock.cu"))
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize("case", CASES, ids=[case.problem for case in CASES])
def test_a_second_clock_agrees(case: Case, tmp_path: Path) -> None:
    config = RunConfig(device="cuda", size=case.size, evaluation=EvaluationConfig(max_seconds_timing=2.0))
    with open_evaluator(config, lambda _: None) as judge:
        program = second_clock(case, judge.facts.compile_arch, tmp_path)
        sizes = [str(2 * count) for count in case.elements]

        def other_us() -> float:
            return float(subprocess.run([str(program), *sizes], check=True, capture_output=True, text=True).stdout)

        before = other_us()
        found = judge.evaluate(
            find_problem(case.problem, config), (KERNELS / f"{case.kernel}.cu").read_text(), profile=False
        )
        theirs = median([before, other_us(), other_us()])
    assert (found.verdict, found.reason) == (Verdict.CORRECT, "")
    assert found.timing is not None
    ours = found.timing.median_us
    print(f"{case.problem} {case.size}: ours {ours:.2f} us, second clock {theirs:.2f} us")
    assert abs(ours - theirs) <= (AGREE_SHARE * theirs if theirs > SHORT_US else AGREE_US)


@pytest.mark.parametrize("name", ["level1/1", "level1/23", "level1/40", "level2/86", "level2/99", "level3/1"])
def test_a_second_clock_agrees_on_pytorch(name: str) -> None:
    gpu, problem = detect_gpu(), load_problem(name)
    assert gpu is not None
    program = [sys.executable, str(HERE / "second_clock.py"), str(problem.reference_path), "full"]

    def other_us() -> float:
        return float(subprocess.run(program, check=True, capture_output=True, text=True).stdout)

    before = other_us()
    item = TimesItem(problem, Precision.FP16, "full", (TorchMode.EAGER,), size_digest(problem, "full"), seconds=1.0)
    device = TorchGpu.of(gpu)
    row = measure_times(item, device)
    device.settle()
    theirs = median([before, other_us(), other_us()])
    eager = row.times[TorchMode.EAGER]
    shipped = times_on(device.facts, problem, Precision.FP16, "full")
    told = "none" if shipped is None else f"{shipped.times[TorchMode.EAGER].us:.2f} us"
    print(f"{name}: ours {eager.us:.2f} us, second clock {theirs:.2f} us, shipped {told}")
    assert theirs > SHORT_US
    assert not eager.host_bound
    assert abs(eager.us - theirs) <= AGREE_SHARE * theirs
