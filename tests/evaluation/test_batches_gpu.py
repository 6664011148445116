"""On a GPU the judge's own clock confirms what events say of shipped kernels, their launches hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.cuda.probe import detect_gpu
from kernelblaster.evaluation.results import Verdict
from kernelblaster.runs.evaluations import find_problem, open_evaluator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(detect_gpu() is None, reason="no NVIDIA GPU"),
]
KERNELS = Path(__file__).resolve().parents[2] / "docs" / "results" / "h200_kernels"
CASES = [
    ("level1/12", "level1_012_Matmul_with_diagonal_matrices", "full"),
    ("level1/23", "level1_023_Softmax", "v0"),
    ("level1/40", "level1_040_LayerNorm", "full"),
    ("level1/95", "level1_095_CrossEntropyLoss", "full"),
    ("level2/86", "level2_086_Matmul_Divide_GELU", "full"),
]


@pytest.mark.parametrize(("problem", "kernel", "size"), CASES, ids=[case[0] for case in CASES])
def test_batches_confirm_a_shipped_kernel(problem: str, kernel: str, size: str) -> None:
    config = RunConfig(device="cuda", size=size, evaluation=EvaluationConfig(max_seconds_timing=1.0))
    with open_evaluator(config, lambda _: None) as judge:
        found = find_problem(problem, config)
        source, start = (KERNELS / f"{kernel}.cu").read_text(), found.init_path.read_text()
        evaluation = judge.evaluate(found, source, baseline=start, profile=False, process_pairs=2)
    assert (evaluation.verdict, evaluation.reason) == (Verdict.CORRECT, "")
    comparison = evaluation.comparison
    assert comparison is not None
    batches = comparison.batches
    assert batches is not None
    print(
        f"{problem} {size}: events {comparison.candidate.median_us:.2f} and {comparison.baseline.median_us:.2f} us, "
        f"batches of {batches.calls} {batches.candidate_us:.2f} and {batches.baseline_us:.2f} us, "
        f"{evaluation.seconds['time']:.2f} s"
    )
    assert batches.launches_hidden
    assert batches.candidate_us <= 1.15 * comparison.candidate.median_us + 2.0
